"""Action `upsert_contact`: create or update a contact."""

from pydantic import ConfigDict, Field

from switchboard.foundation.web.schemas import PhoneNumberText
from switchboard.plugin_sdk import ActionContext, ActionParams, JsonObject
from switchboard.resources.automations.action_dependencies import DatabaseAction
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.schemas import ContactFields, ContactUpdate


class UpsertContactParams(ActionParams, ContactFields):
    """The parameters of `PATCH /v1/contacts/{contact_id}`."""

    model_config = ConfigDict(strict=False)

    phone_number: PhoneNumberText = Field(description="Whose contact.")


class UpsertContact(DatabaseAction[UpsertContactParams]):
    """Change the given fields of the contact of a phone number, which is created if needed."""

    name, title, Params = "upsert_contact", "Create or update a contact", UpsertContactParams
    scope = "contacts:write"

    async def run(self, context: ActionContext, params: UpsertContactParams) -> JsonObject:
        contact, created = await contacts.get_or_create_contact(self.session, params.phone_number)
        await contacts.update_contact(self.session, contact.id, ContactUpdate(**params.model_dump(exclude_unset=True)))
        return {"contact_id": str(contact.id), "created": created}
