"""Cartesia on the wire: its contract, word times, reused sockets, and errors."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk import ProviderError, SpeechRequest
from switchboard.plugin_sdk.testing import TextToSpeechContract
from switchboard_speech.cartesia import CartesiaSettings, CartesiaTextToSpeech

from tests.speech.cartesia import VOICES, Cartesia
from tests.speech.vendor import KEY, SENTENCE, in_use, recognize_mulaw


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Cartesia]:
    async with Cartesia.listening() as server:
        yield server


def create_voice(address: str, key: str = KEY) -> CartesiaTextToSpeech:
    return CartesiaTextToSpeech(CartesiaSettings(api_key=SecretStr(key), base_url=HttpUrl(address)))


class TestCartesia(TextToSpeechContract[CartesiaTextToSpeech]):
    @pytest.fixture
    def provider(self, server: Cartesia) -> CartesiaTextToSpeech:
        return create_voice(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], CartesiaTextToSpeech]:
        return create_voice


@pytest_asyncio.fixture
async def open_provider(server: Cartesia) -> AsyncIterator[CartesiaTextToSpeech]:
    async with in_use(create_voice(server.address)) as provider:
        yield provider


async def synthesize(provider: CartesiaTextToSpeech, request: SpeechRequest) -> bytes:
    return b"".join([chunk.audio async for chunk in provider.synthesize(request)])


async def test_audio_is_mulaw_with_word_times(open_provider: CartesiaTextToSpeech) -> None:
    chunks = [chunk async for chunk in open_provider.synthesize(SpeechRequest(SENTENCE))]
    assert recognize_mulaw(b"".join(chunk.audio for chunk in chunks)) == SENTENCE
    position, starts, texts = 0, [], []
    for chunk in chunks:
        starts += [position + word.start_ms for word in chunk.words]
        texts += [word.text for word in chunk.words]
        position += len(chunk.audio) // 8
    assert " ".join(texts) == SENTENCE
    assert starts == sorted(starts)
    assert 500 < starts[-1] < position


async def test_a_request_has_the_agents_settings(open_provider: CartesiaTextToSpeech, server: Cartesia) -> None:
    await synthesize(open_provider, SpeechRequest("Hallo.", VOICES[1], "sonic-3.5", "de-DE", 0.1))
    order = server.orders[0]
    assert (order["model_id"], order["language"], order["voice"], order["generation_config"]) == (
        "sonic-3.5", "de", {"mode": "id", "id": VOICES[1]}, {"speed": 0.6},
    )  # fmt: skip
    await synthesize(open_provider, SpeechRequest("Hei.", language="nb-NO"))
    await synthesize(open_provider, SpeechRequest("Ciao.", language="mul"))
    assert (server.orders[1]["language"], "language" in server.orders[2]) == ("no", False)


@pytest.mark.parametrize(
    ("language", "code"),
    [("cmn-CN", "zh"), ("yue-HK", "zh"), ("fil-PH", "tl"), ("iw-IL", "he"), ("arb", "ar"), ("sr-RS", "hr")],
)
async def test_languages_have_cartesias_names(
    open_provider: CartesiaTextToSpeech, server: Cartesia, language: str, code: str
) -> None:
    await synthesize(open_provider, SpeechRequest("Hei.", language=language))
    assert server.orders[0]["language"] == code


async def test_a_socket_is_reused_for_later_texts_and_concurrent_texts_use_two(
    open_provider: CartesiaTextToSpeech, server: Cartesia
) -> None:
    for _ in range(3):
        assert await synthesize(open_provider, SpeechRequest("One."))
    assert server.opened == 1
    assert all(await asyncio.gather(*(synthesize(open_provider, SpeechRequest("Two.")) for _ in range(2))))
    assert server.opened == 2


async def test_an_abandoned_text_is_canceled_and_leaves_no_audio_for_the_next(
    open_provider: CartesiaTextToSpeech, server: Cartesia
) -> None:
    async with aclosing(open_provider.synthesize(SpeechRequest(SENTENCE))) as chunks:  # type: ignore[type-var]
        await anext(chunks)
    assert recognize_mulaw(await synthesize(open_provider, SpeechRequest("thank you"))) == "thank you"
    assert server.canceled == [server.orders[0]["context_id"]]
    assert server.opened == 1, "no handshake after an interruption"


@pytest.mark.parametrize("counts_from_sentences", [False, True])
async def test_the_sentences_of_a_reply_continue_one_context(
    open_provider: CartesiaTextToSpeech, server: Cartesia, counts_from_sentences: bool
) -> None:
    server.counts_from_sentences = counts_from_sentences
    for text in ("One moment, please.", SENTENCE):
        position, starts = 0, []
        async for chunk in open_provider.synthesize(SpeechRequest(text, reply_id="r1")):
            starts += [position + word.start_ms for word in chunk.words]
            position += len(chunk.audio) // 8
        assert 0 <= starts[0] < 100
        assert starts[-1] < position
    await synthesize(open_provider, SpeechRequest("Alone."))
    orders = [(order["context_id"] == "r1", order["continue"], order["transcript"]) for order in server.orders]
    assert orders == [(True, True, "One moment, please. "), (True, True, f"{SENTENCE} "), (False, False, "Alone.")]
    assert server.opened == 1


async def test_a_dead_pooled_socket_is_replaced_inaudibly(
    open_provider: CartesiaTextToSpeech, server: Cartesia
) -> None:
    assert await synthesize(open_provider, SpeechRequest("One."))
    await server.drop()
    assert await synthesize(open_provider, SpeechRequest("Two."))
    assert server.opened == 2


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [(402, "credit_limit_reached", False), (429, "too_many_requests", True), (500, "internal_error", True)],
)
async def test_a_refused_text_states_a_reason(
    open_provider: CartesiaTextToSpeech, server: Cartesia, status: int, code: str, retryable: bool
) -> None:
    server.faults = [status]
    with pytest.raises(ProviderError, match=r"\*\*\*") as refused:
        await synthesize(open_provider, SpeechRequest("Hello."))
    assert (refused.value.code, refused.value.retryable) == (code, retryable)
    assert await synthesize(open_provider, SpeechRequest("Hello."))


async def test_a_wrong_key_is_reported(server: Cartesia) -> None:
    provider = create_voice(server.address, "wrong")
    await provider.open()
    with pytest.raises(ProviderError) as error:
        await provider.check()
    assert (error.value.code, error.value.retryable) == ("unauthorized", False)
    with pytest.raises(ProviderError, match="401") as refused:
        await synthesize(provider, SpeechRequest("Hello."))
    assert not refused.value.retryable
    await provider.close()


async def test_a_single_voice_is_requested_by_id(open_provider: CartesiaTextToSpeech, server: Cartesia) -> None:
    assert await open_provider.has_voice(VOICES[-1])
    assert not await open_provider.has_voice("nobodys/voice")
    assert len(server.requests) == 2


async def test_all_pages_of_voices_are_listed(open_provider: CartesiaTextToSpeech) -> None:
    assert [voice.id for voice in await open_provider.list_voices()] == VOICES
