"""Clients that wait for calls: their sockets, the choice of the one that answers, and the line of a call to it.

A call may be held by another process than the sockets. So the process that holds it opens a line to the exchange that
has the sockets: a WebSocket that carries the messages and the audio of the socket that answers.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import msgspec
from aiohttp import web
from switchboard.plugin_sdk import BrowserSocket, Frame
from switchboard.plugin_sdk.telephony_events import CallOutcome

from switchboard_offline.loopback import signatures
from switchboard_offline.loopback.browser_socket import (
    AnswerMessage,
    CanceledMessage,
    ConnectedMessage,
    DeclineMessage,
    EndedMessage,
    Headset,
    RegisteredMessage,
    RingingMessage,
    read_message,
    send_to_browser,
)
from switchboard_offline.loopback.callbacks import NoticeSender
from switchboard_offline.loopback.persons import RING_TONE, RING_TONE_PAUSE, Person, Subscriber
from switchboard_offline.loopback.phone import Phone

REGISTERED_SECONDS: Final = 3600.0
"""Time for which a client waits with one token."""
REPEAT_SECONDS: Final = 30.0
"""Interval of `RegisteredMessage`, below the limits of proxies for idle connections."""
MOST_CLIENTS: Final = 10
"""Sockets that wait under one name."""


class RingRequest(msgspec.Struct, frozen=True):
    """First message of a line: the client to ring, the number that it is shown, and for how long to ring."""

    call_id: str
    identity: str
    from_number: str
    seconds: float


class RingResult(msgspec.Struct, frozen=True):
    """First message back: nothing if a client has answered, else the reason."""

    outcome: CallOutcome | None = None


@dataclass(frozen=True, slots=True)
class SocketLine:
    """One end of a line, over a WebSocket, which also is the `BrowserSocket` of the headset."""

    socket: aiohttp.ClientWebSocketResponse | web.WebSocketResponse

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


@dataclass(eq=False, slots=True)
class _Client:
    """A socket that waits for a call, is rung by one, or is connected to its line."""

    socket: BrowserSocket
    ringing: "_Ringing | None" = None
    line: SocketLine | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self) -> None:
        """Pass the socket's messages on until it is closed."""
        while (message := await self.socket.receive()) is not None:
            if self.line is not None:
                await self.line.send(message)
            elif self.ringing is not None:
                self.ringing.handle(self, message)

    async def repeat_registered(self) -> None:
        """Report that the client waits, while it does."""
        while self.line is None:
            await send_to_browser(self.socket, RegisteredMessage())
            await asyncio.sleep(REPEAT_SECONDS)


class _Ringing:
    """A call that rings several clients; the first that answers gets it."""

    def __init__(self, clients: Collection[_Client]) -> None:
        self.answer: asyncio.Future[_Client | None] = asyncio.get_running_loop().create_future()
        self._undecided = set(clients)

    def handle(self, client: _Client, message: Frame) -> None:
        """Handle a client's message."""
        decision = read_message(message)
        if isinstance(decision, AnswerMessage):
            self._settle(client)
        elif isinstance(decision, DeclineMessage):
            self.leave(client)

    def leave(self, client: _Client) -> None:
        """Stop ringing a client. If it was the last one, the call is declined."""
        self._undecided.discard(client)
        if not self._undecided:
            self._settle(None)

    def _settle(self, answer: _Client | None) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


class Clients:
    """The clients of one exchange, by identity."""

    def __init__(self) -> None:
        self._registered: defaultdict[str, set[_Client]] = defaultdict(set)

    def is_registered(self, identity: str) -> bool:
        """Return whether anybody waits for calls, or talks, under this identity."""
        return bool(self._registered.get(identity))

    async def serve(self, socket: BrowserSocket, identity: str) -> None:
        """Hold a client's socket until it has had one call, is closed, or has waited for `REGISTERED_SECONDS`."""
        if len(self._registered[identity]) >= MOST_CLIENTS:
            await send_to_browser(socket, EndedMessage("Too many clients wait under this name."))
            return
        client = _Client(socket)
        self._registered[identity].add(client)
        tasks = [asyncio.create_task(work) for work in (client.receive(), client.over.wait())]
        repeating = asyncio.create_task(client.repeat_registered())
        try:
            await _wait_until_done(client, tasks)
            await send_to_browser(socket, EndedMessage())
        finally:
            self._registered[identity].discard(client)
            if not self._registered[identity]:
                del self._registered[identity]
            if client.ringing is not None:
                client.ringing.leave(client)
            if client.line is not None:
                await client.line.close()
            for task in (*tasks, repeating):
                task.cancel()
            await asyncio.gather(*tasks, repeating, return_exceptions=True)

    async def ring(self, request: RingRequest, line: SocketLine) -> None:
        """Ring the clients of an identity that are free, and connect the first that answers until the call is over."""
        registered = self._registered.get(request.identity, ())
        free = [client for client in registered if client.ringing is None and client.line is None]
        if not free:
            await _refuse(line, "busy" if registered else "no-answer")
            return
        ringing, answered = _Ringing(free), None
        try:
            for client in free:
                client.ringing = ringing
                await send_to_browser(client.socket, RingingMessage(request.from_number))
            answered = await _wait_for_answer(ringing, line, request.seconds)
        finally:
            for client in free:
                client.ringing = None
                if client is not answered:
                    await send_to_browser(client.socket, CanceledMessage())
        if answered is None:
            await _refuse(line, "busy" if ringing.answer.done() else "no-answer")
        else:
            await _connect(answered, line, request.call_id)


async def _wait_until_done(client: _Client, tasks: Collection[asyncio.Task[object]]) -> None:
    until = time.monotonic() + REGISTERED_SECONDS
    while True:
        done, _ = await asyncio.wait(tasks, timeout=max(1.0, until - time.monotonic()), return_when="FIRST_COMPLETED")
        if done or (client.ringing is None and client.line is None):
            return


async def _wait_for_answer(ringing: _Ringing, line: SocketLine, seconds: float) -> _Client | None:
    """Return the client that answers; None if none does in time, all decline, or the caller hangs up."""
    hung_up = asyncio.create_task(line.receive())
    try:
        awaited: list[asyncio.Future[_Client | None] | asyncio.Task[Frame | None]] = [ringing.answer, hung_up]
        await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return ringing.answer.result() if ringing.answer.done() else None
    finally:
        hung_up.cancel()
        await asyncio.gather(hung_up, return_exceptions=True)


async def _connect(client: _Client, line: SocketLine, call_id: str) -> None:
    client.line = line
    try:
        await line.send(msgspec.json.encode(RingResult()).decode())
        await send_to_browser(client.socket, ConnectedMessage(call_id))
        while (message := await line.receive()) is not None:
            await client.socket.send(message)
    except ConnectionError:
        return
    finally:
        client.over.set()


async def _refuse(line: SocketLine, outcome: CallOutcome) -> None:
    with suppress(ConnectionError):  # the caller has hung up
        await line.send(msgspec.json.encode(RingResult(outcome)).decode())


PATH: Final = "/clients"
CONNECT_SECONDS: Final = 5.0
_result: Final = msgspec.json.Decoder(RingResult)


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
        return Subscriber(lambda _phone: asyncio.sleep(0), "no-answer")
    line = SocketLine(socket)

    async def talk(phone: Phone) -> None:
        try:
            await Headset(line).talk(phone)
        finally:
            await line.close()

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
    return Subscriber(talk, outcome, is_client=True)


def create_rung_person(post: NoticeSender, port: int, request: RingRequest) -> Person:
    """Return the other end of a call that rings a client: a ring tone, then the client that answers."""

    async def play_ring_tone(phone: Phone) -> None:
        while True:
            await phone.say(RING_TONE)
            await phone.wait(RING_TONE_PAUSE)

    async def ring_and_talk(phone: Phone) -> None:
        tone = asyncio.create_task(play_ring_tone(phone))
        try:
            subscriber = await ring_client(post, port, request)
        finally:
            tone.cancel()
            with suppress(asyncio.CancelledError):
                await tone
        if subscriber.outcome is None:
            await subscriber.person(phone)

    return ring_and_talk
