"""The stream of a call's speech to its provider, by the moments at which it reports an utterance."""

import asyncio

from switchboard.engine.conversation.speech.transcription import FINAL_SECONDS, TranscriptionStream

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
