"""Concurrent streams of several providers, of which the fastest is taken."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Generic, TypeVar

RunnerT = TypeVar("RunnerT")
Item = TypeVar("Item")


class Race(Generic[RunnerT, Item]):
    """Reads several streams, each in its own task from start to end, because a stream may rely on that
    (`asyncio.timeout` does).
    """

    def __init__(self) -> None:
        self._news: asyncio.Queue[tuple[RunnerT, Item | BaseException | None]] = asyncio.Queue()
        self._reading: dict[RunnerT, asyncio.Task[None]] = {}
        self._stopped: list[asyncio.Task[None]] = []

    @property
    def runners(self) -> list[RunnerT]:
        """Runners whose streams are being read, in the order of their start."""
        return list(self._reading)

    def start(self, runner: RunnerT, stream: AsyncIterator[Item]) -> None:
        """Read another stream."""
        task = asyncio.create_task(self._read(runner, stream))
        task.add_done_callback(partial(self._over, runner))
        self._reading[runner] = task

    def drop(self, runner: RunnerT) -> None:
        """Stop reading a stream at once and ignore its items."""
        task = self._reading.pop(runner)
        task.cancel()
        self._stopped.append(task)

    async def next(self, seconds: float) -> tuple[RunnerT, Item | Exception | None]:
        """Return the next item of any stream, the error of a failed stream, or None for a finished one. Raises
        `TimeoutError`.
        """
        async with asyncio.timeout(seconds):
            while True:
                runner, news = await self._news.get()
                if runner not in self._reading:
                    continue
                if isinstance(news, BaseException):
                    del self._reading[runner]
                    if not isinstance(news, Exception):
                        raise news
                return runner, news

    async def stop(self) -> None:
        """Stop reading, and wait until every stream is closed."""
        for runner in self.runners:
            self.drop(runner)
        await asyncio.gather(*self._stopped, return_exceptions=True)

    async def _read(self, runner: RunnerT, stream: AsyncIterator[Item]) -> None:
        async with aclosing(stream):  # type: ignore[type-var] # providers' streams are generators, which can be closed
            async for item in stream:
                self._news.put_nowait((runner, item))
                # A stream with buffered items never yields to the event loop, and the consumer must get the first
                # item early.
                await asyncio.sleep(0)

    def _over(self, runner: RunnerT, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._news.put_nowait((runner, task.exception()))
