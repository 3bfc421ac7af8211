"""Input and output types of the call engine. They know no database, no route, and no carrier's message format."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias
from uuid import UUID

from opentelemetry.context import Context, get_current

from switchboard.engine.conversation.agent_settings import AgentSettings, TurnDetection, VoicemailPolicy
from switchboard.engine.conversation.knowledge import Knowledge
from switchboard.engine.conversation.variables import Variables
from switchboard.engine.disclosure.disclosure import ConsentRecord, Disclosure
from switchboard.engine.redaction.redactor import Redactor
from switchboard.plugin_sdk import (
    AgentTool,
    Encoding,
    Frame,
    LLMProvider,
    MediaCodec,
    Message,
    ModelUsage,
    Origin,
    PossibleTurn,
    ProviderSettings,
    SpeechToTextProvider,
    TextToSpeechProvider,
    TurnPrediction,
    TurnState,
)
from switchboard.plugin_sdk.telephony_events import CallOutcome

Tool: TypeAlias = AgentTool[Any]
Role: TypeAlias = Literal["user", "agent", "tool", "system"]
InterventionRule: TypeAlias = Literal["claim", "phrase", "topic", "override", "off_subject", "content"]
InterventionAction: TypeAlias = Literal["held_back", "ignore", "answer", "person", "end"]
Clock: TypeAlias = Callable[[], float]
BY_SILENCE: Final = TurnDetection(mode="silence")
COMPLETE_FROM: Final = 0.5
"""Probability from which a turn counts as complete."""


class EndedReason(StrEnum):
    """Reason why a call ended: the API's `ended_reason`."""

    CALLER_HUNG_UP = "caller_hung_up"
    AGENT_HUNG_UP = "agent_hung_up"
    SILENCE = "silence"
    MAX_DURATION = "max_duration"
    VOICEMAIL = "voicemail"
    TRANSFERRED = "transferred"
    TAKEN_OVER = "taken_over"
    CANCELED = "canceled"
    NO_CONSENT = "no_consent"
    DO_NOT_CALL = "do_not_call"
    DESTINATION_NOT_ALLOWED = "destination_not_allowed"
    INVALID_NUMBER = "invalid_number"
    INSUFFICIENT_BALANCE = "insufficient_balance"
    PROVIDER_FAILED = "provider_failed"
    SHUTDOWN = "shutdown"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of the caller within a turn or at its end, and the judgment about it.

    `after_ms` counts from the beginning of the turn, and `waited_ms` from the last voice to the end of the turn, or
    until the caller went on. `detector` is `silence` if nothing was to be judged, `words`, or the name of a turn
    detector, or of a transcriber that judges turns itself; None if the words left doubt and no detector answered.
    `probability` that the turn is complete is None without a judgment.
    """

    after_ms: int
    waited_ms: int
    ended_turn: bool
    detector: str | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One utterance or event of a call.

    `timestamp_ms`, its beginning, and `ended_ms` count from the moment at which the media socket was opened. `content`
    is only the part that the other party can have heard. With `by_person` a supervisor who had taken the call over said
    it in the agent's place; the role is still `agent`. A `backchannel` was said while the agent spoke, and did not stop
    it. `pauses` are those of a turn of the caller. `person` is the name of the supervisor who spoke, whispered, took
    the call over, or handed it back. `agent_id` is the agent that spoke or used a tool.
    """

    role: Role
    content: str
    timestamp_ms: int
    ended_ms: int
    interrupted: bool = False
    by_person: bool = False
    backchannel: bool = False
    pauses: tuple[Pause, ...] = ()
    person: str | None = None
    agent_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class HandoffRecord:
    """A hand-off of a call from one agent to another.

    `mode` is that of the hand-off, or `return` if a specialist came back. `forced` says that a condition did it, and
    not the model.
    """

    from_agent_id: UUID
    to_agent_id: UUID
    to_agent_version: int
    mode: Literal["replace", "call_and_return", "return"]
    forced: bool
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class VariableRecord:
    """A variable that an agent has learned, with its redacted value."""

    name: str
    value: str
    origin: Origin
    agent_id: UUID
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Intervention:
    """Something that an agent was kept from saying (`held_back`), or words of the other side that met a guardrail, with
    what was done.

    `name` is that of the claim, topic, or guardrail, or the phrase.
    """

    rule: InterventionRule
    name: str
    action: InterventionAction
    agent_id: UUID
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Supervisor:
    """A user of the organization who follows a live call; `name` is what colleagues see."""

    user_id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class TurnLatency:
    """Milliseconds from the caller's last voiced audio to each step of a turn; None if a step was not reached."""

    turn: int
    endpoint_ms: int | None
    transcript_ms: int | None
    first_token_ms: int | None
    first_audio_ms: int | None
    first_frame_ms: int | None


@dataclass(slots=True)
class CallUsage:
    """Usage of a call, from which its cost is calculated.

    `dropped_models` is the usage of answers that were asked for before the caller's turn was over, and not spoken.
    """

    speech_to_text_seconds: float = 0.0
    text_to_speech_characters: int = 0
    models: list[ModelUsage] = field(default_factory=list)
    embeddings: list[ModelUsage] = field(default_factory=list)
    dropped_models: list[ModelUsage] = field(default_factory=list)

    @classmethod
    def from_parts(cls, parts: Iterable["CallUsage"]) -> "CallUsage":
        """Return the sum of several usages."""
        total = cls()
        for part in parts:
            total.speech_to_text_seconds += part.speech_to_text_seconds
            total.text_to_speech_characters += part.text_to_speech_characters
            total.models += part.models
            total.embeddings += part.embeddings
            total.dropped_models += part.dropped_models
        return total


@dataclass(frozen=True, slots=True)
class CallResult:
    """Result of a finished call.

    `agent_usage` is that of each agent that had the call, by its id. `error_message` is set if something failed. The
    duration counts from the socket's opening. `recording_error` says why a recording was dropped.
    """

    ended_reason: EndedReason
    error_message: str | None
    duration_seconds: float
    transcript: tuple[TranscriptEntry, ...]
    latencies: tuple[TurnLatency, ...]
    agent_usage: Mapping[UUID, CallUsage]
    recording_path: Path | None = None
    recording_error: str | None = None
    transferred_to: str | None = None
    machine_answered: bool = False

    @property
    def usage(self) -> CallUsage:
        """Usage of all agents together."""
        return CallUsage.from_parts(self.agent_usage.values())


class MediaSocket(Protocol):
    """The carrier's WebSocket. Once it is closed `receive` returns None and `send` raises `ConnectionError`.

    `opened_at` is in seconds of the engine's clock. The carrier sends audio from that moment on, even if nobody reads
    it yet, so it is the start of the call's timeline.
    """

    @property
    def opened_at(self) -> float: ...
    async def receive(self) -> Frame | None: ...
    async def send(self, message: Frame) -> None: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TransferTargetEvent:
    """Carrier event about the target of a warm transfer: it waits to be connected or, with an `outcome`, it is gone."""

    target_call_id: str
    outcome: CallOutcome | None = None


@dataclass(frozen=True, slots=True)
class MachineEvent:
    """Carrier event about a machine that answered."""

    greeting_over: bool


SpeechRenderer: TypeAlias = Callable[[str], Awaitable[bytes]]
"""Returns a text in the agent's voice, as mu-law at 8 kHz. Raises `ProviderError`."""


class CarrierLeg(Protocol):
    """Actions on the call at its carrier. Each raises `ProviderError`."""

    async def hang_up(self) -> None: ...
    async def transfer(self, to_number: str) -> None: ...
    async def introduce(self, to_number: str, text: str, language: str, render: SpeechRenderer) -> str: ...
    async def connect(self, target_call_id: str) -> None: ...
    async def hang_up_target(self, target_call_id: str) -> None: ...
    async def send_digits(self, digits: str) -> None: ...


class PersonQueue(Protocol):
    """The organization's queue of callers who wait for a person.

    `is_staffed` says whether somebody could answer. `leave` ends the wait and returns whether a callback was noted,
    which a withheld number prevents. A takeover, and the end of the call, end the wait by themselves.
    """

    async def is_staffed(self) -> bool: ...
    async def join(self, reason: str) -> None: ...
    async def get_position(self) -> int: ...
    async def leave(self, *, callback: bool) -> bool: ...


@dataclass(frozen=True, slots=True)
class TurnJudgment:
    """A prediction, and what has made it: `words`, or the name of a turn detector; None if nothing spoke against it.

    `state` is that of a transcriber that judges turns itself, by thresholds of its own; None for other detectors.
    """

    prediction: TurnPrediction
    detector: str | None
    state: TurnState | None = None

    @property
    def is_complete(self) -> bool:
        """Return whether the turn counts as complete."""
        return self.prediction.probability >= COMPLETE_FROM if self.state is None else self.state == "end"


class TurnPredictor(Protocol):
    """Predicts whether a caller who pauses has finished. Returns None if it cannot say, or not in time."""

    async def predict(self, turn: PossibleTurn) -> TurnJudgment | None: ...


class CallLog(Protocol):
    """Records a call while it goes on. The methods are called in order and must return at once: queue slow work.

    `record_unfinished` gets what has been said of an utterance in progress. The next entry replaces it.
    `record_takeover` gets the supervisor who has taken the call over, or None when the agent has it again.
    `record_consent` is called when the notice begins, and again when there is an answer.
    """

    def record_entry(self, entry: TranscriptEntry) -> None: ...
    def record_unfinished(self, entry: TranscriptEntry) -> None: ...
    def record_takeover(self, supervisor: Supervisor | None) -> None: ...
    def record_whisper(self, supervisor: Supervisor) -> None: ...
    def record_consent(self, consent: ConsentRecord) -> None: ...
    def record_latency(self, latency: TurnLatency) -> None: ...
    def record_handoff(self, handoff: HandoffRecord) -> None: ...
    def record_variable(self, variable: VariableRecord) -> None: ...
    def record_intervention(self, intervention: Intervention) -> None: ...


@dataclass(frozen=True, slots=True)
class CallAgent:
    """An agent in a call, with the providers and tools of its own that its conversation uses.

    `hints` are phrases for speech-to-text to expect. `embeddings` collects the usage of its searches in `knowledge`.
    Without `turn_predictor` turns are judged by their words.
    """

    id: UUID
    name: str
    settings: AgentSettings
    speech_to_text: SpeechToTextProvider[ProviderSettings]
    text_to_speech: TextToSpeechProvider[ProviderSettings]
    llm: LLMProvider[ProviderSettings]
    tools: Sequence[Tool] = ()
    hints: tuple[str, ...] = ()
    knowledge: Knowledge | None = None
    embeddings: list[ModelUsage] = field(default_factory=list)
    redactor: Redactor = field(default_factory=Redactor)
    turn_predictor: TurnPredictor | None = None
    version: int = 1


class Colleagues(Protocol):
    """The agents that may get a call by hand-offs, one after the other; `names` has the name of each by its id."""

    @property
    def names(self) -> Mapping[UUID, str]: ...
    async def open(self, agent_id: UUID) -> CallAgent:
        """Open an agent's providers and tools, or return them if they are open. Raises `ProviderError`."""
        ...


@dataclass(slots=True)
class LiveCall:
    """Everything that the engine needs to run one call.

    `agent` has the call now. `variables` replace `{{name}}` in prompts and greetings. With
    `voicemail` the engine is an answering machine: it speaks the greeting, beeps, records the message, and ends. With
    `digits_as_tones` keys are pressed as tones in the audio. `disclosure` opens the call; None: no notice is due, and
    the call is recorded. `voicemail_policy` applies if a machine answers; `judges_answer`: the engine finds that out
    itself, because no carrier does; `machine_answered`: the carrier has said so already. Without `queue` the agent
    cannot ask for a person. `begins_with_person`: the other party, who wanted a callback, waits for a user from the
    first word on. `history` is what both have written before the call, which then begins without a greeting.
    `colleagues` are those to which the agents hand over, None if there are none. `succeeded` are the names of the tools
    that have returned success.
    """

    call_id: UUID
    organization_id: UUID
    direction: Literal["inbound", "outbound"]
    from_number: str
    to_number: str
    agent: CallAgent
    codec: MediaCodec
    leg: CarrierLeg
    log: CallLog
    recording_path: Path | None = None
    variables: Variables = field(default_factory=Variables)
    history: Sequence[Message] = ()
    voicemail: bool = False
    digits_as_tones: bool = False
    disclosure: Disclosure | None = None
    voicemail_policy: VoicemailPolicy = field(default_factory=lambda: VoicemailPolicy(action="off"))
    judges_answer: bool = False
    machine_answered: bool = False
    queue: PersonQueue | None = None
    begins_with_person: bool = False
    colleagues: Colleagues | None = None
    succeeded: set[str] = field(default_factory=set)

    @property
    def turn_detection(self) -> TurnDetection:
        """Settings for the ends of turns. Silence ends them where a message is taken: nobody waits for an answer."""
        return BY_SILENCE if self.voicemail else self.agent.settings.turn_detection


@dataclass(frozen=True, slots=True)
class SessionContext:
    """Context that all parts of a call's session share. The call's times count from the opening of the socket.

    `trace` has the span of the conversation.
    """

    call: LiveCall
    socket: MediaSocket
    encoding: Encoding
    clock: Clock
    trace: Context = field(default_factory=get_current)
