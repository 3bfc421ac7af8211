"""Capability `speech_to_text`: transcription of a caller's audio."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from switchboard.plugin_sdk.audio import PHONE_PCM, AudioFormat, Word
from switchboard.plugin_sdk.provider import Provider, SettingsT_co

TurnState: TypeAlias = Literal["ongoing", "eager_end", "end"]
"""The caller goes on, has probably finished, or has finished."""


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """Parameters of one call's transcription.

    `language` is BCP 47 (`en-US`). `model` is the provider's own name, None for its default. `hints` are phrases that
    the agent expects; a provider uses them if it can (as keyterms or a grammar) and may ignore them.
    `max_silence_seconds` is the silence at which every turn of the caller ends, for a provider that detects the ends of
    turns itself; None if the agent does not use its `TurnReport`.
    """

    language: str = "en-US"
    model: str | None = None
    hints: tuple[str, ...] = ()
    max_silence_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TurnReport:
    """A transcriber's own judgment of the caller's turn, for agents with the turn detection `audio` or `auto`.

    After `eager_end` the model is asked, and its answer held until `end`; `ongoing` after it says that the caller
    resumed the turn, and drops the answer. `probability`, from 0 to 1, that the turn is complete is shown with the
    pause. `detector` is the provider's name, which the platform sets.
    """

    state: TurnState
    probability: float
    detector: str = ""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A part of the caller's words.

    An interim transcript (`is_final` false) replaces the interim transcript before it. A final one does not change and
    is followed by new words. `finalized` marks the response to one `finalize()`: all audio sent before it is
    transcribed. `words` are timed from the start of this transcript's audio. `turn` is the state of the turn since this
    transcript, which has no text if only the state changed; None if the provider does not detect the ends of turns.
    """

    text: str
    is_final: bool
    finalized: bool = False
    confidence: float | None = None
    words: tuple[Word, ...] = ()
    turn: TurnReport | None = None


class SpeechToTextStream(ABC):
    """One call's transcription. One task calls `send` and `finalize` in order; another task iterates."""

    @abstractmethod
    async def send(self, audio: bytes) -> None:
        """Send audio of any length in the provider's `audio_format`. Returns quickly. Raises `ProviderError` if the
        stream is lost.
        """

    @abstractmethod
    async def finalize(self) -> None:
        """Signal that the caller stopped speaking.

        One `Transcript` with `finalized` must follow soon, with empty text if there was no speech.
        """

    @abstractmethod
    def __aiter__(self) -> AsyncIterator[Transcript]:
        """Yield transcripts until `close()`. Raises `ProviderError` if the stream is lost."""

    @abstractmethod
    async def close(self) -> None:
        """End the stream and the iteration. A second call has no effect."""


class UtteranceStream(SpeechToTextStream):
    """Stream of a provider that transcribes whole utterances: `transcribe` gets each when it is over, and returns its
    words. There are no interim transcripts.
    """

    def __init__(self, transcribe: Callable[[bytes], Awaitable[str]]) -> None:
        self._transcribe = transcribe
        self._audio = bytearray()
        self._utterances: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def send(self, audio: bytes) -> None:
        self._audio += audio

    async def finalize(self) -> None:
        self._utterances.put_nowait(bytes(self._audio))
        self._audio.clear()

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while (audio := await self._utterances.get()) is not None:
            yield Transcript(await self._transcribe(audio), is_final=True, finalized=True)

    async def close(self) -> None:
        self._utterances.put_nowait(None)


class SpeechToTextProvider(Provider[SettingsT_co]):
    """Transcribes callers' audio. Its streams take `audio_format`; the engine converts to it."""

    audio_format: ClassVar[AudioFormat] = PHONE_PCM
    for_demonstrations: ClassVar[bool] = False
    """True for a transcriber of demonstrations and tests, whose callers have synthetic voices. The default turn
    detector does not judge its calls.
    """

    @abstractmethod
    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        """Open a stream for one call.

        Raises `ProviderError` if that fails; the organization's next provider is then tried.
        """
