"""The contract of capability `text_to_speech`."""

import asyncio
from contextlib import aclosing
from typing import Final, TypeVar

import pytest

from switchboard.plugin_sdk.provider import ProviderError, ProviderSettings
from switchboard.plugin_sdk.testing.contract import ProviderContract
from switchboard.plugin_sdk.text_to_speech import SpeechChunk, SpeechRequest, TextToSpeechProvider

AnyTextToSpeech = TypeVar("AnyTextToSpeech", bound=TextToSpeechProvider[ProviderSettings])
ANSWER_SECONDS: Final = 20.0
CALLS: Final = 3
SENTENCE = "Good morning, this is a short sentence."


async def synthesize_chunks(provider: AnyTextToSpeech, request: SpeechRequest) -> list[SpeechChunk]:
    """Return all chunks of a synthesis."""
    return [chunk async for chunk in provider.synthesize(request)]


class TextToSpeechContract(ProviderContract[AnyTextToSpeech]):
    """Rules of every voice. Override `provider`."""

    @pytest.fixture
    def unknown_voice(self) -> str:
        """Id of a voice that the provider does not have."""
        return "no-such-voice"

    async def use(self, provider: AnyTextToSpeech) -> None:
        """Say a sentence."""
        await synthesize_chunks(provider, SpeechRequest(SENTENCE))

    async def test_text_becomes_sound_of_a_sensible_length(self, open_provider: AnyTextToSpeech) -> None:
        """If this fails, compare the audio with `audio_format`: a wrong sample rate or width makes it too short or too
        long.
        """
        audio = b"".join(chunk.audio for chunk in await synthesize_chunks(open_provider, SpeechRequest(SENTENCE)))
        assert 1.0 < len(audio) / open_provider.audio_format.bytes_per_second < 8.0
        assert len(set(audio)) > 10

    async def test_slower_speech_is_longer(self, open_provider: AnyTextToSpeech) -> None:
        """Agents have a `voice_speed`. If this fails, pass `speed` to the vendor."""
        slow = await synthesize_chunks(open_provider, SpeechRequest(SENTENCE, speed=0.6))
        fast = await synthesize_chunks(open_provider, SpeechRequest(SENTENCE, speed=1.7))
        assert sum(len(chunk.audio) for chunk in slow) > sum(len(chunk.audio) for chunk in fast)

    async def test_words_lie_within_the_audio_and_in_order(self, open_provider: AnyTextToSpeech) -> None:
        """Word times cut the transcript of an interrupted reply.

        If this fails, count milliseconds from the chunk's own start.
        """
        begun = 0.0
        for chunk in await synthesize_chunks(open_provider, SpeechRequest(SENTENCE)):
            starts = [begun + word.start_ms for word in chunk.words]
            assert starts == sorted(starts)
            begun += len(chunk.audio) * 1000 / open_provider.audio_format.bytes_per_second

    async def test_stopping_early_is_harmless(self, open_provider: AnyTextToSpeech) -> None:
        """Callers interrupt. If this fails, release resources when the iterator is closed."""
        async with aclosing(open_provider.synthesize(SpeechRequest(SENTENCE * 5))) as chunks:  # type: ignore[type-var]
            await anext(chunks)
        assert await synthesize_chunks(open_provider, SpeechRequest("Again."))

    async def test_calls_do_not_wait_for_one_another(self, open_provider: AnyTextToSpeech) -> None:
        """One instance serves all calls of an organization.

        If this fails, keep no state of a synthesis in the provider, and no lock around a synthesis.
        """
        held = open_provider.synthesize(SpeechRequest(SENTENCE * 5))
        async with asyncio.timeout(ANSWER_SECONDS), aclosing(held) as chunks:  # type: ignore[type-var]
            await anext(chunks)
            others = [synthesize_chunks(open_provider, SpeechRequest(SENTENCE)) for _ in range(CALLS)]
            assert all(await asyncio.gather(*others))

    async def test_an_unknown_voice_is_an_error_before_any_sound(
        self, open_provider: AnyTextToSpeech, unknown_voice: str
    ) -> None:
        """The next provider is tried after an early error.

        If this fails, raise `ProviderError` before the first chunk, and check the result of `has_voice`.
        """
        assert not await open_provider.has_voice(unknown_voice)
        with pytest.raises(ProviderError):
            await synthesize_chunks(open_provider, SpeechRequest(SENTENCE, voice_id=unknown_voice))

    async def test_its_voices_can_be_used(self, open_provider: AnyTextToSpeech) -> None:
        """An agent's `tts_voice_id` names a voice. If this fails, list the ids that `synthesize` accepts."""
        voices = await open_provider.list_voices()
        assert len({voice.id for voice in voices}) == len(voices) > 0
        assert await open_provider.has_voice(voices[0].id)
        assert await synthesize_chunks(open_provider, SpeechRequest(SENTENCE, voice_id=voices[0].id))
