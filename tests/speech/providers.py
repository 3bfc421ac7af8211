"""Every speech provider with its vendor's test server, ready for a call."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk import Provider, ProviderSettings, SpeechToTextProvider, TextToSpeechProvider
from switchboard_llm.transcription import TRANSCRIBERS
from switchboard_llm.vendor_api import VendorSettings
from switchboard_llm.voices import VOICES, VoiceSettings
from switchboard_offline.espeak import EspeakTextToSpeech
from switchboard_offline.pocketsphinx import PocketsphinxSpeechToText
from switchboard_speech.assemblyai import AssemblyAISettings, AssemblyAISpeechToText
from switchboard_speech.azure_speech import (
    AzureSpeechToText,
    AzureTextToSpeech,
    AzureTranscriptionSettings,
    AzureVoiceSettings,
)
from switchboard_speech.cartesia import CartesiaSettings, CartesiaSpeechToText, CartesiaTextToSpeech, InkSettings
from switchboard_speech.deepgram import (
    DeepgramSettings,
    DeepgramSpeechToText,
    DeepgramTextToSpeech,
    DeepgramVoiceSettings,
)
from switchboard_speech.elevenlabs import (
    ElevenLabsSettings,
    ElevenLabsSpeechToText,
    ElevenLabsTextToSpeech,
    ScribeSettings,
)
from switchboard_speech.google_speech import GoogleTextToSpeech, GoogleVoiceSettings

from tests.speech.assemblyai import AssemblyAI
from tests.speech.azure import REGION, AzureSpeech
from tests.speech.cartesia import Cartesia
from tests.speech.deepgram import Deepgram
from tests.speech.elevenlabs import ElevenLabs
from tests.speech.google import ACCOUNT_FILE, GoogleSpeech
from tests.speech.openai import OpenAI
from tests.speech.vendor import KEY, SpeechVendor, in_use

AnySpeechToText: TypeAlias = SpeechToTextProvider[ProviderSettings]
AnyTextToSpeech: TypeAlias = TextToSpeechProvider[ProviderSettings]
Named = TypeVar("Named", bound=type[Provider[ProviderSettings]])
SECRET: Final = SecretStr(KEY)


def _compatible(kinds: Iterable[Named]) -> Named:
    return next(kind for kind in kinds if kind.name == "openai_compatible")


SPEECH_TO_TEXT: Final[dict[str, tuple[type[SpeechVendor] | None, Callable[[str], AnySpeechToText]]]] = {
    "pocketsphinx": (None, lambda _: PocketsphinxSpeechToText(ProviderSettings())),
    "deepgram": (Deepgram, lambda url: DeepgramSpeechToText(DeepgramSettings(api_key=SECRET, base_url=HttpUrl(url)))),
    "deepgram_flux": (
        Deepgram,
        lambda url: DeepgramSpeechToText(
            DeepgramSettings(api_key=SECRET, base_url=HttpUrl(url), model="flux-general-en")
        ),
    ),
    "assemblyai_turns": (
        AssemblyAI,
        lambda url: AssemblyAISpeechToText(
            AssemblyAISettings(api_key=SECRET, base_url=HttpUrl(url), api_url=HttpUrl(url), turn_detection=True)
        ),
    ),
    "assemblyai": (
        AssemblyAI,
        lambda url: AssemblyAISpeechToText(
            AssemblyAISettings(api_key=SECRET, base_url=HttpUrl(url), api_url=HttpUrl(url))
        ),
    ),
    "azure_speech": (
        AzureSpeech,
        lambda url: AzureSpeechToText(AzureTranscriptionSettings(api_key=SECRET, region=REGION, base_url=HttpUrl(url))),
    ),
    "cartesia": (Cartesia, lambda url: CartesiaSpeechToText(InkSettings(api_key=SECRET, base_url=HttpUrl(url)))),
    "elevenlabs": (
        ElevenLabs,
        lambda url: ElevenLabsSpeechToText(ScribeSettings(api_key=SECRET, base_url=HttpUrl(url))),
    ),
    "openai_compatible": (
        OpenAI,
        lambda url: _compatible(TRANSCRIBERS)(VendorSettings(api_key=SECRET, base_url=f"{url}/v1", model="whisper")),
    ),
}
TEXT_TO_SPEECH: Final[dict[str, tuple[type[SpeechVendor] | None, Callable[[str], AnyTextToSpeech]]]] = {
    "espeak": (None, lambda _: EspeakTextToSpeech(ProviderSettings())),
    "deepgram": (
        Deepgram,
        lambda url: DeepgramTextToSpeech(DeepgramVoiceSettings(api_key=SECRET, base_url=HttpUrl(url))),
    ),
    "elevenlabs": (
        ElevenLabs,
        lambda url: ElevenLabsTextToSpeech(ElevenLabsSettings(api_key=SECRET, base_url=HttpUrl(url))),
    ),
    "azure_speech": (
        AzureSpeech,
        lambda url: AzureTextToSpeech(AzureVoiceSettings(api_key=SECRET, region=REGION, base_url=HttpUrl(url))),
    ),
    "cartesia": (Cartesia, lambda url: CartesiaTextToSpeech(CartesiaSettings(api_key=SECRET, base_url=HttpUrl(url)))),
    "google_speech": (
        GoogleSpeech,
        lambda url: GoogleTextToSpeech(GoogleVoiceSettings(service_account=ACCOUNT_FILE, base_url=HttpUrl(url))),
    ),
    "openai_compatible": (OpenAI, lambda url: _compatible(VOICES)(VoiceSettings(api_key=SECRET, base_url=f"{url}/v1"))),
}


@dataclass(frozen=True, slots=True)
class Speech:
    """Opened speech-to-text and text-to-speech providers.

    `stt_vendor` is the transcribing vendor, None for local recognition.
    """

    speech_to_text: AnySpeechToText
    text_to_speech: AnyTextToSpeech
    stt_vendor: SpeechVendor | None


@asynccontextmanager
async def open_speech_providers(hears: str, speaks: str) -> AsyncIterator[Speech]:
    """Open the providers of these names."""
    async with AsyncExitStack() as stack:
        (stt_kind, create_stt), (tts_kind, create_tts) = SPEECH_TO_TEXT[hears], TEXT_TO_SPEECH[speaks]
        stt_vendor = await stack.enter_async_context(stt_kind.listening()) if stt_kind else None
        tts_vendor = await stack.enter_async_context(tts_kind.listening()) if tts_kind else None
        speech_to_text = await stack.enter_async_context(in_use(create_stt(stt_vendor.address if stt_vendor else "")))
        yield Speech(
            speech_to_text,
            await stack.enter_async_context(in_use(create_tts(tts_vendor.address if tts_vendor else ""))),
            stt_vendor,
        )
