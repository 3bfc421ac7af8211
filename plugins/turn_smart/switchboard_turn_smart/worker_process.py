"""The server's side of the process that runs the model: a bounded queue, and a restart after a death."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from contextvars import Context
from typing import Final

from switchboard.plugin_sdk import ProviderError

from switchboard_turn_smart.worker import LENGTH, PROBABILITY

MAX_WAITING = 2
"""Predictions that may wait for the one in progress. Another would come too late."""


class WorkerProcess:
    """Runs the model in another process, one prediction at a time."""

    def __init__(self) -> None:
        self._requests: asyncio.Queue[tuple[bytes, asyncio.Future[float]]] = asyncio.Queue(MAX_WAITING)
        self._process: Process | None = None
        # Without the context of the call that happens to be first.
        self._serving = asyncio.create_task(self._serve(), context=Context())

    @property
    def process_id(self) -> int | None:
        """Id of the process, None while there is none."""
        return self._process.pid if self._process is not None else None

    async def predict(self, audio: bytes) -> float:
        """Return the model's probability. Raises `ProviderError` if too many predictions wait, or the process dies."""
        answer: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        try:
            self._requests.put_nowait((audio, answer))
        except asyncio.QueueFull:
            raise ProviderError("too many predictions are waiting") from None
        return await answer

    async def close(self) -> None:
        """End the process."""
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)
        await self._end_process()

    async def _serve(self) -> None:
        with suppress(OSError):  # the first request tries again, and fails with the reason
            await self._start()
        while True:
            audio, answer = await self._requests.get()
            if answer.done():  # canceled: the call did not wait for it
                continue
            try:
                probability = await self._exchange(audio)
            except (OSError, asyncio.IncompleteReadError) as error:
                await self._end_process()
                if not answer.done():
                    answer.set_exception(ProviderError(f"the process of the model died: {error}"))
            else:
                if not answer.done():
                    answer.set_result(probability)

    async def _start(self) -> Process:
        # A session of its own: an interrupt from the keyboard is meant for the server, which ends the process itself.
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "switchboard_turn_smart.worker", stdin=PIPE, stdout=PIPE, start_new_session=True
        )
        return self._process

    async def _exchange(self, audio: bytes) -> float:
        process = self._process or await self._start()
        if process.stdin is None or process.stdout is None:
            raise BrokenPipeError
        process.stdin.write(LENGTH.pack(len(audio)) + audio)
        await process.stdin.drain()
        (probability,) = PROBABILITY.unpack(await process.stdout.readexactly(PROBABILITY.size))
        return float(probability)

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()


class SharedWorker:
    """The process of all organizations, from its first user to its last."""

    def __init__(self) -> None:
        self._worker: WorkerProcess | None = None
        self._users = 0

    @property
    def process_id(self) -> int | None:
        """Id of the process, None while there is none."""
        return self._worker.process_id if self._worker is not None else None

    def acquire(self) -> WorkerProcess:
        """Return the process, which begins to load the model with its first user."""
        if self._worker is None:
            self._worker = WorkerProcess()
        self._users += 1
        return self._worker

    async def release(self) -> None:
        """End the process with its last user."""
        self._users -= 1
        if self._users == 0 and self._worker is not None:
            worker, self._worker = self._worker, None
            await worker.close()


SHARED: Final = SharedWorker()
