"""The HTTP server of a process: hypercorn on asyncio, stopped by an event. And groups of such processes on one port."""

import asyncio
import logging
import os
import resource
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import h11
import hypercorn.protocol
import structlog
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config
from hypercorn.protocol.h11 import H11Protocol
from prometheus_client import multiprocess

from switchboard.apps.supervisor import STOP_SECONDS, Child, spawn_switchboard
from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.jobs import run_beside
from switchboard.foundation.observability.metrics import GROUP_FOLDER
from switchboard.foundation.settings import OperatorError, Settings

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

logger = structlog.get_logger()
FAILED: Final = 1
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
    """File descriptors that a process of a group has from its parent (`run_process_group`): its listening socket, and
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
    try:
        with explain_address(host, port, variable):
            await hypercorn_serve(application, _build_config(f"{host}:{port}"), shutdown_trigger=stop.wait)
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


# Several `serve` processes on one port, and the parent that supervises them.
#
# Each process has a listening socket of its own on the same address (`SO_REUSEPORT`), among which the kernel spreads
# new connections by a hash of their addresses. The parent holds no connection and no call.


async def run_process_group(settings: Settings, processes: int, stop: StopRequest) -> int:
    """Keep so many `serve` processes running until `stop` is set; return the exit status.

    The first process starts alone. If it ends before it serves, it has said why, and its exit status is that of the
    group. A process that dies later is restarted. Raises `CannotListen` if the address is taken.
    """
    with explain_address(settings.host, settings.port):
        # An address of `SO_REUSEPORT` may be shared with strangers of the same user: another installation.
        open_listener(settings.host, settings.port, shared=False).close()
    with TemporaryDirectory(prefix="switchboard-metrics-") as folder:
        members = [_Member(settings, Path(folder)) for _ in range(processes)]
        stopping, first = asyncio.create_task(stop.wait()), asyncio.create_task(members[0].start())
        await asyncio.wait({stopping, first}, return_when=asyncio.FIRST_COMPLETED)
        if not stop.is_set() and (status := first.result()) is not None:
            stopping.cancel()
            return status if status > 0 else FAILED
        keeping = [asyncio.create_task(member.child.keep()) for member in members if not stop.is_set()]
        await stopping
        # All members drain at the same time.
        async with run_beside(_forward_second_signal(members, stop)):
            statuses = await asyncio.gather(*(member.child.stop() for member in members))
        for task in (first, *keeping):
            task.cancel()
        await asyncio.gather(first, *keeping, return_exceptions=True)
    # A process that has hardly begun dies of the signal.
    return FAILED if set(statuses) - {None, 0, -signal.SIGTERM} else 0


async def _forward_second_signal(members: Sequence["_Member"], stop: StopRequest) -> None:
    await stop.at_once.wait()
    for member in members:
        member.child.terminate()


def open_listener(host: str, port: int, *, shared: bool = True) -> socket.socket:
    """Return a socket that is bound and does not listen yet: until a process does, it gets no connection.

    `shared` lets others bind the address too. Raises `OSError`.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


class _Member:
    """One process of a group, and the link to it: the process reports that it serves, and ends when the parent does."""

    def __init__(self, settings: Settings, metrics_folder: Path) -> None:
        self._settings = settings
        self._metrics_folder = metrics_folder
        self._link: socket.socket | None = None
        self._pid: int | None = None
        seconds = settings.drain_seconds + STOP_SECONDS
        # The others have live calls, so one process that cannot be started does not end the group.
        self.child = Child("serve", self._spawn, stop_seconds=seconds, gives_up=False)

    async def start(self) -> int | None:
        """Start the process, and wait until it serves; return its exit status if it ends before."""
        await self.child.start()
        assert self._link is not None  # noqa: S101 - of the process that was started
        served = await asyncio.get_running_loop().sock_recv(self._link, 1)
        return None if served else await self.child.wait()

    async def _spawn(self) -> asyncio.subprocess.Process:
        if self._pid is not None:
            multiprocess.mark_process_dead(self._pid, str(self._metrics_folder))  # type: ignore[no-untyped-call]
        if self._link is not None:
            self._link.close()
        self._link, theirs = socket.socketpair()
        self._link.setblocking(False)
        with theirs, open_listener(self._settings.host, self._settings.port) as listener:
            inherited = (listener.fileno(), theirs.fileno())
            process = await spawn_switchboard(
                "serve",
                "--inherit",
                *map(str, inherited),
                environment={GROUP_FOLDER: str(self._metrics_folder)},
                inherited=inherited,
            )
        self._pid = process.pid
        return process
