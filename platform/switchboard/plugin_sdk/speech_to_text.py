"""Capability `speech_to_text`: transcription of a caller's audio."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import ClassVar

from switchboard.plugin_sdk.audio import PHONE_PCM, AudioFormat, Word
from switchboard.plugin_sdk.provider import Provider, SettingsT_co


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """Parameters of one call's transcription.

    `language` is BCP 47 (`en-US`). `model` is the provider's own name, None for its default. `hints` are phrases that
    the agent expects; a provider uses them if it can (as keyterms or a grammar) and may ignore them.
    """

    language: str = "en-US"
    model: str | None = None
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """A part of the caller's words.

    An interim transcript (`is_final` false) replaces the interim transcript before it. A final one does not change and
    is followed by new words. `finalized` marks the response to one `finalize()`: all audio sent before it is
    transcribed. `words` are timed from the start of this transcript's audio.
    """

    text: str
    is_final: bool
    finalized: bool = False
    confidence: float | None = None
    words: tuple[Word, ...] = ()


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


class SpeechToTextProvider(Provider[SettingsT_co]):
    """Transcribes callers' audio. Its streams take `audio_format`; the engine converts to it."""

    audio_format: ClassVar[AudioFormat] = PHONE_PCM

    @abstractmethod
    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        """Open a stream for one call.

        Raises `ProviderError` if that fails; the organization's next provider is then tried.
        """
