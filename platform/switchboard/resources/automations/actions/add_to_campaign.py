"""Action `add_to_campaign`: add a contact to a campaign's list."""

from collections.abc import Mapping
from uuid import UUID

from pydantic import Field, JsonValue

from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import NotFound, ValidationFailed
from switchboard.foundation.web.schemas import PhoneNumberText, ReferenceId, parse_id
from switchboard.plugin_sdk import ActionContext, ActionParams, JsonObject
from switchboard.resources.automations.action_dependencies import DatabaseAction
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import Campaign
from switchboard.resources.campaigns.schemas import ContactToCall
from switchboard.resources.contacts.schemas import Label


class AddToCampaignParams(ActionParams):
    """The contact and the campaign."""

    campaign_id: ReferenceId = Field(description="Id of the campaign.")
    phone_number: PhoneNumberText = Field(description="Phone number to call.")
    name: Label | None = Field(None, description="The contact's name; null if unknown.")


class AddToCampaign(DatabaseAction[AddToCampaignParams]):
    """Add a contact to the campaign's list, unless it is there. A campaign that has ended or is full fails the
    action permanently.
    """

    name, title, Params = "add_to_campaign", "Add to a campaign", AddToCampaignParams
    scope = None

    async def check_params(self, params: Mapping[str, JsonValue]) -> None:
        if "campaign_id" in params:
            await _campaign(self.session, str(params["campaign_id"]))

    async def run(self, context: ActionContext, params: AddToCampaignParams) -> JsonObject:
        campaign = await _campaign(self.session, params.campaign_id, lock=True)
        before = campaign.total_contacts
        after = await campaigns.add_contacts(
            self.session, campaign.id, [ContactToCall(phone_number=params.phone_number, name=params.name)]
        )
        return {"campaign_id": str(after.id), "added": after.total_contacts > before}


async def _campaign(session: TenantSession, campaign_id: str, *, lock: bool = False) -> Campaign:
    """Return the campaign. Raises `ValidationFailed`, with the same message for an unknown campaign and one of
    another organization.
    """
    try:
        return await campaigns.get_campaign(session, parse_id(campaign_id) or UUID(int=0), lock=lock)
    except NotFound:
        raise ValidationFailed.field("campaign_id", "is not a campaign of the organization") from None
