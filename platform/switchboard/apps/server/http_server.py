"""The HTTP server of a process: hypercorn on asyncio, stopped by an event."""

import asyncio
import logging
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11
import hypercorn.protocol
import structlog
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config
from hypercorn.protocol.h11 import H11Protocol

from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.jobs import run_beside
from switchboard.foundation.settings import OperatorError, Settings

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

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
    attacker with cheap streams (CVE-2023-44487), not a user. Hypercorn has no setting for it.
    """

    async def _check_protocol(self, event: h11.Request) -> None:
        """Stay with HTTP/1.1 where hypercorn would switch to HTTP/2 (RFC 9113, 3.1)."""


setattr(hypercorn.protocol, "H11Protocol", Http1Protocol)  # noqa: B010 - it is looked up in its module


class CannotListen(OperatorError):
    """The address is taken or not available."""


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
        async with run_beside(_end_calls_at_once(engine, stop)):
            # A balancer needs a moment to see that this server is not ready, also when there is no call to wait for.
            await asyncio.sleep(min(NOT_READY_SECONDS, settings.drain_seconds * NOT_READY_SHARE))
            await engine.drain(settings.drain_seconds)

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
