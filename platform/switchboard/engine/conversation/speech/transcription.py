"""Transcription of one speaker. A lost stream is reopened, and the audio of the unfinished utterance is sent again."""

import asyncio
from collections.abc import Callable

import structlog

from switchboard.engine.conversation.agent_settings import TurnDetection
from switchboard.engine.conversation.call import BY_SILENCE, CallAgent, LiveCall
from switchboard.engine.conversation.knowledge import TaskStarter
from switchboard.engine.conversation.media.conversion import Converter
from switchboard.plugin_sdk import (
    AudioFormat,
    Encoding,
    ProviderError,
    SpeechToTextStream,
    TranscriptionRequest,
    TurnReport,
)

logger = structlog.get_logger()
BACKOFF_SECONDS = (0.1, 1.0, 3.0)
FINAL_SECONDS = 3.0
"""Time limit for a final transcript, once a stream has been asked for it; after it the utterance has the words that are
final by then. Later ones follow.
"""


class TranscriptionStream:
    """Sends speech to the provider and reports transcripts.

    `on_transcript(text, finished)` gets the utterance so far; it is complete once `finished` is set. `idle` is set
    while nothing waits to be transcribed. `on_turn_report` gets the provider's own judgment of the turn, before the
    words that it concerns.
    """

    def __init__(
        self,
        agent: CallAgent,
        detection: TurnDetection,
        encoding: Encoding,
        on_transcript: Callable[[str, bool], None],
    ) -> None:
        self.agent = agent
        self._request = TranscriptionRequest(
            agent.settings.stt_language,
            agent.settings.stt_model,
            agent.hints,
            detection.max_silence_seconds if detection.mode in ("audio", "auto") else None,
        )
        self._wire = AudioFormat(encoding, 8000)
        self._utterance = bytearray()
        self._sent = 0
        self._finalize = False
        self._must_finalize = False
        self._wake = asyncio.Event()
        self._finals: list[str] = []
        self._failures = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._on_transcript = on_transcript
        self.on_turn_report: Callable[[TurnReport], None] | None = None
        self.seconds = 0.0
        self.idle = asyncio.Event()
        self.idle.set()

    def add_audio(self, audio: bytes) -> None:
        """Add audio that contains speech."""
        self._utterance += audio
        self.idle.clear()
        self._wake.set()

    def finalize(self) -> None:
        """Ask for the final transcript, because the speaker has stopped."""
        self._finalize = self._must_finalize = True
        self._wake.set()
        self._cancel_deadline()

    async def run(self) -> None:
        """Transcribe until canceled. Raises `ProviderError` when the stream cannot be reopened."""
        while True:
            try:
                stream = await self.agent.speech_to_text.transcribe(self._request)
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
        """Use a stream until it is lost, which raises.

        Audio of an unfinished utterance is sent again on the next stream.
        """
        self._sent = 0
        self._must_finalize = self._finalize
        self._cancel_deadline()
        self._finals.clear()  # of an unfinished utterance, which the new stream hears from its beginning
        self._wake.set()
        # No task group: before Python 3.13 it forgets a cancellation if one of its tasks fails at that moment, and the
        # call would wait for a transcription that goes on.
        tasks = [asyncio.create_task(work(stream)) for work in (self._read, self._send)]
        try:
            failed, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        failed.pop().result()

    async def _send(self, stream: SpeechToTextStream) -> None:
        converter = Converter(self._wire, self.agent.speech_to_text.audio_format)
        while True:
            await self._wake.wait()
            self._wake.clear()
            audio = bytes(self._utterance[self._sent :])
            if audio:
                self._sent += len(audio)
                self.seconds += len(audio) / self._wire.bytes_per_second
                await stream.send(converter.convert(audio))
            if self._must_finalize:
                self._must_finalize = False
                await stream.finalize()
                self._begin_deadline()

    async def _read(self, stream: SpeechToTextStream) -> None:
        async for transcript in stream:
            # A stream that works again resets the count: a long call may lose its stream any number of times.
            self._failures = 0
            await self.agent.redactor.search(transcript.text)
            if transcript.turn is not None and self.on_turn_report is not None:
                self.on_turn_report(transcript.turn)
            text = transcript.text.strip()
            if transcript.is_final and text:
                self._finals.append(text)
            has_late_words = self.idle.is_set() and bool(self._finals)
            if (transcript.finalized and self._finalize) or has_late_words:
                self._finish_utterance()
            elif text:
                interim = () if transcript.is_final else (text,)
                self._on_transcript(" ".join((*self._finals, *interim)), False)
        raise ProviderError("the stream ended by itself")

    def _finish_utterance(self) -> None:
        text, self._finals = " ".join(self._finals), []
        self._utterance.clear()
        self._sent = 0
        self._finalize = self._must_finalize = False
        self._cancel_deadline()
        self._on_transcript(text, True)
        self.idle.set()

    def _begin_deadline(self) -> None:
        """Begin the time limit once a stream, which may still be opening, has heard the utterance."""
        self._cancel_deadline()
        if self._finalize:
            self._deadline = asyncio.get_running_loop().call_later(FINAL_SECONDS, self._finish_utterance)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class TranscriptionStreams:
    """The streams that transcribe one speaker, one after the other: each agent of a call has its own.

    `current` transcribes now. `on_turn_report` gets the reports of all.
    """

    def __init__(self, call: LiveCall, encoding: Encoding, on_transcript: Callable[[str, bool], None]) -> None:
        self._call = call
        self._encoding: Encoding = encoding
        self._on_transcript = on_transcript
        self._tasks: dict[TranscriptionStream, asyncio.Task[None] | None] = {}
        self._next: TranscriptionStream | None = None
        self.on_turn_report: Callable[[TurnReport], None] | None = None
        self.current = self.create(call.agent)

    @property
    def all(self) -> list[TranscriptionStream]:
        """All streams so far."""
        return list(self._tasks)

    @property
    def seconds(self) -> float:
        """Seconds of speech that were transcribed."""
        return sum(stream.seconds for stream in self._tasks)

    def create(self, agent: CallAgent) -> TranscriptionStream:
        """Create a stream that transcribes for an agent."""
        detection = BY_SILENCE if self._call.voicemail else agent.settings.turn_detection
        stream = TranscriptionStream(agent, detection, self._encoding, self._on_transcript)
        stream.on_turn_report = self._handle_turn_report
        self._tasks[stream] = None
        return stream

    def start(self, stream: TranscriptionStream, start: TaskStarter) -> None:
        """Let a stream transcribe in a task of the call."""
        self._tasks[stream] = start(stream.run)

    def stop(self, stream: TranscriptionStream) -> None:
        """Let a stream end, because another one transcribes."""
        if (task := self._tasks[stream]) is not None:
            task.cancel()

    def prepare_change(self, stream: TranscriptionStream) -> None:
        """Let another stream follow once nothing waits to be transcribed."""
        if self._next is not None:
            self.stop(self._next)
        self._next = stream

    def change_if_idle(self) -> bool:
        """Let the stream that is to follow transcribe, if nothing waits; return whether it does so from now on."""
        if self._next is None or not self.current.idle.is_set():
            return False
        self.stop(self.current)
        self.current, self._next = self._next, None
        return True

    def _handle_turn_report(self, report: TurnReport) -> None:
        if self.on_turn_report is not None:
            self.on_turn_report(report)
