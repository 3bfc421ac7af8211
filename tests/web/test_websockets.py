"""WebSockets of the server (RFC 6455), beside an application that sends every message back."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from switchboard.apps.server.http_server import serve_health
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    Ping,
    Pong,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason

from tests.fixtures.eventually import wait_for_port
from tests.fixtures.free_ports import find_free_port

if TYPE_CHECKING:
    from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope

MEGABYTE = 1 << 20
MASK = bytes(4)


async def echo(scope: "Scope", receive: "ASGIReceiveCallable", send: "ASGISendCallable") -> None:
    if scope["type"] != "websocket":
        return
    await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
    while (message := await receive())["type"] != "websocket.disconnect":
        if message["type"] == "websocket.receive":
            await send({"type": "websocket.send", "bytes": message["bytes"], "text": message["text"]})


class Peer:
    """A client that can break the protocol."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._protocol = WSConnection(ConnectionType.CLIENT)

    async def open(self) -> None:
        self.send(Request(host="x", target="/"))
        assert isinstance(await self.receive(), AcceptConnection)

    def send(self, *events: Event) -> None:
        self.writer.write(b"".join(self._protocol.send(event) for event in events))

    async def receive(self) -> Event:
        """Receive the next event, with all parts of a message."""
        parts: list[Message[Any]] = []
        async with asyncio.timeout(60):
            while True:
                for event in self._protocol.events():
                    if not isinstance(event, Message):
                        return event
                    parts.append(event)
                    if event.message_finished:
                        kind = type(event)
                        return kind(data=type(event.data)().join(part.data for part in parts))
                self._protocol.receive_data(await self._reader.read(65_536) or None)


@pytest_asyncio.fixture
async def peer() -> AsyncIterator[Peer]:
    port = find_free_port()
    stop = asyncio.Event()
    serving = asyncio.create_task(serve_health(echo, "127.0.0.1", port, stop, variable="PORT"))
    await wait_for_port("127.0.0.1", port)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Peer(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()
        stop.set()
        await serving


async def test_messages_of_any_shape_arrive_whole_and_in_order(peer: Peer) -> None:
    await peer.open()
    long = "Grüß Gott " * 20_000
    peer.send(
        TextMessage(data="Grüß"),
        BytesMessage(data=b"\xff\x00"),
        TextMessage(data="in ", message_finished=False),
        Ping(payload=b"between"),
        TextMessage(data="parts"),
        TextMessage(data=long),
        BytesMessage(data=b""),
    )
    expected: Sequence[Event] = (
        TextMessage(data="Grüß"),
        BytesMessage(data=b"\xff\x00"),
        Pong(payload=b"between"),
        TextMessage(data="in parts"),
        TextMessage(data=long),
        BytesMessage(data=b""),
    )
    received = [await peer.receive() for _ in expected]
    pongs = [event for event in received if isinstance(event, Pong)]
    assert [event for event in received if event not in pongs] == [e for e in expected if not isinstance(e, Pong)]
    assert pongs == [Pong(payload=b"between")]


async def test_a_close_is_confirmed_with_its_code(peer: Peer) -> None:
    await peer.open()
    peer.send(CloseConnection(code=CloseReason.GOING_AWAY))
    closed = await peer.receive()
    assert isinstance(closed, CloseConnection)
    assert closed.code == CloseReason.GOING_AWAY


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        pytest.param(b"\x83\x80" + MASK, CloseReason.ABNORMAL_CLOSURE, id="unknown opcode"),
        pytest.param(b"\x81\x82" + MASK + b"\xc3\x28", CloseReason.ABNORMAL_CLOSURE, id="invalid UTF-8"),
        pytest.param(
            b"\x82\xff" + (MEGABYTE + 1).to_bytes(8, "big") + MASK + bytes(MEGABYTE + 1),
            CloseReason.MESSAGE_TOO_BIG,
            id="a message too big",
        ),
    ],
)
async def test_a_violation_of_the_protocol_closes_the_socket(peer: Peer, frame: bytes, code: CloseReason) -> None:
    await peer.open()
    peer.writer.write(frame)
    closed = await peer.receive()
    assert isinstance(closed, CloseConnection)
    assert closed.code == code
