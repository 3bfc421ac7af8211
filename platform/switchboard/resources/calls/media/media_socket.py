"""Carriers' media sockets, `/media/<token>`."""

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Final

import structlog

from switchboard.foundation.keyring import KeyRing
from switchboard.plugin_sdk import Frame
from switchboard.resources.calls.dialing import read_media_token
from switchboard.resources.calls.media.call_runner import CallRunner
from switchboard.resources.calls.media_servers import MediaServers

if TYPE_CHECKING:
    from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, WebsocketScope

logger = structlog.get_logger()
PREFIX: Final = "/media/"
SEND_SECONDS = 5.0
CLOSE_SECONDS = 2.0
SILENT_SECONDS = 5.0
"""Time after which an open socket without a message is taken for the call's."""


class AsgiMediaSocket:
    """A carrier's WebSocket over ASGI (`MediaSocket`)."""

    def __init__(self, receive: "ASGIReceiveCallable", send: "ASGISendCallable") -> None:
        self._receive = receive
        self._send = send
        self.opened_at = time.monotonic()
        self._open = True
        self._gone = False
        self._first: Frame | None = None

    async def wait_for_carrier(self) -> bool:
        """Wait for the first message, which `receive` then returns; return whether the socket is still open.

        A proxy or library that lost the response to a handshake repeats the request (RFC 9110, 9.2.2). Nobody speaks
        on the first socket then, and the call belongs to the second.
        """
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                self._first = await self.receive()
        except TimeoutError:
            return True
        return self._first is not None

    async def receive(self) -> Frame | None:
        """Receive the next message; return None once the socket is closed."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        while self._open:
            message = await self._receive()
            if message["type"] == "websocket.receive":
                text = message["text"]
                return text if text is not None else message["bytes"]
            self._gone = message["type"] == "websocket.disconnect"
            self._open = not self._gone
        return None

    async def send(self, message: Frame) -> None:
        """Send a message.

        Raises `ConnectionError` if the socket is closed or the carrier does not accept the message within 5 seconds.
        """
        if not self._open:
            raise ConnectionError("the media socket is closed")
        text, data = (message, None) if isinstance(message, str) else (None, message)
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self._send({"type": "websocket.send", "bytes": data, "text": text})
        except TimeoutError:
            self._open = False
            raise ConnectionError("the carrier does not accept our audio") from None

    async def close(self) -> None:
        """Close the socket; a second call changes nothing."""
        if self._open:
            self._open = False
            await self._send({"type": "websocket.close", "code": 1000, "reason": None})

    async def drain(self) -> None:
        """Read until the carrier disconnects: unread messages would fill hypercorn's queue and hold the connection."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while not self._gone:
                    self._gone = (await self._receive())["type"] == "websocket.disconnect"


async def refuse_socket(send: "ASGISendCallable") -> None:
    """Refuse a socket that has not been accepted with 403."""
    await send({"type": "websocket.close", "code": 1008, "reason": None})


async def serve_media_socket(
    scope: "WebsocketScope",
    receive: "ASGIReceiveCallable",
    send: "ASGISendCallable",
    *,
    keyring: KeyRing,
    runner: CallRunner,
    media_servers: MediaServers,
) -> None:
    """Run the call whose token is in the path."""
    await receive()
    grant = read_media_token(keyring, scope["path"].removeprefix(PREFIX))
    if grant is None:
        logger.warning("media socket refused: the token is invalid")
        await refuse_socket(send)
        return
    await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
    socket = AsgiMediaSocket(receive, send)
    with runner.engine.hold():
        if not await socket.wait_for_carrier():
            logger.info("media socket closed before the carrier spoke", call_id=str(grant.call_id))
        elif await runner.run_call(grant, socket):
            await media_servers.release_place(grant.call_id)  # a call of less than a second is in no report
    await socket.drain()
