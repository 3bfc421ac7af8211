"""The contract of capability `speech_to_text`."""

import asyncio
from typing import TypeVar

import pytest

from switchboard.plugin_sdk.provider import ProviderSettings
from switchboard.plugin_sdk.speech_to_text import (
    SpeechToTextProvider,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
)
from switchboard.plugin_sdk.testing.contract import ProviderContract

AnySpeechToText = TypeVar("AnySpeechToText", bound=SpeechToTextProvider[ProviderSettings])
ANSWER_SECONDS = 20.0
SILENCE_SECONDS = 0.5


async def collect_final_text(stream: SpeechToTextStream) -> tuple[str, Transcript]:
    """Return the final text of the finalized utterance, and the transcript that ended it."""
    texts = []
    async with asyncio.timeout(ANSWER_SECONDS):
        async for transcript in stream:
            if transcript.is_final and transcript.text:
                texts.append(transcript.text)
            if transcript.finalized:
                return " ".join(texts), transcript
    raise AssertionError("the iteration ended before the utterance was finalized")


class SpeechToTextContract(ProviderContract[AnySpeechToText]):
    """Rules of every transcriber. Override `provider` and `utterance`, and `transcription` for hints or a language."""

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        """Speech in the provider's `audio_format`, and its words in lower case. Must be overridden."""
        raise NotImplementedError("override the fixture `utterance` of this contract")

    @pytest.fixture
    def transcription(self) -> TranscriptionRequest:
        """Parameters of the transcription. Override it to give hints or a language."""
        return TranscriptionRequest()

    async def use(self, provider: AnySpeechToText) -> None:
        """Transcribe half a second of sound."""
        stream = await provider.transcribe(TranscriptionRequest())
        try:
            await stream.send(b"\x00\x40\x00\xc0" * int(provider.audio_format.bytes_per_second * SILENCE_SECONDS / 4))
            await stream.finalize()
            await collect_final_text(stream)
        finally:
            await stream.close()

    async def test_speech_becomes_its_words(
        self, open_provider: AnySpeechToText, utterance: tuple[bytes, str], transcription: TranscriptionRequest
    ) -> None:
        """If this fails, compare the audio's encoding and sample rate with `audio_format`."""
        stream = await open_provider.transcribe(transcription)
        audio, words = utterance
        for start in range(0, len(audio), 320):
            await stream.send(audio[start : start + 320])
        await stream.finalize()
        text, _ = await collect_final_text(stream)
        await stream.close()
        assert text.lower().strip(" .?!") == words

    async def test_finalize_is_answered_even_when_nothing_was_said(
        self, open_provider: AnySpeechToText, transcription: TranscriptionRequest
    ) -> None:
        """The engine waits for the response.

        If this fails, yield a `Transcript` with `finalized` and empty text for silence too.
        """
        stream = await open_provider.transcribe(transcription)
        await stream.send(bytes(int(open_provider.audio_format.bytes_per_second * SILENCE_SECONDS)))
        await stream.finalize()
        text, transcript = await collect_final_text(stream)
        await stream.close()
        assert text == ""
        assert transcript.finalized

    async def test_utterances_do_not_run_into_one_another(
        self, open_provider: AnySpeechToText, utterance: tuple[bytes, str], transcription: TranscriptionRequest
    ) -> None:
        """If this fails, discard an utterance's audio and words once it is finalized."""
        stream = await open_provider.transcribe(transcription)
        for _ in range(2):
            await stream.send(utterance[0])
            await stream.finalize()
            text, _ = await collect_final_text(stream)
            assert text.lower().strip(" .?!") == utterance[1]
        await stream.close()

    async def test_closing_ends_the_iteration_and_may_be_done_twice(
        self, open_provider: AnySpeechToText, transcription: TranscriptionRequest
    ) -> None:
        """A task of the call waits in the iteration. If this fails, wake it in `close`."""
        stream = await open_provider.transcribe(transcription)
        await stream.close()
        await stream.close()
        async with asyncio.timeout(ANSWER_SECONDS):
            assert [transcript async for transcript in stream if transcript.text] == []
