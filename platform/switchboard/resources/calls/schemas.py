"""Request and response schemas of calls."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, JsonValue, WithJsonSchema, field_validator

from switchboard.engine.conversation.call import EndedReason, InterventionAction, InterventionRule
from switchboard.foundation.encryption.content import PLAIN
from switchboard.foundation.events.catalog import CallStatus, Direction
from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    Dollars,
    GivenMoment,
    Moment,
    PageQuery,
    PhoneNumberFilter,
    PhoneNumberText,
    Query,
    ReferenceId,
    RequestBody,
    show_example,
)
from switchboard.plugin_sdk import Origin
from switchboard.resources.calls.models import Call
from switchboard.resources.contacts.schemas import MAX_LABEL

Sentiment = Literal["positive", "neutral", "negative", "unknown"]
ENDED_REASONS = ", ".join(f"`{reason}`" for reason in EndedReason)
MAX_METADATA_KEYS = 100
MAX_METADATA_CHARACTERS = 16_000
EndedReasonFilter = Annotated[
    EndedReason, WithJsonSchema({"type": "string", "enum": [reason.value for reason in EndedReason]})
]
DurationFilter = Annotated[int, Field(ge=0, le=1_000_000)]


class CallCreate(RequestBody):
    """A call to place."""

    model_config = show_example(
        agent_id="019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11",
        to_number="+15550100001",
        from_number_id="019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c12",
        metadata={"customer": "Ada"},
    )

    agent_id: ReferenceId = Field(description="Id of the agent that makes the call.")
    to_number: PhoneNumberText = Field(description="E.164 number to call.")
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


class CallFilters(Query):
    """Filters of calls."""

    agent_id: str | None = Field(None, max_length=64, description="Id of the agent.")
    direction: Direction | None = Field(None, description="Direction of the calls.")
    status: CallStatus | None = Field(None, description="Status of the calls.")
    created_after: GivenMoment | None = Field(None, description="Earliest time of creation.")
    created_before: GivenMoment | None = Field(None, description="Time of creation that the calls are before.")
    ended_reason: EndedReasonFilter | None = Field(None, description="Reason for which the calls ended.")
    user_sentiment: Sentiment | None = Field(None, description="Sentiment of the other party.")
    call_successful: bool | None = Field(None, description="Success, as judged by the analysis.")
    min_duration_seconds: DurationFilter | None = Field(None, description="Shortest duration.")
    max_duration_seconds: DurationFilter | None = Field(None, description="Longest duration.")
    phone: PhoneNumberFilter | None = Field(None, description="Phone number of either party.")
    contact_id: str | None = Field(None, max_length=64, description="Id of the contact who has either party's number.")
    tag: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_LABEL,
        description="A tag of the contact, ignoring case; commas separate tags.",
    )
    transcript: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_LABEL,
        description="Words that the transcript contains, ignoring case, once the call is over. Of common words `total` "
        "counts up to 10 000 calls. 409 if transcripts are encrypted.",
    )


class CallQuery(CallFilters, PageQuery):
    """Filters of the call list, and the page."""


class TurnLatencyOut(Answer):
    """Milliseconds from the caller's last voiced audio to each step of a turn; null if a step was not reached."""

    turn: int = Field(description="Number of the turn, from 1.")
    endpoint_ms: int | None = Field(description="End of the turn, as judged.")
    transcript_ms: int | None = Field(description="Final transcript.")
    first_token_ms: int | None = Field(description="First token of the model.")
    first_audio_ms: int | None = Field(description="First audio of the voice.")
    first_frame_ms: int | None = Field(description="First audio sent to the carrier.")


class ProviderFailureOut(Answer):
    """Failures of one provider during a call. `plugin` is the distribution that provides it and its version, and
    `error` the last failure.
    """

    capability: str = Field(description="Capability that failed, such as `llm`.")
    provider: str = Field(description="Name of the provider.")
    plugin: str = Field(description="Distribution of the provider, with its version.")
    error: str = Field(description="Last failure, in words.")
    count: int = Field(description="Number of failures during the call.")


class ConsentOut(Answer):
    """Notice and consent at the beginning of a call. Milliseconds count from the start of the call's audio."""

    rules: list[str] = Field(description="Rules that applied, of the organization and of the agent.")
    place: str | None = Field(description="Country or region of the other party's number.")
    mode: Literal["none", "notice", "ask"] = Field(description="Strictest mode of the rules.")
    notice: str = Field(description="Sentences that were spoken.")
    asked_at: Moment = Field(description="Time of the notice or the question.")
    asked_ms: int = Field(description="Milliseconds to the notice or the question.")
    answer: bool | None = Field(description="Null if only a notice was due, or the other party hung up before.")
    by: Literal["speech", "keypad", "stayed"] | None = Field(
        description="Kind of answer: words, a key, or staying on the line after a notice."
    )
    heard: str | None = Field(description="Words or key of the answer; deleted with the transcript.")
    answered_at: Moment | None = Field(description="Time of the answer.")
    answered_ms: int | None = Field(description="Milliseconds to the answer.")
    recording_offset_ms: int | None = Field(
        description="Moment from which the recording has the other party's voice; null if it has none, or has it "
        "from the beginning."
    )


class CallQualityOut(Answer):
    """Quality of a call's line, as the carrier measured it on what the other party sent."""

    loss_share: float = Field(description="Share of lost packets, from 0 to 1.")
    jitter_ms: float = Field(description="Jitter in milliseconds (RFC 3550).")
    mos: float = Field(description="Estimated mean opinion score, from 1 to 5 (ITU-T G.107).")


class HandoffOut(Answer):
    """Hand-off of a call from one agent to another."""

    from_agent_id: UUID = Field(description="Id of the agent that had the call.")
    to_agent_id: UUID = Field(description="Id of the agent that got the call.")
    to_agent_version: int = Field(description="Version of that agent.")
    mode: Literal["replace", "call_and_return", "return"] = Field(
        description="Mode of the hand-off; `return`: a specialist came back."
    )
    forced: bool = Field(description="True if a condition handed the call over, and not the model.")
    timestamp_ms: int = Field(description="Milliseconds from the start of the call's audio.")


class VariableOut(Answer):
    """Variable that an agent learned in a call."""

    value: str = Field(description="Value, redacted.")
    origin: Origin = Field(
        description="`words`: what was said, as the model understood it; `keypad`; `tool`: the result of a tool."
    )
    agent_id: UUID = Field(description="Id of the agent that learned it.")
    timestamp_ms: int = Field(description="Milliseconds from the start of the call's audio.")


class InterventionOut(Answer):
    """Something that an agent was kept from saying, or words of the other side that met a guardrail. The transcript has
    the words.
    """

    rule: InterventionRule = Field(
        description="Kind of rule: `claim`, `phrase`, and `topic` are for the agent's words, others for the caller's."
    )
    name: str = Field(description="Name of the claim, the topic, or the guardrail, or the phrase.")
    action: InterventionAction = Field(
        description="`held_back`: the agent did not say it; otherwise the guardrail's action."
    )
    agent_id: UUID = Field(description="Id of the agent.")
    timestamp_ms: int = Field(description="Milliseconds from the start of the call's audio.")


class CallOut(Answer):
    """A call."""

    id: UUID = Field(description="Id of the call.")
    agent_id: UUID | None = Field(
        description="Id of the agent that the call began with, also of one that was deleted since; null for a call "
        "without an agent."
    )
    agent_version: int | None = Field(
        description="Version of the agent that the call runs with; null before it is answered. An addition."
    )
    direction: Direction = Field(description="`inbound`: the other party called. `outbound`: the platform did.")
    status: CallStatus = Field(description="`queued`, `ringing`, and `in-progress` change; the others are final.")
    from_number: str = Field(
        description="E.164 number of the calling party; other text if the carrier sends no number, and `widget` for a "
        "visitor of a website."
    )
    to_number: str = Field(description="E.164 number of the called party.")
    duration_seconds: int = Field(description="Seconds from the answer to the end; 0 before the end, and for a chat.")
    cost_total: Dollars = Field(description="US dollars.")
    recording_url: str | None = Field(description="Null until there is a recording. Fetch it with the same credential.")
    call_summary: str | None = Field(description="Summary by the analysis after the call; null until then.")
    call_successful: bool | None = Field(description="Judgment of the analysis; null until then, or if it cannot tell.")
    user_sentiment: Sentiment = Field(
        description="Sentiment of the other party, judged by the analysis; `unknown` until then."
    )
    extracted_data: dict[str, JsonValue] = Field(description="Values that the analysis found; empty until then.")
    error_message: str | None = Field(description="Reason for `failed`, in words.")
    ended_reason: str | None = Field(
        description=(f"Reason why the call ended: {ENDED_REASONS}. Later versions may add reasons. An addition.")
    )
    transferred_to: str | None = Field(
        description="Number, or `client:` and the name of a client, to which the call was transferred or forwarded; an "
        "addition."
    )
    metadata: dict[str, JsonValue] = Field(description="Metadata with which the call was created; an addition.")
    costs: dict[str, float] = Field(description="`cost_total` by part; an addition.")
    agent_costs: dict[str, dict[str, float]] = Field(
        description="Costs of each agent by its id and by part, besides the carriage; empty if there was one agent. An "
        "addition."
    )
    handoffs: list[HandoffOut] = Field(description="Hand-offs between agents, in order; an addition.")
    interventions: list[InterventionOut] = Field(
        description="Sentences that agents were kept from saying, and words that met a guardrail; an addition."
    )
    variables: Annotated[dict[str, VariableOut], PLAIN] = Field(
        description="Variables that agents have learned in the call, by name; an addition."
    )
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
    quality: CallQualityOut | None = Field(
        description="Quality of the line, null if the carrier does not measure it; an addition."
    )
    started_at: Moment | None = Field(description="Time of the answer; null if nobody answered.")
    ended_at: Moment | None = Field(description="Time of the end; null while the call goes on.")
    created_at: CreatedAt

    @classmethod
    def from_row(cls, call: Call, *, base_url: str) -> "CallOut":
        fields = call.model_dump(exclude={"call_metadata", "prompt_variables", "cost_parts", "parts"})
        recorded = call.has_recording or call.carrier_recording_id is not None
        return cls.model_validate(
            {
                **fields,
                "metadata": call.call_metadata.value,
                "costs": call.cost_parts,
                "recording_url": f"{base_url}/v1/calls/{call.id}/recording" if recorded else None,
            }
        )


class RecordingLinkOut(Answer):
    """Link to a call's recording that needs no credential until it expires."""

    url: str = Field(description="Address of the recording.")
    expires_at: Moment = Field(description="Time from which the address is refused.")
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
    ended_turn: bool = Field(description="True if the pause ended the turn.")
    detector: str | None = Field(
        description="`silence` if the agent judges no turns, `words`, or the name of a turn detector; null if the "
        "words left doubt and no detector answered."
    )
    probability: float | None = Field(description="Judged probability from 0 to 1 that the turn was complete.")


class TranscriptEntryOut(Answer):
    """Utterance, tool call, or event of a call. Milliseconds count from the start of the call's audio."""

    role: Literal["user", "agent", "tool", "system"] = Field(
        description="`user`: the other party. `tool`: a tool call. `system`: an event, such as a transfer."
    )
    content: Annotated[str, PLAIN] = Field(description="The words; of a tool call JSON, of an event a sentence.")
    timestamp_ms: int = Field(description="Milliseconds to the beginning of the entry.")
    by_person: bool = Field(
        description="True if a user who had taken the call over said it in the agent's place; an addition."
    )
    person: str | None = Field(
        description="Name of the user who spoke in the agent's place, whispered, took the call over, or handed it "
        "back; an addition."
    )
    backchannel: bool = Field(
        description="True if the caller said it while the agent spoke, and it did not stop the agent; an addition."
    )
    agent_id: UUID | None = Field(description="Id of the agent that spoke or used the tool; an addition.")
    pauses: list[PauseOut] = Field(description="Pauses of a turn of the caller; an addition.")
