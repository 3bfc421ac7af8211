"""Google's transcription over gRPC: its contract, requests, words, languages, and errors."""

import json
from collections.abc import AsyncIterator, Callable

import grpc
import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr, ValidationError
from switchboard.plugin_sdk import ProviderError, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract
from switchboard_speech.google_speech import GoogleSpeechToText, GoogleTranscriptionSettings

from tests.fixtures.cloud_servers import ACCOUNT, PROJECT
from tests.fixtures.eventually import eventually
from tests.speech.google import ACCOUNT_FILE
from tests.speech.google_recognizer import GoogleRecognizer
from tests.speech.vendor import SENTENCE, in_use, receive_transcript, receive_utterance, synthesize_speech

REQUEST = TranscriptionRequest()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[GoogleRecognizer]:
    async with GoogleRecognizer.listening() as server:
        yield server


def create_transcriber(address: str, **settings: object) -> GoogleSpeechToText:
    given = {"service_account": ACCOUNT_FILE, "project": PROJECT, "base_url": HttpUrl(address), **settings}
    return GoogleSpeechToText(GoogleTranscriptionSettings.model_validate(given))


class TestGoogleTranscription(SpeechToTextContract[GoogleSpeechToText]):
    @pytest.fixture
    def provider(self, server: GoogleRecognizer) -> GoogleSpeechToText:
        return create_transcriber(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], GoogleSpeechToText]:
        return create_transcriber

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return synthesize_speech(), SENTENCE


@pytest_asyncio.fixture
async def open_provider(server: GoogleRecognizer) -> AsyncIterator[GoogleSpeechToText]:
    async with in_use(create_transcriber(server.address)) as provider:
        yield provider


async def test_each_utterance_is_a_request(open_provider: GoogleSpeechToText, server: GoogleRecognizer) -> None:
    stream = await open_provider.transcribe(TranscriptionRequest(hints=("Acme", "x" * 101)))
    audio = synthesize_speech()
    for _ in range(2):
        for start in range(0, len(audio), 160):
            await stream.send(audio[start : start + 160])
        await stream.finalize()
        interim, final, end = await receive_utterance(stream)
        assert (interim.text, interim.is_final) == ("can you", False)
        assert (final.text, final.is_final) == (SENTENCE, True)
        assert final.confidence == pytest.approx(0.9)
        words = [(word.text, word.start_ms, word.end_ms) for word in final.words]
        assert words[:2] == [("can", 0, 100), ("i", 100, 200)]
        assert end.text == ""
    await stream.close()
    first, second = server.configs
    assert first == second
    (phrase_set,) = first.adaptation.phrase_sets
    assert [phrase.value for phrase in phrase_set.inline_phrase_set.phrases] == ["Acme"]
    assert max(server.sizes) == 800


async def test_nothing_is_requested_without_audio(open_provider: GoogleSpeechToText, server: GoogleRecognizer) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream.finalize()
    (end,) = await receive_utterance(stream)
    assert end.text == ""
    await stream.close()
    assert server.configs == []


async def test_audio_after_a_request_that_google_ended_begins_another(
    open_provider: GoogleSpeechToText, server: GoogleRecognizer
) -> None:
    server.ends_requests = True
    stream = await open_provider.transcribe(REQUEST)
    audio = synthesize_speech()
    for start in range(0, len(audio), 800):
        await stream.send(audio[start : start + 800])
    heard = await receive_transcript(stream)
    while not heard.is_final:
        heard = await receive_transcript(stream)
    assert not heard.finalized

    async def go_on() -> int:
        await stream.send(b"\xff" * 800)
        return len(server.configs)

    await eventually(go_on, lambda requests: requests == 2)
    await stream.finalize()
    assert (await receive_utterance(stream))[-1].finalized
    await stream.close()


async def test_an_end_without_an_answer_does_not_hold_the_turn(
    open_provider: GoogleSpeechToText, server: GoogleRecognizer
) -> None:
    server.answers = False
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(b"\xff" * 1600)
    await stream.finalize()
    (end,) = await receive_utterance(stream)
    assert (end.text, end.finalized) == ("", True)
    await stream.close()


@pytest.mark.parametrize(
    ("language", "codes"),
    [
        ("en-GB", ["en-GB"]), ("de", ["de-DE"]), ("cmn-CN", ["cmn-Hans-CN"]), ("yue", ["yue-Hant-HK"]),
        ("nb", ["no-NO"]), ("mul", ["en-US", "de-DE"]),
    ],
)  # fmt: skip
async def test_languages_have_googles_names(server: GoogleRecognizer, language: str, codes: list[str]) -> None:
    async with in_use(create_transcriber(server.address, language_codes=["en-US", "de-DE"])) as provider:
        stream = await provider.transcribe(TranscriptionRequest(language, model="chirp_3"))
        await stream.send(b"\xff" * 800)
        await stream.finalize()
        await receive_utterance(stream)
        await stream.close()
    assert (list(server.configs[0].language_codes), server.configs[0].model) == (codes, "chirp_3")


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, False),
        (grpc.StatusCode.INVALID_ARGUMENT, False),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, True),
        (grpc.StatusCode.UNAVAILABLE, True),
    ],
)
async def test_a_refused_utterance_states_the_reason(
    open_provider: GoogleSpeechToText, server: GoogleRecognizer, code: grpc.StatusCode, retryable: bool
) -> None:
    server.faults = [code]
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(b"\xff" * 800)
    with pytest.raises(ProviderError, match="refused as planned") as refused:
        await receive_transcript(stream)
    assert (refused.value.code, refused.value.retryable) == (code.name, retryable)
    await stream.close()


async def test_an_account_that_google_does_not_know_is_reported(server: GoogleRecognizer) -> None:
    stranger = SecretStr(json.dumps({**ACCOUNT, "client_email": "stranger@elsewhere.example"}))
    async with in_use(create_transcriber(server.address, service_account=stranger)) as provider:
        with pytest.raises(ProviderError, match="invalid authentication") as refused:
            await provider.check()
    assert (refused.value.code, refused.value.retryable) == ("UNAUTHENTICATED", False)


async def test_a_project_that_does_not_exist_is_reported(server: GoogleRecognizer) -> None:
    async with in_use(create_transcriber(server.address, project="another")) as provider:
        with pytest.raises(ProviderError, match="no projects/another") as refused:
            await provider.check()
    assert not refused.value.retryable


async def test_a_dropped_stream_is_an_error(open_provider: GoogleSpeechToText, server: GoogleRecognizer) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(b"\xff" * 800)
    await server.drop()

    async def go_on() -> bool:
        try:
            await stream.send(b"\xff" * 800)
        except ProviderError:
            return True
        return False

    await eventually(go_on)
    with pytest.raises(ProviderError) as lost:
        await receive_transcript(stream)
    assert lost.value.retryable
    await stream.close()


@pytest.mark.parametrize("project", ["", "a/locations/b", "a b"])
def test_a_project_is_a_name(project: str) -> None:
    with pytest.raises(ValidationError, match="project"):
        GoogleTranscriptionSettings(service_account=ACCOUNT_FILE, project=project)
