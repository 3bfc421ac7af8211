"""Every speech provider with its vendor's test server, ready for a call."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk import Provider, ProviderSettings, SpeechToTextProvider, TextToSpeechProvider
from switchboard_llm.client import LiteLLMSettings
from switchboard_llm.transcription import TRANSCRIBERS
from switchboard_llm.voices import VOICES, VoiceSettings
from switchboard_offline.espeak import EspeakTextToSpeech
from switchboard_offline.pocketsphinx import PocketsphinxSpeechToText
from switchboard_speech.assemblyai import AssemblyAISettings, AssemblyAISpeechToText
from switchboard_speech.cartesia import CartesiaSettings, CartesiaTextToSpeech
from switchboard_speech.deepgram import (
    DeepgramSettings,
    DeepgramSpeechToText,
    DeepgramTextToSpeech,
    DeepgramVoiceSettings,
)
from switchboard_speech.elevenlabs import ElevenLabsSettings, ElevenLabsTextToSpeech

from tests.speech.assemblyai import AssemblyAI
from tests.speech.cartesia import Cartesia
from tests.speech.deepgram import Deepgram
from tests.speech.elevenlabs import ElevenLabs
from tests.speech.openai import OpenAI
from tests.speech.vendor import KEY, SpeechVendor, in_use

Ears: TypeAlias = SpeechToTextProvider[ProviderSettings]
Mouth: TypeAlias = TextToSpeechProvider[ProviderSettings]
Named = TypeVar("Named", bound=type[Provider[ProviderSettings]])
SECRET: Final = SecretStr(KEY)


def _compatible(kinds: Iterable[Named]) -> Named:
    return next(kind for kind in kinds if kind.name == "openai_compatible")


EARS: Final[dict[str, tuple[type[SpeechVendor] | None, Callable[[str], Ears]]]] = {
    "pocketsphinx": (None, lambda _: PocketsphinxSpeechToText(ProviderSettings())),
    "deepgram": (Deepgram, lambda url: DeepgramSpeechToText(DeepgramSettings(api_key=SECRET, base_url=HttpUrl(url)))),
    "assemblyai": (
        AssemblyAI,
        lambda url: AssemblyAISpeechToText(
            AssemblyAISettings(api_key=SECRET, base_url=HttpUrl(url), api_url=HttpUrl(url))
        ),
    ),
    "openai_compatible": (
        OpenAI,
        lambda url: _compatible(TRANSCRIBERS)(LiteLLMSettings(api_key=SECRET, base_url=f"{url}/v1", model="whisper")),
    ),
}
MOUTHS: Final[dict[str, tuple[type[SpeechVendor] | None, Callable[[str], Mouth]]]] = {
    "espeak": (None, lambda _: EspeakTextToSpeech(ProviderSettings())),
    "deepgram": (
        Deepgram,
        lambda url: DeepgramTextToSpeech(DeepgramVoiceSettings(api_key=SECRET, base_url=HttpUrl(url))),
    ),
    "elevenlabs": (
        ElevenLabs,
        lambda url: ElevenLabsTextToSpeech(ElevenLabsSettings(api_key=SECRET, base_url=HttpUrl(url))),
    ),
    "cartesia": (Cartesia, lambda url: CartesiaTextToSpeech(CartesiaSettings(api_key=SECRET, base_url=HttpUrl(url)))),
    "openai_compatible": (OpenAI, lambda url: _compatible(VOICES)(VoiceSettings(api_key=SECRET, base_url=f"{url}/v1"))),
}


@dataclass(frozen=True, slots=True)
class Speech:
    """Opened speech-to-text and text-to-speech providers.

    `ear` is the transcribing vendor, None for local recognition.
    """

    ears: Ears
    mouth: Mouth
    ear: SpeechVendor | None


@asynccontextmanager
async def speech(hears: str, speaks: str) -> AsyncIterator[Speech]:
    """Open the providers of these names."""
    async with AsyncExitStack() as stack:
        (ear_kind, make_ears), (mouth_kind, make_mouth) = EARS[hears], MOUTHS[speaks]
        ear = await stack.enter_async_context(ear_kind.listening()) if ear_kind else None
        mouth = await stack.enter_async_context(mouth_kind.listening()) if mouth_kind else None
        ears = await stack.enter_async_context(in_use(make_ears(ear.address if ear else "")))
        yield Speech(ears, await stack.enter_async_context(in_use(make_mouth(mouth.address if mouth else ""))), ear)
