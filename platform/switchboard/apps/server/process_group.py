"""Several `serve` processes on one port, and the parent that supervises them.

Each process has a listening socket of its own on the same address (`SO_REUSEPORT`), among which the kernel spreads new
connections by a hash of their addresses. The parent holds no connection and no call.
"""

import asyncio
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from prometheus_client import multiprocess

from switchboard.apps.server.http_server import StopRequest, explain_address
from switchboard.apps.supervisor import STOP_SECONDS, Child, spawn_switchboard
from switchboard.foundation.jobs import run_beside
from switchboard.foundation.observability.metrics import GROUP_FOLDER
from switchboard.foundation.settings import Settings

FAILED: Final = 1


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
