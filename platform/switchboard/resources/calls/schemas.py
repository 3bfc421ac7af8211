"""Request and response schemas of calls."""

from typing import Literal
from uuid import UUID

from pydantic import ConfigDict, Field, JsonValue, field_validator

from switchboard.engine.conversation.call import EndedReason
from switchboard.foundation.events.catalog import CallStatus, Direction
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

Sentiment = Literal["positive", "neutral", "negative", "unknown"]
ENDED_REASONS = ", ".join(f"`{reason}`" for reason in EndedReason)
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
        description="Values for `{{name}}` in the prompt and the greeting; events carry it too.",
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
    status: CallStatus | None = None


class TurnLatencyOut(Answer):
    """Milliseconds from the caller's last voiced audio to each step of a turn; null if a step was not reached."""

    turn: int
    endpoint_ms: int | None
    transcript_ms: int | None
    first_token_ms: int | None
    first_audio_ms: int | None
    first_frame_ms: int | None


class ProviderFailureOut(Answer):
    """Failures of one provider during a call. `plugin` is the distribution that provides it and its version, and
    `error` the last failure.
    """

    capability: str
    provider: str
    plugin: str
    error: str
    count: int


class ConsentOut(Answer):
    """Notice and consent at the beginning of a call. Milliseconds count from the start of the call's audio."""

    rules: list[str] = Field(description="Rules that applied, of the organization and of the agent.")
    place: str | None = Field(description="Country or region of the other party's number.")
    mode: Literal["none", "notice", "ask"]
    notice: str = Field(description="Sentences that were spoken.")
    asked_at: Moment
    asked_ms: int
    answer: bool | None = Field(description="Null if only a notice was due, or the other party hung up before.")
    by: Literal["speech", "keypad", "stayed"] | None
    heard: str | None = Field(description="Words or key of the answer; deleted with the transcript.")
    answered_at: Moment | None
    answered_ms: int | None
    recording_offset_ms: int | None = Field(
        description="Moment from which the recording has the other party's voice; null if it has none, or has it "
        "from the beginning."
    )


class CallOut(Answer):
    """A call."""

    id: UUID
    agent_id: UUID | None
    direction: Direction
    status: CallStatus
    from_number: str
    to_number: str
    duration_seconds: int
    cost_total: Dollars
    recording_url: str | None = Field(description="Null until there is a recording. Fetch it with the same credential.")
    call_summary: str | None
    call_successful: bool | None
    user_sentiment: Sentiment
    extracted_data: dict[str, JsonValue]
    error_message: str | None
    ended_reason: str | None = Field(
        description=(f"Reason why the call ended: {ENDED_REASONS}. Later versions may add reasons. An addition.")
    )
    transferred_to: str | None = Field(
        description="Number to which the call was transferred or forwarded; an addition."
    )
    metadata: dict[str, JsonValue] = Field(description="Metadata with which the call was created; an addition.")
    costs: dict[str, float] = Field(description="`cost_total` by part; an addition.")
    latencies: list[TurnLatencyOut] = Field(description="Latencies of each turn; an addition.")
    served_by: dict[str, str] = Field(
        description="Provider of each capability that served the call, and of its `analysis`; an addition."
    )
    provider_failures: list[ProviderFailureOut] = Field(
        description="Providers that failed during the call, whether another one took over or not; an addition."
    )
    consent: ConsentOut | None = Field(
        description="Notice and consent at the beginning of the call, null without a notice; an addition."
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


class RecordingLinkOut(Answer):
    """Link to a call's recording that needs no credential until it expires."""

    url: str
    expires_at: Moment
    content_type: str | None = Field(
        description="`audio/flac`, `audio/ogg` (Opus), or `audio/wav`, as the recording is stored; null if the carrier "
        "stores it."
    )


class PauseOut(Answer):
    """Pause of the caller within a turn or at its end, and the judgment about it."""

    after_ms: int = Field(description="Milliseconds from the beginning of the entry to the beginning of the pause.")
    waited_ms: int = Field(
        description="Milliseconds from the caller's last voice to the end of the turn, or until the caller went on."
    )
    ended_turn: bool
    detector: str | None = Field(
        description="`silence` if the agent judges no turns, `words`, or the name of a turn detector; null if the "
        "words left doubt and no detector answered."
    )
    probability: float | None = Field(description="Judged probability from 0 to 1 that the turn was complete.")


class TranscriptEntryOut(Answer):
    """Utterance, tool call, or event of a call. Milliseconds count from the start of the call's audio."""

    role: Literal["user", "agent", "tool", "system"]
    content: str
    timestamp_ms: int
    by_person: bool = Field(
        description="True if a user who had taken the call over said it in the agent's place; an addition."
    )
    backchannel: bool = Field(
        description="True if the caller said it while the agent spoke, and it did not stop the agent; an addition."
    )
    pauses: list[PauseOut] = Field(description="Pauses of a turn of the caller; an addition.")

    @classmethod
    def of(cls, line: TranscriptLine) -> "TranscriptEntryOut":
        return cls.model_validate(line)
