"""A live call, as the engine is given it and as it answers. Nothing here knows a database, a route or a carrier's message."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias
from uuid import UUID

from switchboard.engine.conversation.knowledge import Knowledge
from switchboard.plugin_sdk import (
    AgentTool,
    Frame,
    LLMProvider,
    MediaCodec,
    ModelUsage,
    ProviderSettings,
    SpeechToTextProvider,
    TextToSpeechProvider,
)
from switchboard.plugin_sdk.telephony import CallOutcome

Tool: TypeAlias = AgentTool[Any]
Role: TypeAlias = Literal["user", "agent", "tool", "system"]
Clock: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How an agent holds a call; each field means what the API's Agent field of that name means."""

    agent_id: UUID
    system_prompt: str = ""
    greeting_message: str = ""
    llm_model: str | None = None
    llm_temperature: float = 0.7
    tts_voice_id: str | None = None
    tts_model: str | None = None
    voice_speed: float = 1.0
    pronunciations: Mapping[str, str] = field(default_factory=dict)
    stt_model: str | None = None
    stt_language: str = "en-US"
    end_call_silence_seconds: int = 30
    max_call_duration_seconds: int = 1800
    allow_interruptions: bool = True
    interruption_min_words: int = 1
    vad_confidence: float = 0.7
    vad_start_secs: float = 0.2
    vad_min_volume: float = 0.6


class EndedReason(StrEnum):
    """Why a call ended: the API's `ended_reason`."""

    CALLER_HUNG_UP = "caller_hung_up"
    AGENT_HUNG_UP = "agent_hung_up"
    SILENCE = "silence"
    MAX_DURATION = "max_duration"
    VOICEMAIL = "voicemail"
    TRANSFERRED = "transferred"
    TAKEN_OVER = "taken_over"
    CANCELED = "canceled"
    DO_NOT_CALL = "do_not_call"
    INVALID_NUMBER = "invalid_number"
    INSUFFICIENT_BALANCE = "insufficient_balance"
    PROVIDER_FAILED = "provider_failed"
    SHUTDOWN = "shutdown"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """Something said. `started_ms` counts from the moment the media socket started; `content` is only what can have been heard.

    `by_person`: a person who had taken the call over said it, in the agent's place; the role is the agent's.
    """

    role: Role
    content: str
    started_ms: int
    ended_ms: int
    interrupted: bool = False
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class Supervisor:
    """Somebody of the organization who attends to a live call: their user's id, and the name that colleagues see."""

    user_id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class TurnLatency:
    """Milliseconds from the caller's last voiced audio to each step of the agent's answer; None where the step was not reached."""

    turn: int
    endpoint_ms: int | None
    transcript_ms: int | None
    first_token_ms: int | None
    first_audio_ms: int | None
    first_frame_ms: int | None


@dataclass(slots=True)
class CallUsage:
    """What a call used, for its costs."""

    speech_to_text_seconds: float = 0.0
    text_to_speech_characters: int = 0
    models: list[ModelUsage] = field(default_factory=list)
    embeddings: list[ModelUsage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call went, once it is over. `error_message` is set where something failed. Durations count from the socket's start."""

    ended_reason: EndedReason
    error_message: str | None
    duration_seconds: float
    transcript: tuple[TranscriptEntry, ...]
    latencies: tuple[TurnLatency, ...]
    usage: CallUsage
    recording_path: Path | None
    transferred_to: str | None = None


class MediaSocket(Protocol):
    """The carrier's WebSocket. `receive` answers None once it is closed; `send` raises `ConnectionError` then.

    `opened` is when it was opened, in seconds of the engine's clock: from then on the carrier sends audio, whenever it is listened to.
    """

    @property
    def opened(self) -> float: ...
    async def receive(self) -> Frame | None: ...
    async def send(self, message: Frame) -> None: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TransferTargetEvent:
    """What the carrier tells of a warm transfer's target: it waits, or, with an `outcome`, it is gone."""

    target_call_id: str
    outcome: CallOutcome | None = None


class CarrierLeg(Protocol):
    """What can be done to the call at its carrier. Each raises `ProviderError`."""

    async def hang_up(self) -> None: ...
    async def transfer(self, to_number: str) -> None: ...
    async def introduce(self, to_number: str, text: str, language: str) -> str: ...
    async def connect(self, target_call_id: str) -> None: ...
    async def hang_up_target(self, target_call_id: str) -> None: ...
    async def send_digits(self, digits: str) -> None: ...


class TextSender(Protocol):
    """Sends a text to the person on the line, or to the number that is given. Raises `ToolError`."""

    async def send_text(self, body: str, to_number: str | None) -> None: ...


class CallLog(Protocol):
    """Where a call is written down while it goes on. All are called in order and must not be slow: hand the work on.

    `person` has taken the call over, or, None, it is the agent's again.
    """

    def entry(self, entry: TranscriptEntry) -> None: ...
    def taken_over(self, person: Supervisor | None) -> None: ...
    def latency(self, latency: TurnLatency) -> None: ...


@dataclass(frozen=True, slots=True)
class LiveCall:
    """All that the engine needs to hold one call.

    `variables` (the call's `metadata`) fill `{{name}}` in prompt and greeting. `hints` go to speech-to-text. With `voicemail` the engine
    is an answering machine: it speaks the greeting, beeps, records what is said, and ends. With `digits_as_tones` keys are pressed in the audio.
    """

    call_id: UUID
    organization_id: UUID
    direction: Literal["inbound", "outbound"]
    from_number: str
    to_number: str
    agent: AgentSettings
    speech_to_text: SpeechToTextProvider[ProviderSettings]
    text_to_speech: TextToSpeechProvider[ProviderSettings]
    llm: LLMProvider[ProviderSettings]
    codec: MediaCodec
    leg: CarrierLeg
    log: CallLog
    recording_path: Path | None = None
    tools: Sequence[Tool] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    voicemail: bool = False
    digits_as_tones: bool = False
    knowledge: Knowledge | None = None
