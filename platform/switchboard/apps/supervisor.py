"""Supervise child processes: restart one that dies, and stop all together."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import structlog

from switchboard.foundation.settings import OperatorError

logger = structlog.get_logger()
STOP_SECONDS = 25.0
BACKOFF_SECONDS = (0.5, 2.0, 5.0)
HEALTHY_SECONDS = 30.0


class CrashLoop(OperatorError):
    """A child keeps dying right after its start; the message names it."""


class Child:
    """One role as a child process."""

    def __init__(
        self,
        role: str,
        spawn: Callable[[], Awaitable[asyncio.subprocess.Process]],
        *,
        stop_seconds: float = STOP_SECONDS,
        gives_up: bool = True,
    ) -> None:
        """`gives_up` raises `CrashLoop` after several immediate deaths; otherwise the child is restarted for ever."""
        self.role = role
        self._spawn = spawn
        self._stop_seconds = stop_seconds
        self._gives_up = gives_up
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False

    async def start(self) -> None:
        """Start the process. Raises `OSError`."""
        self._process = await self._spawn()

    async def wait(self) -> int | None:
        """Wait until the process has ended, and return its exit status; None if it has never been started."""
        return await self._process.wait() if self._process is not None else None

    async def keep(self) -> None:
        """Run the child, and restart it when it dies. Raises `CrashLoop` if it is to give up."""
        loop = asyncio.get_running_loop()
        failures = 0
        while not self._stopping:
            began = loop.time()
            status = await self._run()
            if self._stopping:
                return
            failures = 0 if loop.time() - began > HEALTHY_SECONDS else failures + 1
            if self._gives_up and failures > len(BACKOFF_SECONDS):
                raise CrashLoop(f"{self.role} dies right after its start (exit status {status})")
            patience = BACKOFF_SECONDS[min(max(0, failures - 1), len(BACKOFF_SECONDS) - 1)]
            logger.error("a process died and is restarted", role=self.role, status=status, seconds=patience)
            await asyncio.sleep(patience)

    async def _run(self) -> int | None:
        if self._process is None or self._process.returncode is not None:
            try:
                await self.start()
            except OSError:
                logger.exception("a process cannot be started", role=self.role)
                return None
        return await self.wait()

    def terminate(self) -> None:
        """Ask the process to stop, for good: it is not restarted."""
        self._stopping = True
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    async def stop(self) -> int | None:
        """Stop the child for good: terminate it, and kill it if it does not stop. Return its exit status."""
        self.terminate()
        try:
            async with asyncio.timeout(self._stop_seconds):
                return await self.wait()
        except TimeoutError:
            logger.warning("a process did not stop and is killed", role=self.role)
            if self._process is not None:
                self._process.kill()
            return await self.wait()


async def spawn_switchboard(
    *arguments: str, environment: Mapping[str, str], inherited: Sequence[int] = ()
) -> asyncio.subprocess.Process:
    """Start a command of this program, in a session of its own: a terminal's Ctrl-C reaches only the supervisor.

    The process has the file descriptors of `inherited`. Raises `OSError`.
    """
    program = [sys.executable, "-m", "switchboard", *arguments]
    return await asyncio.create_subprocess_exec(
        *program, env={**os.environ, **environment}, start_new_session=True, pass_fds=inherited
    )


def create_child(role: str, environment: Mapping[str, str], *, stop_seconds: float = STOP_SECONDS) -> Child:
    """Create the child that runs the command of this role, with these variables besides those of this process."""
    return Child(role, partial(spawn_switchboard, role, environment=environment), stop_seconds=stop_seconds)


async def supervise(children: Sequence[Child], stop: asyncio.Event) -> None:
    """Keep children running until `stop` is set, then stop them in their order. Raises `CrashLoop`."""
    keeping = [asyncio.create_task(child.keep()) for child in children]
    stopping = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait((*keeping, stopping), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for child in children:  # the worker last: simulated callers are in it
            await child.stop()
        for task in (*keeping, stopping):
            task.cancel()
        await asyncio.gather(*keeping, stopping, return_exceptions=True)
