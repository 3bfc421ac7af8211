"""Transcription over a vendor's WebSocket: what is common to all of them."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import aiohttp
from switchboard.plugin_sdk import PHONE_MULAW, ProviderError, SpeechToTextStream, Transcript

from switchboard_speech.connection import VendorConnection, parse_vendor_data

GRACE_SECONDS: Final = 1.0
"""How long a vendor has to answer that an utterance is over. Where it has nothing left to say it may not answer at all."""
KEEP_ALIVE_SECONDS: Final = 4.0


class SocketStream(SpeechToTextStream):
    """One call's stream. A subclass says how its vendor is spoken to, and reads what the vendor says.

    The engine sends only audio in which somebody speaks, so a stream is silent for long; `KEEP_ALIVE` is sent then.
    """

    KEEP_ALIVE: str | None = None
    FINALIZE: str
    CLOSE: str

    def __init__(self, connection: VendorConnection, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._connection = connection
        self._socket = socket
        self._heard: asyncio.Queue[Transcript | ProviderError | None] = asyncio.Queue()
        self._lost: ProviderError | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._tasks = [asyncio.create_task(self._read())]
        if self.KEEP_ALIVE is not None:
            self._tasks.append(asyncio.create_task(self._keep_alive(self.KEEP_ALIVE)))
        self.sent_bytes = 0

    @abstractmethod
    def handle_message(self, message: str) -> None:
        """Read one message; `yield_` what it says. Raises `ProviderError` for one that says that all is over, `ValueError` for nonsense."""

    @property
    def sent_seconds(self) -> float:
        """How much was sent."""
        return self.sent_bytes / PHONE_MULAW.bytes_per_second

    @property
    def finalizing(self) -> bool:
        """Whether the end of an utterance is still to be answered."""
        return self._grace is not None

    async def send(self, audio: bytes) -> None:
        self.sent_bytes += len(audio)
        await self._say(audio)

    async def finalize(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
        self._grace = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._answered)
        await self._say(self.FINALIZE)

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while (heard := await self._heard.get()) is not None:
            if isinstance(heard, ProviderError):
                raise heard
            yield heard

    async def close(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
        self._heard.put_nowait(None)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not self._socket.closed:
            with suppress(aiohttp.ClientError):
                await self._socket.send_str(self.CLOSE)
            await self._socket.close()

    def add_transcript(self, transcript: Transcript) -> None:
        """Hand a transcript on; one that is `finalized` answers `finalize()`."""
        if transcript.finalized and self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self._heard.put_nowait(transcript)

    def _answered(self) -> None:
        self.add_transcript(Transcript("", is_final=True, finalized=True))

    async def _say(self, message: bytes | str) -> None:
        if self._lost is not None:
            raise self._lost
        try:
            if isinstance(message, bytes):
                await self._socket.send_bytes(message)
            else:
                await self._socket.send_str(message)
        except (aiohttp.ClientError, ConnectionError) as error:
            raise self._connection.error(f"the stream was lost ({error or type(error).__name__})") from error

    async def _keep_alive(self, message: str) -> None:
        while True:
            sent = self.sent_bytes
            await asyncio.sleep(KEEP_ALIVE_SECONDS)
            if self.sent_bytes == sent:
                try:
                    await self._say(message)
                except ProviderError:
                    return  # The reader says that it is lost.

    async def _read(self) -> None:
        try:
            while (message := await self._socket.receive()).type is aiohttp.WSMsgType.TEXT:
                with parse_vendor_data(self._connection.title):
                    self.handle_message(message.data)
            self._lost = self._ended(message)
        except ProviderError as error:
            self._lost = error
        self._heard.put_nowait(self._lost)

    def _ended(self, message: aiohttp.WSMessage) -> ProviderError:
        if message.type is aiohttp.WSMsgType.CLOSE:
            return self._connection.error(
                f"the stream was closed ({message.data} {message.extra or 'no reason given'})", code=str(message.data)
            )
        return self._connection.error("the stream was lost")
