"""The voice of a language: where an agent names none, and where another vendor stands in."""

import re
from collections.abc import Callable

import pytest
from pydantic import HttpUrl, SecretStr, ValidationError
from switchboard.engine.providers.checks import check_voices
from switchboard.engine.providers.failover import HEDGE_AFTER_SECONDS, FailoverTextToSpeech
from switchboard.engine.providers.health import ServiceRecord
from switchboard.plugin_sdk import ProviderError, ProviderSettings, SpeechRequest, TextToSpeechProvider
from switchboard_speech.deepgram import DeepgramTextToSpeech, DeepgramVoiceSettings
from switchboard_speech.elevenlabs import ElevenLabsSettings, ElevenLabsTextToSpeech

from tests.fixtures.conversation import list_candidates
from tests.speech.azure import AzureSpeech
from tests.speech.cartesia import VOICES as CARTESIA_VOICES
from tests.speech.cartesia import Cartesia
from tests.speech.deepgram import Deepgram
from tests.speech.elevenlabs import ElevenLabs
from tests.speech.google import GoogleSpeech
from tests.speech.openai import OpenAI
from tests.speech.providers import TEXT_TO_SPEECH
from tests.speech.vendor import KEY, SpeechVendor, in_use

APOLLO, SARAH = "aura-2-apollo-en", "EXAVITQu4vr4xnSDxMaL"


async def synthesize(provider: TextToSpeechProvider[ProviderSettings], request: SpeechRequest) -> None:
    assert [chunk async for chunk in provider.synthesize(request)]


def read_deepgram_voice(vendor: SpeechVendor) -> str:
    return dict(vendor.requests[-1].query)["model"]


def read_elevenlabs_voice(vendor: SpeechVendor) -> str:
    return vendor.requests[-1].path.split("/")[3]


def read_cartesia_voice(vendor: SpeechVendor) -> str:
    assert isinstance(vendor, Cartesia)
    voice = vendor.orders[-1]["voice"]
    assert isinstance(voice, dict)
    return str(voice["id"])


def read_azure_voice(vendor: SpeechVendor) -> str:
    assert isinstance(vendor, AzureSpeech)
    return vendor.spoken[-1][0].attrib["name"]


def read_google_voice(vendor: SpeechVendor) -> str:
    voice = vendor.requests[-1].body["voice"]
    assert isinstance(voice, dict)
    return str(voice["name"])


def read_openai_voice(vendor: SpeechVendor) -> str:
    return str(vendor.requests[-1].body["voice"])


@pytest.mark.parametrize(
    ("name", "kind", "voice", "read_voice"),
    [
        ("deepgram", Deepgram, APOLLO, read_deepgram_voice),
        ("elevenlabs", ElevenLabs, SARAH, read_elevenlabs_voice),
        ("cartesia", Cartesia, CARTESIA_VOICES[1], read_cartesia_voice),
        ("azure_speech", AzureSpeech, "de-DE-KatjaNeural", read_azure_voice),
        ("google_speech", GoogleSpeech, "de-DE-Chirp3-HD-Kore", read_google_voice),
        ("openai_compatible", OpenAI, "echo", read_openai_voice),
    ],
)
async def test_an_agent_without_a_voice_has_that_of_its_language(
    name: str, kind: type[SpeechVendor], voice: str, read_voice: Callable[[SpeechVendor], str]
) -> None:
    async with kind.listening() as vendor:
        usual = TEXT_TO_SPEECH[name][1](vendor.address)
        settings = usual.settings.model_copy(update={"voices": {"de": voice}})
        async with in_use(type(usual)(settings)) as provider:
            await synthesize(provider, SpeechRequest("Guten Tag.", language="de-AT"))
            assert read_voice(vendor) == voice
            await synthesize(provider, SpeechRequest("Hello."))
            default = read_voice(vendor)
            assert default != voice
            await synthesize(provider, SpeechRequest("Guten Tag.", default, language="de-AT"))
            assert read_voice(vendor) == default, "an agent's own voice comes first"


async def test_a_vendor_that_stands_in_has_its_voice_of_the_language() -> None:
    async with ElevenLabs.listening() as first, Deepgram.listening() as second:
        key = SecretStr(KEY)
        chosen = ElevenLabsTextToSpeech(ElevenLabsSettings(api_key=key, base_url=HttpUrl(first.address)))
        other = DeepgramTextToSpeech(
            DeepgramVoiceSettings(api_key=key, base_url=HttpUrl(second.address), voices={"de": APOLLO})
        )
        first.refusals = [503, 503]
        async with in_use(chosen), in_use(other):
            for language in ("de-DE", "en-US"):
                voices = FailoverTextToSpeech(
                    list_candidates(chosen, other), ServiceRecord(), hedge_after_seconds=HEDGE_AFTER_SECONDS
                )
                await synthesize(voices, SpeechRequest("Hallo.", SARAH, language=language))
        assert [dict(request.query)["model"] for request in second.requests] == [APOLLO, "aura-2-thalia-en"]


async def test_a_check_names_a_voice_that_does_not_exist() -> None:
    async with ElevenLabs.listening() as vendor:
        settings = ElevenLabsSettings(
            api_key=SecretStr(KEY), base_url=HttpUrl(vendor.address), voices={"de": SARAH, "es": "nobody"}
        )
        async with in_use(ElevenLabsTextToSpeech(settings)) as provider:
            with pytest.raises(ProviderError, match=re.escape("ElevenLabs has no voice nobody (voices.es)")):
                await check_voices(provider)


@pytest.mark.parametrize("voices", [{"german!": APOLLO}, {"de": ""}])
def test_a_language_is_a_tag_and_a_voice_has_a_name(voices: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="voices"):
        DeepgramVoiceSettings(api_key=SecretStr(KEY), voices=voices)
