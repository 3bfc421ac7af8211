"""Calls on the wire (specification, "Call" and "Transcript entry")."""

from typing import Literal
from uuid import UUID

from pydantic import ConfigDict, Field, JsonValue, field_validator

from switchboard.foundation.web.schemas import (
    Answer,
    Dollars,
    Moment,
    PageQuery,
    PhoneNumberText,
    ReferenceId,
    RequestBody,
)
from switchboard.resources.calls.models import Call, TranscriptLine

Direction = Literal["inbound", "outbound"]
Status = Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
MAX_METADATA_KEYS = 100
MAX_METADATA_CHARACTERS = 16_000


class CallCreate(RequestBody):
    """A call to place."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "agent_id": "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11",
                    "to_number": "+15550100001",
                    "from_number_id": "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c12",
                    "metadata": {"customer": "Ada"},
                }
            ]
        }
    )

    agent_id: ReferenceId
    to_number: PhoneNumberText
    from_number_id: ReferenceId = Field(description="One of the organization's numbers: the caller id.")
    metadata: dict[str, JsonValue] = Field(
        default_factory=dict,
        max_length=MAX_METADATA_KEYS,
        description="Fills `{{name}}` in prompt and greeting; rides in the events.",
    )

    @field_validator("metadata")
    @classmethod
    def _not_too_long(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if len(str(value)) > MAX_METADATA_CHARACTERS:
            raise ValueError(f"must have at most {MAX_METADATA_CHARACTERS} characters")
        return value


class CallQuery(PageQuery):
    """Filters of the call list."""

    agent_id: str | None = Field(None, max_length=64)
    direction: Direction | None = None
    status: Status | None = None


class TurnLatencyOut(Answer):
    """Milliseconds from the caller's last voiced audio to each step of the agent's answer; null where a step was not reached."""

    turn: int
    endpoint_ms: int | None
    transcript_ms: int | None
    first_token_ms: int | None
    first_audio_ms: int | None
    first_frame_ms: int | None


class CallOut(Answer):
    """A call."""

    id: UUID
    agent_id: UUID | None
    direction: str
    status: str
    from_number: str
    to_number: str
    duration_seconds: int
    cost_total: Dollars
    recording_url: str | None = Field(description="Null until there is a recording; fetched with the same credential.")
    call_summary: str | None
    call_successful: bool | None
    user_sentiment: str
    extracted_data: dict[str, JsonValue]
    error_message: str | None
    ended_reason: str | None = Field(description="Why the call ended; an addition.")
    transferred_to: str | None = Field(description="Where the call was transferred or forwarded; an addition.")
    metadata: dict[str, JsonValue] = Field(description="As the call was created with; an addition.")
    costs: dict[str, float] = Field(description="`cost_total` by part; an addition.")
    latencies: list[TurnLatencyOut] = Field(description="How fast each turn was; an addition.")
    served_by: dict[str, str] = Field(
        description="Which provider of each capability served the call, and which its `analysis`; an addition."
    )
    started_at: Moment | None
    ended_at: Moment | None
    created_at: Moment

    @classmethod
    def of(cls, call: Call, *, base_url: str) -> "CallOut":
        fields = call.model_dump(exclude={"call_metadata", "cost_parts"})
        recorded = call.has_recording or call.carrier_recording_id is not None
        return cls.model_validate(
            {
                **fields,
                "metadata": call.call_metadata,
                "costs": call.cost_parts,
                "recording_url": f"{base_url}/v1/calls/{call.id}/recording" if recorded else None,
            }
        )


class TranscriptEntryOut(Answer):
    """Something that was said (or a tool that was called): milliseconds count from the start of the call's audio."""

    role: Literal["user", "agent", "tool", "system"]
    content: str
    timestamp_ms: int
    by_person: bool = Field(
        description="Whether a person who had taken the call over said it, in the agent's place; an addition."
    )

    @classmethod
    def of(cls, line: TranscriptLine) -> "TranscriptEntryOut":
        return cls.model_validate(line)
