"""Azure's voices on the wire: their contract, markup, and errors."""

from collections.abc import AsyncIterator, Callable
from xml.etree import ElementTree as ET

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr, ValidationError
from switchboard.plugin_sdk import ProviderError, SpeechRequest
from switchboard.plugin_sdk.testing import TextToSpeechContract
from switchboard_speech.azure_speech import AzureTextToSpeech, AzureVoiceSettings

from tests.speech.azure import LANGUAGE, REGION, SPEECH, AzureSpeech
from tests.speech.vendor import KEY, SENTENCE, in_use, recognize_mulaw


@pytest_asyncio.fixture
async def server() -> AsyncIterator[AzureSpeech]:
    async with AzureSpeech.listening() as server:
        yield server


def create_voice(address: str, key: str = KEY) -> AzureTextToSpeech:
    return AzureTextToSpeech(AzureVoiceSettings(api_key=SecretStr(key), region=REGION, base_url=HttpUrl(address)))


class TestAzureVoice(TextToSpeechContract[AzureTextToSpeech]):
    @pytest.fixture
    def provider(self, server: AzureSpeech) -> AzureTextToSpeech:
        return create_voice(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AzureTextToSpeech]:
        return create_voice


@pytest_asyncio.fixture
async def open_provider(server: AzureSpeech) -> AsyncIterator[AzureTextToSpeech]:
    async with in_use(create_voice(server.address)) as provider:
        yield provider


async def synthesize(provider: AzureTextToSpeech, request: SpeechRequest) -> bytes:
    return b"".join([chunk.audio async for chunk in provider.synthesize(request)])


def find(document: ET.Element, tag: str) -> ET.Element:
    element = document.find(f".//{SPEECH}{tag}")
    assert element is not None
    return element


async def test_audio_is_mulaw(open_provider: AzureTextToSpeech) -> None:
    assert recognize_mulaw(await synthesize(open_provider, SpeechRequest(SENTENCE))) == SENTENCE


async def test_texts_are_escaped(open_provider: AzureTextToSpeech, server: AzureSpeech) -> None:
    text = """Less < more & "quotes" </voice><break time="9s"/>"""
    await synthesize(open_provider, SpeechRequest(f"{text}\x00\x0b"))
    assert find(server.spoken[0], "lang").text == text


async def test_a_request_has_the_agents_settings(open_provider: AzureTextToSpeech, server: AzureSpeech) -> None:
    await synthesize(open_provider, SpeechRequest("Hola.", language="es-MX", speed=3.0))
    assert find(server.spoken[0], "lang").attrib == {LANGUAGE: "es-MX"}, "the voice is multilingual"
    assert find(server.spoken[0], "prosody").attrib == {"rate": "2.0"}
    await synthesize(open_provider, SpeechRequest("Hallo.", "de-DE-KatjaNeural", language="de-DE"))
    assert find(server.spoken[1], "voice").attrib == {"name": "de-DE-KatjaNeural"}
    assert find(server.spoken[1], "voice").text == "Hallo."


@pytest.mark.parametrize(("status", "retryable"), [(400, False), (403, False), (429, True), (500, True)])
async def test_refusals_precede_any_audio_and_have_the_vendors_words(
    open_provider: AzureTextToSpeech, server: AzureSpeech, status: int, retryable: bool
) -> None:
    server.refusals = [status]
    with pytest.raises(ProviderError, match=r"\*\*\*") as refused:
        await synthesize(open_provider, SpeechRequest("Hello."))
    assert (refused.value.code, refused.value.retryable) == (str(status), retryable)


async def test_an_interrupted_response_is_an_error(open_provider: AzureTextToSpeech, server: AzureSpeech) -> None:
    server.breaks = True
    with pytest.raises(ProviderError, match="connection failed"):
        await synthesize(open_provider, SpeechRequest(SENTENCE))


async def test_a_wrong_key_is_reported(server: AzureSpeech) -> None:
    async with in_use(create_voice(server.address, "wrong")) as provider:
        with pytest.raises(ProviderError) as refused:
            await provider.check()
    assert (refused.value.code, refused.value.retryable) == ("401", False)


async def test_voices_have_names(open_provider: AzureTextToSpeech) -> None:
    first, _ = await open_provider.list_voices()
    assert (first.id, first.name, first.language, first.gender) == (
        "en-US-AvaMultilingualNeural", "Ava", "en-US", "female",
    )  # fmt: skip
    assert not await open_provider.has_voice("nobody")


@pytest.mark.parametrize("region", ["", "west europe", "evil.example/"])
def test_a_region_is_a_name(region: str) -> None:
    with pytest.raises(ValidationError, match="region"):
        AzureVoiceSettings(api_key=SecretStr(KEY), region=region)
