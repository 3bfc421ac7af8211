"""Capability `text_to_speech`: an agent's voice."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from switchboard.plugin_sdk.audio import PHONE_PCM, AudioFormat, Word
from switchboard.plugin_sdk.provider import Provider, SettingsT_co


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """One sentence or two to be spoken. `voice_id` and `model` are the provider's own names, None for its defaults; `speed` 1.0 is normal."""

    text: str
    voice_id: str | None = None
    model: str | None = None
    language: str = "en-US"
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class SpeechChunk:
    """Audio in the provider's `audio_format`, to be played after the chunk before it. `words` are timed from this chunk's start."""

    audio: bytes
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice that `tts_voice_id` may name."""

    id: str
    name: str
    language: str
    gender: str | None = None


class TextToSpeechProvider(Provider[SettingsT_co]):
    """Speaks text. `audio_format` is what it yields; the engine converts from it."""

    audio_format: ClassVar[AudioFormat] = PHONE_PCM

    @abstractmethod
    def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        """Yield the spoken text, the first chunk as early as it can be had. Closing the iterator stops the work.

        Raises `ProviderError`; where it does so before the first chunk, or has yielded none within 0.7 seconds, the organization's next
        provider is asked. A sentence that breaks off later is asked for once more.
        """

    @abstractmethod
    async def list_voices(self) -> Sequence[Voice]:
        """List the voices that `SpeechRequest.voice_id` may name. Raises `ProviderError`."""

    async def has_voice(self, voice_id: str) -> bool:
        """Whether an agent's `tts_voice_id` may be this. Override it where there are voices that `voices` does not list.

        Raises `ProviderError` where it cannot be told; the agent is then saved unchecked.
        """
        return voice_id in {voice.id for voice in await self.list_voices()}
