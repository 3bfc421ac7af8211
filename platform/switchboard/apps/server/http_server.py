"""The HTTP server of a process: hypercorn on asyncio, stopped by an event."""

import asyncio
import logging
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import h11
import hypercorn.protocol
import structlog
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.events import Data
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol

from switchboard.apps.server.websocket_stream import WebSocketStream
from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.settings import Settings

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework, H11SendableEvent

logger = structlog.get_logger()
GRACE_SECONDS = 15.0
KEEP_ALIVE_SECONDS = 75.0
"""Longer than the 60 seconds for which nginx and the balancers of clouds keep an idle connection: the server must not
close first, or a request that is sent in that moment is lost."""
NOT_READY_SECONDS, NOT_READY_SHARE = 5.0, 0.01
"""Time for which a draining server accepts connections at least, and its greatest share of the drain: none where the
drain takes seconds, because nobody has a balancer there."""


class Http1Protocol(H11Protocol):
    """HTTP/1.1 and nothing else. TLS and HTTP/2 end at the proxy, so a client that speaks HTTP/2 in clear text is an
    attacker with cheap streams (CVE-2023-44487), not a user.

    The head of a response waits for the first part of its body if the length is known: each write is a system call.
    """

    _head = b""

    async def handle(self, event: Event) -> None:
        """Handle data of the client. That of an open WebSocket is handed on at once."""
        if isinstance(event, RawData) and isinstance(self.stream, WebSocketStream) and self.stream.is_open:
            await self.stream.handle(Data(stream_id=STREAM_ID, data=event.data))
        else:
            await super().handle(event)

    async def _send_h11_event(self, event: "H11SendableEvent") -> None:
        try:
            data = self.connection.send(event) or b""
        except h11.LocalProtocolError:
            if (
                self.connection.their_state is not h11.ERROR
            ):  # else the client has broken the protocol, and gets no more
                raise
            return
        if isinstance(event, h11.Response) and any(name == b"content-length" for name, _ in event.headers):
            self._head = data
        elif self._head or data:
            data, self._head = self._head + data, b""
            await self.send(RawData(data=data))

    async def _check_protocol(self, event: h11.Request) -> None:
        """Stay with HTTP/1.1 where hypercorn would switch to HTTP/2 (RFC 9113, 3.1)."""

    async def _create_stream(self, request: h11.Request) -> None:
        status = _find_refusal(request)
        if status is None:
            await super()._create_stream(request)
        else:
            await self._send_error_response(status)
            await self.send(Closed())


def _find_refusal(request: h11.Request) -> HTTPStatus | None:
    """Return the status for a request that is not served.

    One with two lengths may be two requests to a proxy (RFC 9112, 6.1).
    """
    if request.http_version not in (b"1.0", b"1.1"):
        return HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
    names = {name for name, _ in request.headers}
    return HTTPStatus.BAD_REQUEST if {b"transfer-encoding", b"content-length"} <= names else None


# hypercorn has no setting for these: they are looked up in their modules, which do not export them.
setattr(hypercorn.protocol, "H11Protocol", Http1Protocol)  # noqa: B010
setattr(hypercorn.protocol.h11, "WSStream", WebSocketStream)  # noqa: B010


class CannotListen(Exception):
    """The address is taken or not available; the message is one line."""


def raise_file_limit() -> None:
    """Raise the limit of open files to the maximum: calls and deliveries soon reach the usual soft limit of 1024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class StopRequest(asyncio.Event):
    """Set when the process is to stop. `at_once` is set when it is not to wait for its live calls either."""

    def __init__(self) -> None:
        super().__init__()
        self.at_once = asyncio.Event()

    def handle_signal(self) -> None:
        """Stop at the first signal, and stop at once at the second."""
        (self.at_once if self.is_set() else self).set()


def stop_on_signals() -> StopRequest:
    """Return an event that SIGINT and SIGTERM set."""
    stop = StopRequest()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.handle_signal)
    return stop


@dataclass(frozen=True, slots=True)
class Inheritance:
    """File descriptors that a process of a group has from its parent (`process_group.py`): its listening socket, and
    the link, a socket on which the process reports that it serves, and sees the end of its parent.
    """

    listener: int
    link: int

    def follow_parent(self, stop: StopRequest) -> None:
        """Stop when the parent is gone, as for SIGTERM."""
        loop = asyncio.get_running_loop()

        def handle_end() -> None:
            loop.remove_reader(self.link)
            stop.handle_signal()

        loop.add_reader(self.link, handle_end)

    def report_serving(self) -> None:
        """Tell the parent that this process serves."""
        with suppress(OSError):  # it is gone, which `follow_parent` sees
            os.write(self.link, b"1")


async def serve_http(
    application: "ASGIFramework",
    settings: Settings,
    engine: CallEngine,
    stop: StopRequest,
    inheritance: Inheritance | None = None,
) -> None:
    """Serve until `stop` is set; then drain live calls, finish requests, and close sockets. Raises `CannotListen`.

    While live calls drain, the server answers everything but `/readyz` as before. A process of a group listens on the
    socket that it has inherited.
    """
    host, port = settings.host, settings.port

    async def trigger() -> None:  # hypercorn calls it once it listens
        if inheritance is not None:
            inheritance.report_serving()
        await stop.wait()
        logger.info("draining", live_calls=len(engine.live_call_ids), seconds=settings.drain_seconds)
        engine.begin_drain()
        ending = asyncio.create_task(_end_calls_at_once(engine, stop))
        # A balancer needs a moment to see that this server is not ready, also when there is no call to wait for.
        await asyncio.sleep(min(NOT_READY_SECONDS, settings.drain_seconds * NOT_READY_SHARE))
        await engine.drain(settings.drain_seconds)
        ending.cancel()

    address = f"{host}:{port}" if inheritance is None else f"fd://{inheritance.listener}"
    with explain_address(host, port):
        await hypercorn_serve(application, _build_config(address), shutdown_trigger=trigger)


async def _end_calls_at_once(engine: CallEngine, stop: StopRequest) -> None:
    """End the live calls once an operator does not want to wait for them any longer."""
    await stop.at_once.wait()
    logger.info("ending live calls at once", live_calls=len(engine.live_call_ids))
    await engine.drain(0)


async def serve_health(
    application: "ASGIFramework", host: str, port: int, stop: asyncio.Event, *, variable: str
) -> None:
    """Serve a process's health endpoints until `stop` is set. With port 0 only wait.

    Sets `stop` and raises `CannotListen`, which names the `variable` to change, if the address cannot be used.
    """
    if not port:
        await stop.wait()
        return
    config = _build_config(f"{host}:{port}")
    try:
        with explain_address(host, port, variable):
            await hypercorn_serve(application, config, shutdown_trigger=stop.wait)
    finally:
        stop.set()


def _build_config(address: str) -> Config:
    config = Config()
    config.bind = [address]
    config.graceful_timeout = GRACE_SECONDS
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    config.backlog = 2048
    config.errorlog = logging.getLogger("hypercorn.error")
    config.include_server_header = False
    config.websocket_max_message_size = 1 << 20
    config.websocket_ping_interval = None
    return config


@contextmanager
def explain_address(host: str, port: int, variables: str = "SWITCHBOARD_HOST or SWITCHBOARD_PORT") -> Iterator[None]:
    """Raise `CannotListen` for an address that cannot be bound within the block, with the settings to change."""
    try:
        yield
    except OSError as error:
        raise CannotListen(f"cannot listen on {host}:{port}: {error.strerror or error}; set {variables}") from error
