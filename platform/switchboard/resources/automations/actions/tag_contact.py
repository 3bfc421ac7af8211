"""Action `tag_contact`: tag a contact."""

from typing import Annotated

from pydantic import AfterValidator, Field

from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.schemas import PhoneNumberText
from switchboard.plugin_sdk import ActionContext, ActionError, ActionParams, JsonObject
from switchboard.resources.automations.action_dependencies import DatabaseAction
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.schemas import MAX_LABEL


def _one_tag(value: str) -> str:
    tag = value.strip()
    if not tag or "," in tag:
        raise ValueError("must be one tag without a comma")
    return tag


class TagContactParams(ActionParams):
    """The contact and the tag."""

    phone_number: PhoneNumberText = Field(description="Whose contact.")
    tag: Annotated[
        str,
        Field(max_length=MAX_LABEL, description="One tag; a contact's `tags` are separated by commas."),
        AfterValidator(_one_tag),
    ]


class TagContact(DatabaseAction[TagContactParams]):
    """Add a tag to the contact of a phone number, which is created if needed. A tag that is there in any letter case
    stays.
    """

    name, title, Params = "tag_contact", "Tag a contact", TagContactParams
    scope = "contacts:write"

    async def run(self, context: ActionContext, params: TagContactParams) -> JsonObject:
        contact, _ = await contacts.get_or_create_contact(self.session, params.phone_number)
        try:
            added = await contacts.add_tag(self.session, contact, params.tag)
        except InvalidState as error:
            raise ActionError(error.detail, retryable=False) from None
        return {"contact_id": str(contact.id), "added": added}
