"""WebSockets of hypercorn whose frames pass wsproto by.

A carrier sends fifty frames in each second of each call. wsproto, which is Python, spent an eighth of a busy process on
them (`make bench NAME=calls`); aiohttp's compiled parser takes a fifth of that time. The frames of messages are
written here; wsproto opens and closes the connection.
aiohttp's parser also takes frames without a mask. Masks protect proxies from browsers, not servers (RFC 6455, 10.3).
"""

import asyncio
import struct
from collections import deque
from typing import TYPE_CHECKING

from aiohttp import WSMsgType
from aiohttp._websocket.reader import WebSocketDataQueue
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import WebSocketError, WebSocketReader, WSMessage, WSMessageTextBytes
from hypercorn.protocol.events import Data, StreamClosed
from hypercorn.protocol.ws_stream import ASGIWebsocketState, WSStream
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Pong
from wsproto.frame_protocol import CloseReason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hypercorn.protocol.events import Event
    from hypercorn.typing import ASGIReceiveEvent, ASGISendEvent, WebsocketAcceptEvent

TEXT, BINARY = 0x81, 0x82
"""First byte of a whole message in one frame (RFC 6455, 5.2)."""


class WebSocketStream(WSStream):
    """A WebSocket without compression, which would cost more than it saves: audio does not get smaller by it."""

    app_put: "Callable[[ASGIReceiveEvent], Awaitable[None]]"

    async def _accept(self, message: "WebsocketAcceptEvent") -> None:
        self._received = _Received(BaseProtocol(loop := asyncio.get_running_loop()), 0, loop=loop)
        most = self.config.websocket_max_message_size
        self._frames = WebSocketReader(self._received, most, compress=False, decode_text=True)
        self.handshake.extensions = None
        await super()._accept(message)

    @property
    def is_open(self) -> bool:
        """True from the handshake until one side closes."""
        return (
            not self.closed
            and self.state is ASGIWebsocketState.CONNECTED
            and self.connection.state is ConnectionState.OPEN
        )

    async def app_send(self, message: "ASGISendEvent | None") -> None:
        """Send a message of the application."""
        if message is None or message["type"] != "websocket.send" or not self.is_open:
            await super().app_send(message)
            return
        text, data = message.get("text"), message.get("bytes")
        frame = build_frame(TEXT, text.encode()) if text is not None else build_frame(BINARY, bytes(data or b""))
        await self.send(Data(stream_id=self.stream_id, data=frame))

    async def handle(self, event: "Event") -> None:
        """Handle an event of the connection. A violation of the protocol closes it (RFC 6455, 7.1.7)."""
        if self.closed or not isinstance(event, Data) or not self.handshake.accepted:
            await super().handle(event)
            return
        self._frames.feed_data(event.data)
        while self._received.messages:
            await self._handle_message(self._received.messages.popleft())
        error = self._received.exception()
        if isinstance(error, WebSocketError):
            await self._end(CloseConnection(code=error.code))

    async def _handle_message(self, message: WSMessage | WSMessageTextBytes) -> None:
        match message.type:
            case WSMsgType.TEXT:
                await self.app_put({"type": "websocket.receive", "bytes": None, "text": message.data})
            case WSMsgType.BINARY:
                await self.app_put({"type": "websocket.receive", "bytes": message.data, "text": None})
            case WSMsgType.PING:
                await self._send_wsproto_event(Pong(payload=message.data))
            case WSMsgType.CLOSE:
                await self._end(CloseConnection(code=message.data or CloseReason.NORMAL_CLOSURE))

    async def _end(self, closing: CloseConnection) -> None:
        if self.connection.state is ConnectionState.OPEN:
            await self._send_wsproto_event(closing)
        await self.send(StreamClosed(stream_id=self.stream_id))


def build_frame(first: int, payload: bytes) -> bytes:
    """Build a frame without a mask, as servers send it. `first` is its first byte."""
    length = len(payload)
    if length < 126:
        return struct.pack("!BB", first, length) + payload
    if length < 1 << 16:
        return struct.pack("!BBH", first, 126, length) + payload
    return struct.pack("!BBQ", first, 127, length) + payload


class _Received(WebSocketDataQueue):
    """Messages of the data that was parsed last. Hypercorn's queue of the application slows down a client that sends
    too many.
    """

    def __init__(self, protocol: BaseProtocol, limit: int, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(protocol, limit, loop=loop)
        self.messages: deque[WSMessage | WSMessageTextBytes] = deque()

    def feed_data(self, data: WSMessage | WSMessageTextBytes, size: int) -> None:
        """Keep a message."""
        self.messages.append(data)
