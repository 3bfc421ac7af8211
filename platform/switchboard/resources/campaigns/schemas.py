"""Campaigns on the wire (specification, "Campaign" and "Campaign contact")."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from switchboard.foundation.web.schemas import (
    Answer,
    GivenMoment,
    Moment,
    Name,
    PageQuery,
    PhoneNumberText,
    ReferenceId,
    RequestBody,
)
from switchboard.resources.campaigns.models import Campaign, CampaignContact

CampaignStatus = Literal["draft", "scheduled", "running", "paused", "completed", "canceled", "failed"]
ContactStatus = Literal["pending", "dialing", "in_progress", "completed", "failed", "skipped", "canceled"]
Outcome = Literal["answered", "voicemail", "busy", "no-answer", "failed", "invalid_number", "do_not_call", "canceled"]
MAX_CONTACTS = 100_000


class ContactToCall(BaseModel):
    """Somebody to call. No `RequestBody`: with a hundred thousand of them, the campaign's own check for NUL is enough."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, strict=True)

    phone_number: PhoneNumberText
    name: Annotated[str, Field(max_length=255)] | None = None


class Retry(RequestBody):
    """When a contact is dialled again; an addition to the specification."""

    attempts: int = Field(ge=1, le=10, description="How many more times, after the first.")
    delay_seconds: int = Field(3600, ge=1, le=604_800, description="How long after a call the next may be.")
    on: list[Literal["busy", "no-answer", "voicemail"]] = Field(["busy", "no-answer"], min_length=1, max_length=3)


class CampaignFields(RequestBody):
    """What a campaign is, apart from whom it calls."""

    name: Name
    agent_id: ReferenceId
    phone_number_id: ReferenceId = Field(description="One of the organization's numbers: the caller id.")
    scheduled_at: GivenMoment | None = Field(
        None, description="When a campaign that was started begins to dial; null or past: at once."
    )
    max_concurrent: int = Field(
        5, ge=1, le=1000, description="How many calls run at once; never more than the organization may have."
    )
    retry: Retry | None = None


class CampaignCreate(CampaignFields):
    """A campaign to make. It is a draft until it is started."""

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

    contacts: list[ContactToCall] = Field(min_length=1, max_length=MAX_CONTACTS)


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
    status_reason: str | None = Field(description="Why the campaign was paused by itself or failed; an addition.")
    scheduled_at: Moment | None
    max_concurrent: int
    retry: Retry | None = Field(description="An addition.")
    total_contacts: int
    called: int = Field(description="Contacts that were dialled at least once.")
    completed: int = Field(description="Contacts whose call was answered, by a person or a machine.")
    failed: int = Field(description="Contacts who were not reached.")
    skipped: int = Field(description="Contacts not to be called, or listed twice; an addition.")
    canceled: int = Field(description="Contacts whom the campaign's end left undialled; an addition.")
    created_at: Moment
    updated_at: Moment

    @classmethod
    def of(cls, campaign: Campaign) -> "CampaignOut":
        return cls.model_validate(campaign)


class CampaignContactOut(Answer):
    """A campaign's contact. `outcome` is the last call's, also while the contact waits to be dialled again."""

    id: UUID
    campaign_id: UUID
    phone_number: str
    name: str | None
    status: ContactStatus
    outcome: Outcome | None
    call_id: UUID | None
    error: str | None
    attempts: int = Field(description="How often the contact was dialled; an addition.")
    called_at: Moment | None
    created_at: Moment

    @classmethod
    def of(cls, contact: CampaignContact) -> "CampaignContactOut":
        return cls.model_validate(contact)
