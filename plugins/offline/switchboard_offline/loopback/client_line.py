"""The line of a call to a client, in the process that holds the call."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

import aiohttp
import msgspec
from aiohttp import web
from switchboard.plugin_sdk import Frame

from switchboard_offline.loopback import signatures
from switchboard_offline.loopback.callbacks import NoticeSender
from switchboard_offline.loopback.clients import RingRequest, RingResult
from switchboard_offline.loopback.headset import Headset
from switchboard_offline.loopback.persons import RING_TONE, RING_TONE_PAUSE, Person, Subscriber
from switchboard_offline.loopback.phone import Phone

PATH: Final = "/clients"
CONNECT_SECONDS: Final = 5.0
_result: Final = msgspec.json.Decoder(RingResult)
Socket: TypeAlias = aiohttp.ClientWebSocketResponse | web.WebSocketResponse


@dataclass(frozen=True, slots=True)
class SocketLine:
    """One end of a line, over a WebSocket (`ClientLine`, and `BrowserSocket` of the headset)."""

    socket: Socket

    async def receive(self) -> Frame | None:
        message = await self.socket.receive()
        return message.data if message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY) else None

    async def send(self, message: Frame) -> None:
        if isinstance(message, str):
            await self.socket.send_str(message)
        else:
            await self.socket.send_bytes(message)

    async def close(self) -> None:
        await self.socket.close()


async def ring_client(post: NoticeSender, port: int, request: RingRequest) -> Subscriber:
    """Ring a client whose sockets are at the exchange with this port, and return the client that answers, or the reason
    why none does.
    """
    url = f"http://127.0.0.1:{port}{PATH}"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            socket = await post.http.ws_connect(
                url, headers={signatures.HEADER: signatures.sign_request(post.secret, url, b"")}
            )
    except (aiohttp.ClientError, TimeoutError, OSError):
        return Subscriber(_leave, "no-answer")
    line = SocketLine(socket)
    connected = False
    try:
        await line.send(msgspec.json.encode(request).decode())
        answer = await line.receive()
        outcome = "no-answer" if not isinstance(answer, str) else _result.decode(answer).outcome
        connected = outcome is None
    except ConnectionError:
        outcome = "no-answer"
    finally:
        if not connected:
            await line.close()
    return Subscriber(_create_person(line), outcome, is_client=True)


def create_rung_person(post: NoticeSender, port: int, request: RingRequest) -> Person:
    """Return the other end of a call that rings a client: a ring tone, then the client that answers."""

    async def ring_and_talk(phone: Phone) -> None:
        tone = asyncio.create_task(_play_ring_tone(phone))
        try:
            subscriber = await ring_client(post, port, request)
        finally:
            tone.cancel()
            with suppress(asyncio.CancelledError):
                await tone
        if subscriber.outcome is None:
            await subscriber.person(phone)

    return ring_and_talk


async def _play_ring_tone(phone: Phone) -> None:
    while True:
        await phone.say(RING_TONE)
        await phone.wait(RING_TONE_PAUSE)


def _create_person(line: SocketLine) -> Person:
    async def talk(phone: Phone) -> None:
        try:
            await Headset(line).talk(phone)
        finally:
            await line.close()

    return talk


async def _leave(phone: Phone) -> None:
    """Hang up at once."""
