"""Supervise child processes: restart one that dies, and stop all together."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence

import structlog

logger = structlog.get_logger()
STOP_SECONDS = 25.0
BACKOFF_SECONDS = (0.5, 2.0, 5.0)
HEALTHY_SECONDS = 30.0


class CrashLoop(Exception):
    """A child keeps dying right after its start; the message names it."""


class Child:
    """One role, as a child process in a session of its own, so that a terminal's Ctrl-C reaches only the supervisor."""

    def __init__(self, role: str, environment: Mapping[str, str], *, stop_seconds: float = STOP_SECONDS) -> None:
        self.role = role
        self._environment = dict(environment)
        self._stop_seconds = stop_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False

    async def keep(self) -> None:
        """Run the child, and restart it when it dies. Raises `CrashLoop` after several immediate deaths."""
        loop = asyncio.get_running_loop()
        failures = 0
        while not self._stopping:
            began = loop.time()
            status = await self._run()
            if self._stopping:
                return
            failures = 0 if loop.time() - began > HEALTHY_SECONDS else failures + 1
            if failures > len(BACKOFF_SECONDS):
                raise CrashLoop(f"{self.role} dies right after its start (exit status {status})")
            patience = BACKOFF_SECONDS[max(0, failures - 1)]
            logger.error("a process died and is restarted", role=self.role, status=status, seconds=patience)
            await asyncio.sleep(patience)

    async def _run(self) -> int:
        program = [sys.executable, "-m", "switchboard", self.role]
        self._process = await asyncio.create_subprocess_exec(
            *program, env={**os.environ, **self._environment}, start_new_session=True
        )
        return await self._process.wait()

    async def stop(self) -> None:
        """Stop the child for good: terminate it, and kill it if it does not stop."""
        self._stopping = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._stop_seconds):
                await process.wait()
        except TimeoutError:
            logger.warning("a process did not stop and is killed", role=self.role)
            process.kill()
            await process.wait()


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
