"""Transcription over a vendor's WebSocket: code common to all vendors, and to those that judge turns themselves, whose
messages repeat the words of the turn so far.
"""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from typing import Final

import aiohttp
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    ProviderError,
    SpeechToTextProvider,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
    TurnReport,
    TurnState,
    Word,
)
from switchboard.plugin_sdk.connection_faults import describe_connection_fault

from switchboard_speech.connection import AnySettings, VendorConnection, parse_vendor_data

SILENCE: Final = b"\xff"
"""A sample of mu-law silence."""
GRACE_SECONDS: Final = 1.0
"""Time for a vendor to confirm the end of an utterance. A vendor with nothing left to transcribe may not respond at
all.
"""
KEEP_ALIVE_SECONDS: Final = 4.0


def time_words(times: Sequence[tuple[str, float, float]], since: float | None = None) -> tuple[Word, ...]:
    """Return words, given with their start and end in seconds, timed from `since`, or from the first one's start."""
    begun = since if since is not None else times[0][1] if times else 0.0
    return tuple(Word(text, round((start - begun) * 1000), round((end - begun) * 1000)) for text, start, end in times)


class QueuedStream(SpeechToTextStream):
    """Stream whose transcripts are queued: an error in the queue is raised by the iteration, and None ends it."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[Transcript | ProviderError | None] = asyncio.Queue()
        self._lost: ProviderError | None = None
        self._grace: asyncio.TimerHandle | None = None

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while (heard := await self._heard.get()) is not None:
            if isinstance(heard, ProviderError):
                raise heard
            yield heard

    async def end(self, tasks: Collection[asyncio.Task[None]]) -> None:
        """End the iteration, and cancel the stream's tasks."""
        if self._grace is not None:
            self._grace.cancel()
        self._heard.put_nowait(None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class SocketStream(QueuedStream):
    """Stream of one call. A subclass defines its vendor's control messages and handles the vendor's messages.

    The engine sends only audio with speech, so a stream is silent for long periods; `KEEP_ALIVE` is sent then.
    """

    KEEP_ALIVE: bytes | str | None = None
    FINALIZE: str | None = None
    CLOSE: str | None = None

    def __init__(self, connection: VendorConnection, socket: aiohttp.ClientWebSocketResponse) -> None:
        super().__init__()
        self._connection = connection
        self._socket = socket
        self._tasks = [asyncio.create_task(self._read())]
        if self.KEEP_ALIVE is not None:
            self._tasks.append(asyncio.create_task(self._keep_alive(self.KEEP_ALIVE)))
        self.sent_bytes = 0

    @abstractmethod
    def handle_message(self, message: str) -> None:
        """Handle one message, and call `add_transcript` for its transcripts.

        Raises `ProviderError` for a message that ends the stream, and `ValueError` for an invalid one.
        """

    def encode(self, audio: bytes) -> bytes | str:
        """Return the message with this audio."""
        return audio

    @property
    def sent_seconds(self) -> float:
        """Duration of the audio sent so far."""
        return self.sent_bytes / PHONE_MULAW.bytes_per_second

    @property
    def is_finalizing(self) -> bool:
        """Return whether the end of an utterance is not confirmed yet."""
        return self._grace is not None

    async def send(self, audio: bytes) -> None:
        self.sent_bytes += len(audio)
        await self._send_message(self.encode(audio))

    async def finalize(self) -> None:
        self.expect_end(GRACE_SECONDS)
        if self.FINALIZE is not None:
            await self._send_message(self.FINALIZE)

    def expect_end(self, seconds: float) -> None:
        """Confirm the end of the utterance if the vendor has not done so within this time."""
        if self._grace is not None:
            self._grace.cancel()
        self._grace = asyncio.get_running_loop().call_later(seconds, self.confirm_end)

    async def close(self) -> None:
        await self.end(self._tasks)
        if not self._socket.closed:
            if self.CLOSE is not None:
                with suppress(aiohttp.ClientError):
                    await self._socket.send_str(self.CLOSE)
            await self._socket.close()

    def add_transcript(self, transcript: Transcript) -> None:
        """Queue a transcript for the iteration. One with `finalized` confirms `finalize()`."""
        if transcript.finalized and self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self._heard.put_nowait(transcript)

    def confirm_end(self) -> None:
        """Confirm the end of an utterance that the vendor has not confirmed."""
        self.add_transcript(Transcript("", is_final=True, finalized=True))

    async def _send_message(self, message: bytes | str) -> None:
        if self._lost is not None:
            raise self._lost
        try:
            if isinstance(message, bytes):
                await self._socket.send_bytes(message)
            else:
                await self._socket.send_str(message)
        except (aiohttp.ClientError, ConnectionError) as error:
            raise self._connection.error(f"the stream was lost ({describe_connection_fault(error)})") from error

    async def _keep_alive(self, message: bytes | str) -> None:
        while True:
            sent = self.sent_bytes
            await asyncio.sleep(KEEP_ALIVE_SECONDS)
            if self.sent_bytes == sent:
                try:
                    await self._send_message(message)
                except ProviderError:
                    return  # The reader reports the lost stream.

    async def _read(self) -> None:
        try:
            while (message := await self._socket.receive()).type is aiohttp.WSMsgType.TEXT:
                with parse_vendor_data(self._connection.title):
                    self.handle_message(message.data)
            self._lost = self._connection.closed_error(message)
        except ProviderError as error:
            self._lost = error
        self._heard.put_nowait(self._lost)


class ChunkedStream(SocketStream):
    """Stream in messages of `SHORTEST` to `LONGEST` bytes of audio."""

    SHORTEST: int
    LONGEST: int

    def __init__(self, connection: VendorConnection, socket: aiohttp.ClientWebSocketResponse) -> None:
        super().__init__(connection, socket)
        self._gathered = bytearray()

    async def send(self, audio: bytes) -> None:
        self._gathered += audio
        while len(self._gathered) >= self.SHORTEST:
            message = bytes(self._gathered[: self.LONGEST])
            del self._gathered[: self.LONGEST]
            await super().send(message)

    async def send_rest(self) -> None:
        """Send the audio that is shorter than a message, with silence after it."""
        if self._gathered:
            rest = bytes(self._gathered)
            self._gathered.clear()
            await super().send(rest.ljust(self.SHORTEST, SILENCE))


class StreamingTranscriber(SpeechToTextProvider[AnySettings]):
    """A transcriber of the phone's mu-law audio whose key may do nothing but transcribe."""

    audio_format = PHONE_MULAW

    async def check(self) -> None:
        """Open a stream without audio, which costs nothing."""
        await (await self.transcribe(TranscriptionRequest())).close()


SILENCE_SECONDS: Final = 0.08
PAUSE: Final = SILENCE * round(SILENCE_SECONDS * PHONE_MULAW.bytes_per_second)
PAUSE_SECONDS: Final = 0.3
"""Audio after the vendor's judgment that is silence for sure: the engine finalizes after 0.2 seconds without voice."""


class RepeatedTurn:
    """A vendor's turn. `report` is its state, None before the first turn."""

    def __init__(self) -> None:
        self.report: TurnReport | None = None
        self._index = -1
        self._transcript = ""
        self._words: Sequence[str] = ()
        self._taken = 0

    @property
    def has_paused(self) -> bool:
        """Return whether the vendor takes the turn for complete, or for probably complete."""
        return self.report is not None and self.report.state != "ongoing"

    @property
    def has_ended(self) -> bool:
        """Return whether the vendor takes the turn for complete."""
        return self.report is not None and self.report.state == "end"

    def update(
        self, index: int, transcript: str, words: Sequence[str], state: TurnState | None, probability: float
    ) -> bool:
        """Take a message about a turn; without a `state` only new words change it. Return whether anything changed."""
        if index == self._index and self.has_ended:
            return False  # The same words once more, formatted.
        if index != self._index:
            self._index, self._taken, self._words = index, 0, ()
        has_words = list(words) != list(self._words)
        self._transcript, self._words = transcript, words
        if state is None and has_words:
            state = "ongoing"
        if state is None:
            return False
        has_changed = self.report is None or self.report.state != state
        self.report = TurnReport(state, min(1.0, max(0.0, probability)))
        return has_words or has_changed

    def get_rest(self) -> str:
        """Return the words that were not taken."""
        return " ".join(self._words[self._taken :]) if self._taken else self._transcript

    def take_rest(self) -> str:
        """Return the words that were not taken, and take them."""
        rest, self._taken = self.get_rest(), len(self._words)
        return rest


class TurnStream(ChunkedStream):
    """Stream whose turns the vendor judges.

    A vendor judges the audio that it gets, and the engine sends none in a pause: silence is sent until the turn ends,
    for at most `pause_seconds`. A subclass sets `heard_until`, the seconds of audio that the vendor has judged.
    """

    def __init__(
        self, connection: VendorConnection, socket: aiohttp.ClientWebSocketResponse, pause_seconds: float
    ) -> None:
        super().__init__(connection, socket)
        self.turn = RepeatedTurn()
        self.heard_until = 0.0
        self.finalized_at = 0.0
        self._pause_seconds = pause_seconds
        self._silence: asyncio.Task[None] | None = None

    async def send(self, audio: bytes) -> None:
        self._stop_silence()
        await super().send(audio)

    async def await_judgment(self, seconds: float) -> None:
        """Let the vendor judge the pause; the utterance is final after this many seconds without its judgment."""
        await self.send_rest()
        self.finalized_at = self.sent_seconds
        self.expect_end(seconds)
        if self.is_judged():
            self.confirm_end()
        if self.is_finalizing or not self.turn.has_ended:
            self._stop_silence()
            self._silence = asyncio.create_task(self._send_silence())

    def is_judged(self) -> bool:
        """Return whether the vendor has taken the turn for complete after the last word."""
        return self.turn.has_paused and self.heard_until >= self.finalized_at - PAUSE_SECONDS

    def handle_turn(self) -> None:
        """Report a turn that has changed."""
        if self.is_finalizing and self.is_judged():
            self.confirm_end()
        elif self.turn.has_ended:
            self.add_transcript(Transcript(self.turn.take_rest(), is_final=True, turn=self.turn.report))
        else:
            self.add_transcript(Transcript(self.turn.get_rest(), is_final=False, turn=self.turn.report))
        if self.turn.has_ended and not self.is_finalizing:
            self._stop_silence()

    def confirm_end(self) -> None:
        """Confirm `finalize()` with the words so far."""
        self.add_transcript(Transcript(self.turn.take_rest(), is_final=True, finalized=True, turn=self.turn.report))

    async def handle_pause_over(self) -> None:
        """Handle a pause that the vendor has not taken for the end of the turn."""

    async def close(self) -> None:
        self._stop_silence()
        await super().close()

    async def _send_silence(self) -> None:
        with suppress(ProviderError):  # The reader reports the lost stream.
            for _ in range(round(self._pause_seconds / SILENCE_SECONDS)):
                await asyncio.sleep(SILENCE_SECONDS)
                await super().send(PAUSE)
            await self.handle_pause_over()

    def _stop_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
