"""Azure's transcription on the wire: its contract, requests, words, and errors."""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk import ProviderError, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract
from switchboard_speech.azure_speech import AzureSpeechToText, AzureTranscriptionSettings

from tests.speech.azure import REGION, AzureSpeech
from tests.speech.vendor import KEY, SENTENCE, in_use, receive_transcript, receive_utterance, synthesize_speech

REQUEST = TranscriptionRequest()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[AzureSpeech]:
    async with AzureSpeech.listening() as server:
        yield server


def create_transcriber(address: str, key: str = KEY) -> AzureSpeechToText:
    return AzureSpeechToText(
        AzureTranscriptionSettings(api_key=SecretStr(key), region=REGION, base_url=HttpUrl(address))
    )


class TestAzureTranscription(SpeechToTextContract[AzureSpeechToText]):
    @pytest.fixture
    def provider(self, server: AzureSpeech) -> AzureSpeechToText:
        return create_transcriber(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AzureSpeechToText]:
        return create_transcriber

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return synthesize_speech(), SENTENCE


@pytest_asyncio.fixture
async def open_provider(server: AzureSpeech) -> AsyncIterator[AzureSpeechToText]:
    async with in_use(create_transcriber(server.address)) as provider:
        yield provider


async def test_each_utterance_is_a_request(open_provider: AzureSpeechToText, server: AzureSpeech) -> None:
    stream = await open_provider.transcribe(TranscriptionRequest(hints=("Acme", "talk to a human")))
    for _ in range(2):
        await stream.send(synthesize_speech())
        await stream.finalize()
        interim, final, end = await receive_utterance(stream)
        assert (interim.text, interim.is_final) == ("can", False)
        assert (final.text, final.is_final, final.confidence) == (SENTENCE, True, 0.9)
        assert [(word.text, word.start_ms, word.end_ms) for word in final.words][:2] == [
            ("can", 0, 100),
            ("i", 100, 200),
        ]
        assert end.text == ""
    await stream.close()
    assert len(server.utterances) == 2
    assert server.config["recognition"] == "conversation"
    items = [{"text": "Acme"}, {"text": "talk to a human"}]
    assert server.utterances[0].context["dgi"] == {"groups": [{"type": "Generic", "items": items}]}


async def test_nothing_is_requested_without_audio(open_provider: AzureSpeechToText, server: AzureSpeech) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream.finalize()
    (end,) = await receive_utterance(stream)
    assert end.text == ""
    await stream.close()
    assert server.utterances == []


async def test_audio_after_a_request_that_azure_ended_begins_another(
    open_provider: AzureSpeechToText, server: AzureSpeech
) -> None:
    server.ends_requests = True
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(synthesize_speech())
    heard = await receive_transcript(stream)
    while not heard.is_final:
        heard = await receive_transcript(stream)
    assert not heard.finalized
    await stream.send(b"\xff" * 8000)
    await stream.finalize()
    (*_, end) = await receive_utterance(stream)
    assert end.finalized
    assert len(server.utterances) == 2
    await stream.close()


async def test_an_end_without_an_answer_does_not_hold_the_turn(
    open_provider: AzureSpeechToText, server: AzureSpeech
) -> None:
    server.answers = False
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(b"\xff" * 1600)
    await stream.finalize()
    (end,) = await receive_utterance(stream)
    assert (end.text, end.finalized) == ("", True)
    await stream.close()


@pytest.mark.parametrize(
    ("language", "locale"),
    [
        ("en", "en-US"), ("de-AT", "de-AT"), ("yue-HK", "zh-HK"), ("cmn-CN", "zh-CN"), ("no", "nb-NO"),
        ("nb-NO", "nb-NO"), ("fil-PH", "fil-PH"), ("iw-IL", "he-IL"), ("ga", "ga"), ("mul", "en-US"),
    ],
)  # fmt: skip
async def test_languages_have_a_region(
    open_provider: AzureSpeechToText, server: AzureSpeech, language: str, locale: str
) -> None:
    await (await open_provider.transcribe(TranscriptionRequest(language))).close()
    assert dict(server.requests[0].query)["language"] == locale


async def test_a_model_is_a_custom_deployment(open_provider: AzureSpeechToText, server: AzureSpeech) -> None:
    await (await open_provider.transcribe(TranscriptionRequest(model="our-deployment"))).close()
    assert dict(server.requests[0].query)["cid"] == "our-deployment"


@pytest.mark.parametrize(("status", "retryable"), [("Forbidden", False), ("TooManyRequests", True), ("Error", True)])
async def test_a_failed_phrase_ends_the_stream(
    open_provider: AzureSpeechToText, server: AzureSpeech, status: str, retryable: bool
) -> None:
    server.faults = [status]
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(b"\xff" * 800)
    with pytest.raises(ProviderError, match=status) as refused:
        await receive_transcript(stream)
    assert (refused.value.code, refused.value.retryable) == (status, retryable)
    await stream.close()


@pytest.mark.parametrize(("status", "retryable"), [(403, False), (429, True), (503, True)])
async def test_a_refused_stream_states_the_reason(
    open_provider: AzureSpeechToText, server: AzureSpeech, status: int, retryable: bool
) -> None:
    server.refusals = [status]
    with pytest.raises(ProviderError, match=str(status)) as refused:
        await open_provider.transcribe(REQUEST)
    assert (refused.value.code, refused.value.retryable) == (str(status), retryable)


async def test_a_wrong_key_is_reported(server: AzureSpeech) -> None:
    async with in_use(create_transcriber(server.address, "wrong")) as provider:
        with pytest.raises(ProviderError, match="401") as refused:
            await provider.check()
    assert not refused.value.retryable


async def test_a_dropped_stream_is_an_error(open_provider: AzureSpeechToText, server: AzureSpeech) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await server.drop()
    with pytest.raises(ProviderError, match="lost"):
        await receive_transcript(stream)
    await stream.close()


async def test_each_connection_has_an_id_of_its_own(open_provider: AzureSpeechToText, server: AzureSpeech) -> None:
    for _ in range(2):
        await (await open_provider.transcribe(REQUEST)).close()
    assert len(set(server.connection_ids)) == 2
