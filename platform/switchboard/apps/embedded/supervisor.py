"""Child processes kept running: one that dies is started again, all are stopped together."""

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


class Crashing(Exception):
    """A child dies again and again right after its start; the message names it."""


class Child:
    """One role, as a child process in a session of its own, so that a terminal's Ctrl-C reaches the supervisor alone."""

    def __init__(self, role: str, environment: Mapping[str, str]) -> None:
        self.role = role
        self._environment = dict(environment)
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False

    async def keep(self) -> None:
        """Run it, again when it dies. Raises `Crashing` when it does so at once several times."""
        loop = asyncio.get_running_loop()
        failures = 0
        while not self._stopping:
            began = loop.time()
            status = await self._run()
            if self._stopping:
                return
            failures = 0 if loop.time() - began > HEALTHY_SECONDS else failures + 1
            if failures > len(BACKOFF_SECONDS):
                raise Crashing(f"{self.role} dies right after its start (exit status {status})")
            patience = BACKOFF_SECONDS[max(0, failures - 1)]
            logger.error("a process died and is started again", role=self.role, status=status, seconds=patience)
            await asyncio.sleep(patience)

    async def _run(self) -> int:
        program = [sys.executable, "-m", "switchboard", self.role]
        self._process = await asyncio.create_subprocess_exec(
            *program, env={**os.environ, **self._environment}, start_new_session=True
        )
        return await self._process.wait()

    async def stop(self) -> None:
        """Stop it for good: asked first, killed when it does not."""
        self._stopping = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            logger.warning("a process did not stop and is killed", role=self.role)
            process.kill()
            await process.wait()


async def supervise(children: Sequence[Child], stop: asyncio.Event) -> None:
    """Keep children running until told to stop, then stop them all. Raises `Crashing`."""
    keeping = [asyncio.create_task(child.keep()) for child in children]
    stopping = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait((*keeping, stopping), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await asyncio.gather(*(child.stop() for child in children))
        for task in (*keeping, stopping):
            task.cancel()
        await asyncio.gather(*keeping, stopping, return_exceptions=True)
