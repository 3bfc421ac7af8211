"""Watchdog of a process's event loop, on which all of its calls depend: code that holds it is named.

A task on the loop notes the time every 20 ms; a thread beside it looks whether it does, and if it is late by more than
100 ms, reads the stack of the loop's thread. The distribution to blame is the innermost one that provides a plugin;
Python and libraries only do what they are asked for. The thread does little more, because the loop waits while it runs.
"""

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from traceback import StackSummary, walk_stack
from types import FrameType
from typing import Final

import structlog

from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.logs import MAX_FRAMES

logger = structlog.get_logger()

BEAT_SECONDS: Final = 0.02
BLOCKED_SECONDS: Final = 0.1
"""Five frames of a call's audio, which is when callers begin to hear it."""
LOOPS: Final = frozenset({"asyncio", "selectors", "uvloop"})
"""Packages of the innermost function of a loop that waits: the machine, and no code of ours, keeps it from running."""


@asynccontextmanager
async def watch_event_loop(distributions_by_package: Mapping[str, str]) -> AsyncIterator[None]:
    """Watch the running loop within the block. The packages are the plugins' top-level ones."""
    watchdog = _Watchdog(threading.get_ident(), distributions_by_package)
    thread = threading.Thread(target=watchdog.watch, name="event-loop-watchdog", daemon=True)
    beating = asyncio.create_task(watchdog.beat())
    thread.start()
    try:
        yield
    finally:
        watchdog.stopped.set()
        beating.cancel()
        await asyncio.to_thread(thread.join)


@dataclass(slots=True)
class _Watchdog:
    loop_thread: int
    distributions_by_package: Mapping[str, str]
    beaten_at: float = field(default_factory=time.monotonic)
    stopped: threading.Event = field(default_factory=threading.Event)

    async def beat(self) -> None:
        while True:
            due = time.monotonic() + BEAT_SECONDS
            await asyncio.sleep(BEAT_SECONDS)
            self.beaten_at = time.monotonic()
            metrics.event_loop_lag.observe(max(self.beaten_at - due, 0.0))

    def watch(self) -> None:
        """Run in a thread until `stopped` is set. Reports each time at which the loop is held once."""
        reported = 0.0
        while not self.stopped.wait(BEAT_SECONDS):
            beaten_at = self.beaten_at
            if beaten_at != reported and time.monotonic() - beaten_at > BEAT_SECONDS + BLOCKED_SECONDS:
                reported = beaten_at
                self._report()

    def _report(self) -> None:
        frame = sys._current_frames().get(self.loop_thread)  # noqa: SLF001 - documented by Python
        if frame is None or next(_list_packages(frame)) in LOOPS:
            return
        # Places in the code and no variables, which may be a caller's data.
        stack = StackSummary.extract(walk_stack(frame), limit=MAX_FRAMES, lookup_lines=False)
        known = self.distributions_by_package
        plugin = next((known[package] for package in _list_packages(frame) if package in known), "platform")
        metrics.event_loop_blocks.labels(plugin).inc()
        logger.warning(
            "the event loop is held",
            plugin=plugin,
            longer_than_ms=round(1000 * BLOCKED_SECONDS),
            at=[f"{place.filename}:{place.lineno} {place.name}" for place in reversed(stack)],
        )


def _list_packages(innermost: FrameType) -> Iterator[str]:
    """Yield the top-level package of each frame, the innermost first."""
    for frame, _ in walk_stack(innermost):
        yield str(frame.f_globals.get("__name__", "")).partition(".")[0]
