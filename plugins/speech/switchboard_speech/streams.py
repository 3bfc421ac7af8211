"""Transcription over a vendor's WebSocket: code common to all vendors."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from typing import Final

import aiohttp
from switchboard.plugin_sdk import PHONE_MULAW, ProviderError, SpeechToTextStream, Transcript
from switchboard.plugin_sdk.connection_faults import describe_connection_fault

from switchboard_speech.connection import VendorConnection, parse_vendor_data

SILENCE: Final = b"\xff"
"""A sample of mu-law silence."""
GRACE_SECONDS: Final = 1.0
"""Time for a vendor to confirm the end of an utterance. A vendor with nothing left to transcribe may not respond at
all.
"""
KEEP_ALIVE_SECONDS: Final = 4.0


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
