"""API schemas of campaigns."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from switchboard.engine.conversation.agent_settings import VoicemailPolicy
from switchboard.foundation.web.schemas import (
    Answer,
    BoundedObject,
    CreatedAt,
    GivenMoment,
    Moment,
    Name,
    PageQuery,
    PhoneNumberText,
    ReferenceId,
    RequestBody,
    UpdatedAt,
    show_example,
    validate_in_pieces,
)

CampaignStatus = Literal["draft", "scheduled", "running", "paused", "completed", "canceled", "failed"]
ContactStatus = Literal["pending", "dialing", "in_progress", "completed", "failed", "skipped", "canceled"]
Outcome = Literal["answered", "voicemail", "busy", "no-answer", "failed", "invalid_number", "do_not_call", "canceled"]
MAX_CONTACTS = 100_000


class ContactToCall(BoundedObject):
    """A contact to call. Not a `RequestBody`: for a hundred thousand contacts the campaign's own check for NUL is
    enough.
    """

    phone_number: PhoneNumberText = Field(description="E.164 number to call.")
    name: Annotated[str, Field(max_length=255)] | None = Field(
        None, description="Name of the person; `{{name}}` in the agent's texts."
    )


class Retry(RequestBody):
    """Retries of a contact; an addition to the specification."""

    attempts: int = Field(ge=1, le=10, description="Number of retries after the first call.")
    delay_seconds: int = Field(3600, ge=1, le=604_800, description="Seconds between a call and the next one.")
    on: list[Literal["busy", "no-answer", "voicemail"]] = Field(
        ["busy", "no-answer"],
        min_length=1,
        max_length=3,
        description="Outcomes after which the contact is called again.",
    )


class CampaignFields(RequestBody):
    """Fields of a campaign without its contacts."""

    name: Name
    agent_id: ReferenceId = Field(description="Id of the agent that makes the calls.")
    phone_number_id: ReferenceId = Field(
        description="Id of one of the organization's phone numbers, used as the caller ID."
    )
    scheduled_at: GivenMoment | None = Field(
        None, description="When a started campaign begins to dial; null or past: at once."
    )
    max_concurrent: int = Field(
        5, ge=1, le=1000, description="Maximum of concurrent calls, within the organization's limit."
    )
    retry: Retry | None = Field(None, description="Retries of contacts that were not reached; null: none. An addition.")
    voicemail_policy: VoicemailPolicy | None = Field(
        None, description="What happens when voicemail answers; null: what the agent says. An addition."
    )


class CampaignCreate(CampaignFields):
    """A new campaign. It is a draft until it is started."""

    model_config = show_example(
        name="Reminders",
        agent_id="019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11",
        phone_number_id="019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c12",
        max_concurrent=10,
        contacts=[{"phone_number": "+15550100001", "name": "Ada"}],
    )

    contacts: Annotated[list[ContactToCall], validate_in_pieces(MAX_CONTACTS)] = Field(
        min_length=1, max_length=MAX_CONTACTS, description="Contacts to call, at most 100 000."
    )


class CampaignContactQuery(PageQuery):
    """Filters of a campaign's contacts."""

    status: ContactStatus | None = Field(None, description="Status of the contacts.")


class CampaignOut(Answer):
    """A campaign."""

    id: UUID = Field(description="Id of the campaign.")
    name: str
    agent_id: UUID
    phone_number_id: UUID
    status: CampaignStatus = Field(
        description="`draft` and `scheduled` have not begun; `completed`, `canceled`, and `failed` are final."
    )
    status_reason: str | None = Field(description="Why the campaign failed or was paused automatically; an addition.")
    scheduled_at: Moment | None
    max_concurrent: int
    retry: Retry | None
    voicemail_policy: VoicemailPolicy | None
    total_contacts: int = Field(description="Number of contacts.")
    called: int = Field(description="Contacts that were dialed at least once.")
    completed: int = Field(description="Contacts whose call was answered, by a person or a machine.")
    failed: int = Field(description="Contacts that were not reached.")
    skipped: int = Field(description="Contacts that may not be called, or are listed twice; an addition.")
    canceled: int = Field(description="Contacts that were not dialed before the campaign ended; an addition.")
    created_at: CreatedAt
    updated_at: UpdatedAt


class CampaignContactOut(Answer):
    """A contact of a campaign. `outcome` is that of the last call, also while a retry is pending."""

    id: UUID = Field(description="Id of the contact within the campaign.")
    campaign_id: UUID = Field(description="Id of the campaign.")
    phone_number: str = Field(description="E.164 number.")
    name: str | None = Field(description="Name of the person.")
    status: ContactStatus = Field(
        description="`completed`: the call was answered. `skipped`: may not be called, or is listed twice."
    )
    outcome: Outcome | None = Field(description="Outcome of the last call; null before the first one ends.")
    call_id: UUID | None = Field(description="Id of the last call; null before the first one.")
    error: str | None = Field(description="Reason for `failed` or `skipped`, in words.")
    attempts: int = Field(description="Number of times the contact was dialed; an addition.")
    called_at: Moment | None = Field(description="Time of the last call; null before the first one.")
    created_at: CreatedAt
