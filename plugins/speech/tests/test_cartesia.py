"""Cartesia over the wire: its contract, words and their times, sockets that are kept, errors."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk import ProviderError, SpeechRequest
from switchboard.plugin_sdk.testing import TextToSpeechContract
from switchboard_speech.cartesia import CartesiaSettings, CartesiaTextToSpeech

from tests.speech.cartesia import VOICES, Cartesia
from tests.speech.vendor import KEY, SENTENCE, in_use, understood


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Cartesia]:
    async with Cartesia.listening() as server:
        yield server


def voice(server: Cartesia, key: str = KEY) -> CartesiaTextToSpeech:
    return CartesiaTextToSpeech(CartesiaSettings(api_key=SecretStr(key), base_url=HttpUrl(server.address)))


class TestCartesia(TextToSpeechContract[CartesiaTextToSpeech]):
    @pytest.fixture
    def provider(self, server: Cartesia) -> CartesiaTextToSpeech:
        return voice(server)


@pytest_asyncio.fixture
async def opened(server: Cartesia) -> AsyncIterator[CartesiaTextToSpeech]:
    async with in_use(voice(server)) as provider:
        yield provider


async def heard(provider: CartesiaTextToSpeech, request: SpeechRequest) -> bytes:
    return b"".join([chunk.audio async for chunk in provider.synthesize(request)])


async def test_sound_comes_as_mulaw_and_each_word_with_its_time(opened: CartesiaTextToSpeech) -> None:
    chunks = [chunk async for chunk in opened.synthesize(SpeechRequest(SENTENCE))]
    assert await understood(b"".join(chunk.audio for chunk in chunks)) == SENTENCE
    begun, starts, texts = 0, [], []
    for chunk in chunks:
        starts += [begun + word.start_ms for word in chunk.words]
        texts += [word.text for word in chunk.words]
        begun += len(chunk.audio) // 8
    assert " ".join(texts) == SENTENCE
    assert starts == sorted(starts)
    assert 500 < starts[-1] < begun


async def test_what_the_agent_says_is_ordered(opened: CartesiaTextToSpeech, server: Cartesia) -> None:
    await heard(opened, SpeechRequest("Hallo.", VOICES[1], "sonic-3.5", "de-DE", 0.1))
    order = server.orders[0]
    assert (order["model_id"], order["language"], order["voice"], order["generation_config"]) == (
        "sonic-3.5", "de", {"mode": "id", "id": VOICES[1]}, {"speed": 0.6},
    )  # fmt: skip
    await heard(opened, SpeechRequest("Hei.", language="nb-NO"))
    await heard(opened, SpeechRequest("Ciao.", language="mul"))
    assert (server.orders[1]["language"], "language" in server.orders[2]) == ("no", False)


async def test_a_socket_serves_one_text_after_another_and_two_texts_have_two(
    opened: CartesiaTextToSpeech, server: Cartesia
) -> None:
    for _ in range(3):
        assert await heard(opened, SpeechRequest("One."))
    assert server.opened == 1
    assert all(await asyncio.gather(*(heard(opened, SpeechRequest("Two.")) for _ in range(2))))
    assert server.opened == 2


async def test_a_text_that_is_broken_off_leaves_no_sound_for_the_next(
    opened: CartesiaTextToSpeech, server: Cartesia
) -> None:
    async with aclosing(opened.synthesize(SpeechRequest(SENTENCE))) as chunks:  # type: ignore[type-var]
        await anext(chunks)
    async with asyncio.timeout(5):
        await server.left.wait()
    assert await understood(await heard(opened, SpeechRequest("thank you"))) == "thank you"
    assert server.opened == 2


async def test_a_kept_socket_that_died_is_replaced_unheard(opened: CartesiaTextToSpeech, server: Cartesia) -> None:
    assert await heard(opened, SpeechRequest("One."))
    await server.drop()
    assert await heard(opened, SpeechRequest("Two."))
    assert server.opened == 2


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [(402, "credit_limit_reached", False), (429, "too_many_requests", True), (500, "internal_error", True)],
)
async def test_a_refused_text_says_why(
    opened: CartesiaTextToSpeech, server: Cartesia, status: int, code: str, retryable: bool
) -> None:
    server.faults = [status]
    with pytest.raises(ProviderError, match=r"\*\*\*") as refused:
        await heard(opened, SpeechRequest("Hello."))
    assert (refused.value.code, refused.value.retryable) == (code, retryable)
    assert await heard(opened, SpeechRequest("Hello."))


async def test_a_wrong_key_is_found(server: Cartesia) -> None:
    provider = voice(server, "wrong")
    await provider.open()
    with pytest.raises(ProviderError) as checked:
        await provider.check()
    assert (checked.value.code, checked.value.retryable) == ("unauthorized", False)
    with pytest.raises(ProviderError, match="401") as refused:
        await heard(provider, SpeechRequest("Hello."))
    assert not refused.value.retryable
    await provider.close()


async def test_one_voice_is_asked_for_by_itself(opened: CartesiaTextToSpeech, server: Cartesia) -> None:
    assert await opened.has_voice(VOICES[-1])
    assert not await opened.has_voice("nobodys/voice")
    assert len(server.asked) == 2


async def test_all_pages_of_voices_are_listed(opened: CartesiaTextToSpeech) -> None:
    assert [found.id for found in await opened.voices()] == VOICES
