"""One call at the carrier: a person's line on one side, the platform's media socket (or another person) on the other."""

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import aiohttp
import structlog

from switchboard_offline.loopback import wire
from switchboard_offline.loopback.line import Line
from switchboard_offline.loopback.people import Behaviour, person

logger = structlog.get_logger()


class Leg:
    """A call. `pressed` are the keys that the platform pressed; `connected_at` is when somebody answered."""

    def __init__(self, call_id: str, scripts: Mapping[str, Sequence[str]], *, reference: str = "") -> None:
        self.call_id = call_id
        self.reference = reference
        self.line = Line()
        self.pressed = ""
        self.connected_at: float | None = None
        self._scripts = scripts
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._other: asyncio.Task[None] | None = None

    @property
    def duration_seconds(self) -> float:
        """Since it was answered."""
        return 0.0 if self.connected_at is None else time.monotonic() - self.connected_at

    async def connect(self, session: aiohttp.ClientSession, media_url: str, behave: Behaviour) -> None:
        """Open the platform's media socket and let the person act, until either side is done. Raises `aiohttp.ClientError`."""
        async with session.ws_connect(media_url, max_msg_size=1 << 20) as socket:
            self._socket = socket
            start = {"call_id": self.call_id, "stream_id": secrets.token_hex(8), "encoding": "mulaw"}
            await socket.send_str(json.dumps({"event": "start", "start": start}))
            self.line.send_audio = self._send_audio
            self.line.send_digit = self._send_digit
            self.line.send_mark = self._send_mark
            reading = asyncio.create_task(self._read(socket))
            try:
                await self.converse(behave)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
                await self._leave()

    async def converse(self, behave: Behaviour) -> None:
        """Carry audio while the person acts; the line is dead afterwards."""
        self.connected_at = time.monotonic()
        acting = asyncio.create_task(behave(self.line))
        acting.add_done_callback(lambda _done: self.line.hang_up())
        try:
            await self.line.run()
        finally:
            others = [task for task in (acting, self._other) if task is not None]
            for task in others:
                task.cancel()
            for outcome in await asyncio.gather(*others, return_exceptions=True):
                if isinstance(outcome, Exception):
                    logger.error("a person failed", exc_info=outcome)

    async def transfer(self, to_number: str) -> None:
        """Take the call off the platform's socket and connect it to somebody else."""
        await self._leave()
        self.answer_by(to_number)

    def answer_by(self, number: str) -> None:
        """Have the person at a number on the other end instead of the platform; where nobody answers the line is dead."""
        other = person(number, self._scripts)
        if other.answer != "answers":
            self.line.hang_up()
            return
        far = Line()
        far.send_audio = self._to_near
        self.line.send_audio = self._to_far(far)
        self._other = asyncio.create_task(self._bridge(far, other.behave))

    async def _bridge(self, far: Line, behave: Behaviour) -> None:
        acting = asyncio.create_task(behave(far))
        acting.add_done_callback(lambda _done: far.hang_up())
        try:
            await far.run()
        finally:
            acting.cancel()
            await asyncio.gather(acting, return_exceptions=True)
            self.line.hang_up()

    async def _to_near(self, audio: bytes) -> None:
        self.line.play(audio)

    @staticmethod
    def _to_far(far: Line) -> Callable[[bytes], Awaitable[None]]:
        async def carry(audio: bytes) -> None:
            far.play(audio)

        return carry

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                continue
            try:
                parsed = wire.parse(message.data)
            except ValueError as error:
                logger.warning("the platform sent what is not understood", error=str(error))
                continue
            if parsed.media is not None:
                self.line.play(parsed.media.payload)
            elif parsed.mark is not None:
                self.line.mark(parsed.mark.name)
            elif parsed.event == "clear":
                await self.line.clear()
        if self._socket is socket:
            self.line.hang_up()

    async def _leave(self) -> None:
        socket, self._socket = self._socket, None
        self.line.send_audio = self.line.send_digit = self.line.send_mark = None
        if socket is not None and not socket.closed:
            await self._send(socket, '{"event":"stop"}')
            await socket.close()

    async def _send_audio(self, audio: bytes) -> None:
        await self._send(self._socket, wire.media(audio))

    async def _send_digit(self, digit: str) -> None:
        await self._send(self._socket, json.dumps({"event": "dtmf", "dtmf": {"digit": digit}}))

    async def _send_mark(self, name: str) -> None:
        await self._send(self._socket, wire.mark(name))

    async def _send(self, socket: aiohttp.ClientWebSocketResponse | None, message: str) -> None:
        if socket is None or socket.closed:
            return
        try:
            await socket.send_str(message)
        except (ConnectionError, aiohttp.ClientError):
            self.line.hang_up()
