"""Capability `text_to_speech`: the voice of an agent."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from switchboard.plugin_sdk.audio import PHONE_PCM, AudioFormat, Word
from switchboard.plugin_sdk.languages import find_nearest_language
from switchboard.plugin_sdk.provider import Provider, ProviderSettings, SettingsT_co

LanguageTag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """One or two sentences to speak.

    `voice_id` and `model` are the provider's own names, None for its defaults. `language` is BCP 47. `speed` is a
    factor, 1.0 for normal speed. `reply_id` is the same for all sentences of a reply, which are requested one after the
    other, and `previous_text` what was said of it before: a provider may use them to join the sentences' intonation.
    Both are empty for a text that stands alone.
    """

    text: str
    voice_id: str | None = None
    model: str | None = None
    language: str = "en-US"
    speed: float = 1.0
    reply_id: str = ""
    previous_text: str = ""


@dataclass(frozen=True, slots=True)
class SpeechChunk:
    """Audio in the provider's `audio_format`, played after the chunk before it. `words` are timed from the chunk's
    start.
    """

    audio: bytes
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice that an agent's `tts_voice_id` may name."""

    id: str
    name: str
    language: str
    gender: str | None = None


class TextToSpeechSettings(ProviderSettings):
    """Settings of a provider with a voice for each language. A provider derives its own settings from them."""

    voices: dict[LanguageTag, Annotated[str, StringConstraints(min_length=1)]] = Field(
        default={},
        description="Voice of each language (BCP 47), if an agent names none, or this provider replaces the agent's.",
    )

    def find_voice(self, language: str) -> str | None:
        """Return the voice of a language, or of the nearest one with the same base language; None without one."""
        nearest = find_nearest_language(language, tuple(self.voices))
        return None if nearest is None else self.voices[nearest]


class TextToSpeechProvider(Provider[SettingsT_co]):
    """Synthesizes speech in `audio_format`; the engine converts it to the call's format."""

    audio_format: ClassVar[AudioFormat] = PHONE_PCM

    @abstractmethod
    def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        """Yield the speech in chunks, the first as early as possible. Closing the iterator stops the synthesis.

        Raises `ProviderError`. If that happens before the first chunk, or no chunk comes within 0.7 seconds, the
        organization's next provider is asked. A sentence that breaks off later is requested once more.
        """

    @abstractmethod
    async def list_voices(self) -> Sequence[Voice]:
        """List the voices that `SpeechRequest.voice_id` may name. Raises `ProviderError`."""

    async def has_voice(self, voice_id: str) -> bool:
        """Return whether `voice_id` exists. Override it if there are voices that `list_voices` does not list.

        Raises `ProviderError` if that cannot be determined; the agent is then saved without this check.
        """
        return voice_id in {voice.id for voice in await self.list_voices()}
