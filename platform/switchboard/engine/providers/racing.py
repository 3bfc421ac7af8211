"""Streams of several providers at once, so that whichever speaks first can be taken."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Generic, TypeVar

RunnerT = TypeVar("RunnerT")
Item = TypeVar("Item")


class Race(Generic[RunnerT, Item]):
    """Each runner's stream is read by a task of its own from beginning to end: a stream may rely on that (`asyncio.timeout` does)."""

    def __init__(self) -> None:
        self._news: asyncio.Queue[tuple[RunnerT, Item | BaseException | None]] = asyncio.Queue()
        self._reading: dict[RunnerT, asyncio.Task[None]] = {}
        self._stopped: list[asyncio.Task[None]] = []

    @property
    def runners(self) -> list[RunnerT]:
        """Whose streams are being read, in the order of their start."""
        return list(self._reading)

    def start(self, runner: RunnerT, stream: AsyncIterator[Item]) -> None:
        """Read one more stream."""
        task = asyncio.create_task(self._read(runner, stream))
        task.add_done_callback(partial(self._over, runner))
        self._reading[runner] = task

    def drop(self, runner: RunnerT) -> None:
        """Stop reading a stream at once; nothing is heard of it any more."""
        task = self._reading.pop(runner)
        task.cancel()
        self._stopped.append(task)

    async def next(self, seconds: float) -> tuple[RunnerT, Item | Exception | None]:
        """The next item of any stream, what a stream failed with, or None for a stream that is over. Raises `TimeoutError`."""
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
        async with aclosing(stream):  # type: ignore[type-var] # a stream that cannot be closed is none of a provider's
            async for item in stream:
                self._news.put_nowait((runner, item))
                # A stream that has much at hand never waits by itself, and whoever listens is to go on with the first of it.
                await asyncio.sleep(0)

    def _over(self, runner: RunnerT, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._news.put_nowait((runner, task.exception()))
