"""Capability `speech_to_text`: words from a caller's audio."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import ClassVar

from switchboard.plugin_sdk.audio import PHONE_PCM, AudioFormat, Word
from switchboard.plugin_sdk.provider import Provider, SettingsT_co


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """How one call is to be transcribed.

    `language` is BCP 47 (`en-US`). `model` is the provider's own name for one, None for its default. `hints` are phrases that the agent
    expects to hear; a provider uses them as far as it can (keyterms, a grammar) and may ignore them.
    """

    language: str = "en-US"
    model: str | None = None
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """A piece of what the caller said.

    An interim one (`is_final` false) replaces the interim one before it. A final one will not change and is followed by new words.
    `finalized` marks the answer to one `finalize()`: nothing of what was sent before it is still to come.
    """

    text: str
    is_final: bool
    finalized: bool = False
    confidence: float | None = None
    words: tuple[Word, ...] = ()


class SpeechToTextStream(ABC):
    """One call's transcription. `send` and `finalize` are called in order by one task, the iteration is read by another."""

    @abstractmethod
    async def send(self, audio: bytes) -> None:
        """Take audio in the provider's `audio_format`, any length. Returns soon; raises `ProviderError` when the stream is lost."""

    @abstractmethod
    async def finalize(self) -> None:
        """Say that the caller has stopped speaking: one `Transcript` with `finalized` must follow soon, its text empty if nothing was heard."""

    @abstractmethod
    def __aiter__(self) -> AsyncIterator[Transcript]:
        """Yield transcripts until `close()`. Raises `ProviderError` when the stream is lost."""

    @abstractmethod
    async def close(self) -> None:
        """End the stream and the iteration; harmless when called twice."""


class SpeechToTextProvider(Provider[SettingsT_co]):
    """Turns callers' audio into text. `audio_format` is what its streams take; the engine converts to it."""

    audio_format: ClassVar[AudioFormat] = PHONE_PCM

    @abstractmethod
    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        """Open a stream for one call. Raises `ProviderError` where it cannot; the organization's next provider is then tried."""
