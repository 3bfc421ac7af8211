"""The caller's words: audio of speech to speech-to-text, transcripts back. A lost stream is reopened, and nothing that was said is lost."""

import asyncio
from collections.abc import Callable

import structlog

from switchboard.engine.conversation.call import LiveCall
from switchboard.engine.conversation.media.conversion import Converter
from switchboard.plugin_sdk import (
    AudioFormat,
    Encoding,
    ProviderError,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
)

logger = structlog.get_logger()
BACKOFF_SECONDS = (0.1, 1.0, 3.0)
FINAL_SECONDS = 3.0
"""How long a final transcript may take; then what was understood so far counts."""


class TranscriptionStream:
    """One call's transcription. `on_transcript(text, finished)` tells the utterance so far, and that it is finished."""

    def __init__(self, call: LiveCall, encoding: Encoding) -> None:
        self._provider = call.speech_to_text
        self._request = TranscriptionRequest(call.agent.stt_language, call.agent.stt_model, call.hints)
        self._wire = AudioFormat(encoding, 8000)
        self._utterance = bytearray()
        self._sent = 0
        self._finalize = False
        self._wake = asyncio.Event()
        self._finals: list[str] = []
        self._failures = 0
        self._deadline: asyncio.TimerHandle | None = None
        self.seconds = 0.0
        self.idle = asyncio.Event()
        self.idle.set()
        self.on_transcript: Callable[[str, bool], None] = lambda _text, _finished: None

    def hear(self, audio: bytes) -> None:
        """Audio in which the caller speaks."""
        self._utterance += audio
        self.idle.clear()
        self._wake.set()

    def finalize(self) -> None:
        """The caller has stopped speaking."""
        self._finalize = True
        self._wake.set()
        self._deadline = asyncio.get_running_loop().call_later(FINAL_SECONDS, self._finish)

    async def run(self) -> None:
        """Transcribe, until cancelled. Raises `ProviderError` when the stream cannot be had back."""
        while True:
            try:
                stream = await self._provider.transcribe(self._request)
                try:
                    await self._serve(stream)
                finally:
                    await stream.close()
            except ProviderError as error:
                if self._failures == len(BACKOFF_SECONDS):
                    raise
                logger.warning("speech-to-text lost, reopening", reason=error.message, failures=self._failures + 1)
                await asyncio.sleep(BACKOFF_SECONDS[self._failures])
                self._failures += 1

    async def _serve(self, stream: SpeechToTextStream) -> None:
        """Runs until the stream is lost. What was sent of an unfinished utterance to an earlier stream is sent again."""
        self._sent = 0
        self._wake.set()
        reading = asyncio.create_task(self._read(stream))
        sending = asyncio.create_task(self._send(stream))
        try:
            done, _ = await asyncio.wait((reading, sending), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            raise ProviderError("the stream ended by itself")
        finally:
            for task in (reading, sending):
                task.cancel()
            await asyncio.gather(reading, sending, return_exceptions=True)

    async def _send(self, stream: SpeechToTextStream) -> None:
        converter = Converter(self._wire, self._provider.audio_format)
        finalized = False
        while True:
            await self._wake.wait()
            self._wake.clear()
            audio = bytes(self._utterance[self._sent :])
            if audio:
                finalized = False
                self._sent += len(audio)
                self.seconds += len(audio) / self._wire.bytes_per_second
                await stream.send(converter.convert(audio))
            if self._finalize and not finalized:
                finalized = True
                await stream.finalize()

    async def _read(self, stream: SpeechToTextStream) -> None:
        async for transcript in stream:
            # It works again: a long call may lose its stream any number of times, just not at once.
            self._failures = 0
            self._take(transcript)

    def _take(self, transcript: Transcript) -> None:
        if transcript.is_final and transcript.text.strip():
            self._finals.append(transcript.text.strip())
        if transcript.finalized and self._finalize:
            self._finish()
        elif transcript.text.strip():
            interim = () if transcript.is_final else (transcript.text.strip(),)
            self.on_transcript(" ".join((*self._finals, *interim)), False)

    def _finish(self) -> None:
        text, self._finals = " ".join(self._finals), []
        self._utterance.clear()
        self._sent = 0
        self._finalize = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self.on_transcript(text, True)
        self.idle.set()
