"""The stream of a call's speech to its provider, by the moments at which it reports an utterance."""

import asyncio
from collections.abc import AsyncIterator

from switchboard.engine.conversation.speech.transcription import FINAL_SECONDS, TranscriptionStream
from switchboard.plugin_sdk import ProviderError, SpeechToTextStream, Transcript, TranscriptionRequest

from tests.fixtures.conversation import Model, Transcriber, create_call

VIRTUAL_CLOCK = True
AUDIO = b"\x00" * 160


async def test_a_pause_does_not_shorten_the_wait_for_the_final_transcript() -> None:
    reported: list[tuple[str, bool]] = []
    stream = TranscriptionStream(
        create_call(Model(), Transcriber()), "mulaw", lambda text, finished: reported.append((text, finished))
    )
    stream.add_audio(AUDIO)
    stream.finalize()
    await asyncio.sleep(FINAL_SECONDS - 1)
    stream.add_audio(AUDIO)
    stream.finalize()
    await asyncio.sleep(FINAL_SECONDS - 0.5)
    assert reported == []
    await asyncio.sleep(1)
    assert reported == [("", True)]


class _Halves(SpeechToTextStream):
    """Finalizes within the utterance, as vendors do after a pause; the first stream is lost then."""

    def __init__(self, *, is_lost: bool) -> None:
        self._is_lost = is_lost
        self._finalized = asyncio.Event()

    async def send(self, audio: bytes) -> None:
        """Hear nothing."""

    async def finalize(self) -> None:
        self._finalized.set()

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        yield Transcript("My number is five five five", is_final=True)
        if self._is_lost:
            raise ProviderError("lost")
        await self._finalized.wait()
        yield Transcript("one two three four", is_final=True, finalized=True)

    async def close(self) -> None:
        """Do nothing."""


class _Losing(Transcriber):
    def __init__(self) -> None:
        super().__init__()
        self.opened = 0

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        self.opened += 1
        return _Halves(is_lost=self.opened == 1)


async def test_words_before_a_stream_was_lost_are_heard_once() -> None:
    reported = asyncio.Queue[str]()
    stream = TranscriptionStream(
        create_call(Model(), _Losing()),
        "mulaw",
        lambda text, finished: reported.put_nowait(text) if finished else None,
    )
    stream.add_audio(AUDIO)
    stream.finalize()
    running = asyncio.create_task(stream.run())
    assert await reported.get() == "My number is five five five one two three four"
    running.cancel()
    await asyncio.wait({running})
