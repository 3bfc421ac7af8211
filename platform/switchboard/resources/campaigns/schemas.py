"""API schemas of campaigns."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from switchboard.foundation.web.schemas import (
    Answer,
    BoundedObject,
    GivenMoment,
    Moment,
    Name,
    PageQuery,
    PhoneNumberText,
    ReferenceId,
    RequestBody,
    validate_in_pieces,
)
from switchboard.resources.agents.conversation_settings import VoicemailPolicy
from switchboard.resources.campaigns.models import Campaign, CampaignContact

CampaignStatus = Literal["draft", "scheduled", "running", "paused", "completed", "canceled", "failed"]
ContactStatus = Literal["pending", "dialing", "in_progress", "completed", "failed", "skipped", "canceled"]
Outcome = Literal["answered", "voicemail", "busy", "no-answer", "failed", "invalid_number", "do_not_call", "canceled"]
MAX_CONTACTS = 100_000


class ContactToCall(BoundedObject):
    """A contact to call. Not a `RequestBody`: for a hundred thousand contacts the campaign's own check for NUL is
    enough.
    """

    phone_number: PhoneNumberText
    name: Annotated[str, Field(max_length=255)] | None = None


class Retry(RequestBody):
    """Retries of a contact; an addition to the specification."""

    attempts: int = Field(ge=1, le=10, description="Number of retries after the first call.")
    delay_seconds: int = Field(3600, ge=1, le=604_800, description="Seconds between a call and the next one.")
    on: list[Literal["busy", "no-answer", "voicemail"]] = Field(["busy", "no-answer"], min_length=1, max_length=3)


class CampaignFields(RequestBody):
    """Fields of a campaign without its contacts."""

    name: Name
    agent_id: ReferenceId
    phone_number_id: ReferenceId = Field(
        description="Id of one of the organization's phone numbers, used as the caller ID."
    )
    scheduled_at: GivenMoment | None = Field(
        None, description="When a started campaign begins to dial; null or past: at once."
    )
    max_concurrent: int = Field(
        5, ge=1, le=1000, description="Maximum of concurrent calls, within the organization's limit."
    )
    retry: Retry | None = None
    voicemail_policy: VoicemailPolicy | None = Field(
        None, description="What happens when voicemail answers; null: what the agent says. An addition."
    )


class CampaignCreate(CampaignFields):
    """A new campaign. It is a draft until it is started."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Reminders",
                    "agent_id": "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11",
                    "phone_number_id": "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c12",
                    "max_concurrent": 10,
                    "contacts": [{"phone_number": "+15550100001", "name": "Ada"}],
                }
            ]
        }
    )

    contacts: Annotated[list[ContactToCall], validate_in_pieces(MAX_CONTACTS)] = Field(
        min_length=1, max_length=MAX_CONTACTS
    )


class CampaignContactQuery(PageQuery):
    """Filters of a campaign's contacts."""

    status: ContactStatus | None = None


class CampaignOut(Answer):
    """A campaign."""

    id: UUID
    name: str
    agent_id: UUID
    phone_number_id: UUID
    status: CampaignStatus
    status_reason: str | None = Field(description="Why the campaign failed or was paused automatically; an addition.")
    scheduled_at: Moment | None
    max_concurrent: int
    retry: Retry | None = Field(description="An addition.")
    voicemail_policy: VoicemailPolicy | None = Field(description="An addition.")
    total_contacts: int
    called: int = Field(description="Contacts that were dialed at least once.")
    completed: int = Field(description="Contacts whose call was answered, by a person or a machine.")
    failed: int = Field(description="Contacts that were not reached.")
    skipped: int = Field(description="Contacts that may not be called, or are listed twice; an addition.")
    canceled: int = Field(description="Contacts that were not dialed before the campaign ended; an addition.")
    created_at: Moment
    updated_at: Moment

    @classmethod
    def of(cls, campaign: Campaign) -> "CampaignOut":
        return cls.model_validate(campaign)


class CampaignContactOut(Answer):
    """A contact of a campaign. `outcome` is that of the last call, also while a retry is pending."""

    id: UUID
    campaign_id: UUID
    phone_number: str
    name: str | None
    status: ContactStatus
    outcome: Outcome | None
    call_id: UUID | None
    error: str | None
    attempts: int = Field(description="Number of times the contact was dialed; an addition.")
    called_at: Moment | None
    created_at: Moment

    @classmethod
    def of(cls, contact: CampaignContact) -> "CampaignContactOut":
        return cls.model_validate(contact)
