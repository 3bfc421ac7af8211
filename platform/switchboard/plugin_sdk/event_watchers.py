"""Telling plugins about events: each in a thread of its own, so that one that hangs or raises costs nobody else anything."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

import structlog

from switchboard.plugin_sdk.hooks import PublishedEvent

logger = structlog.get_logger()

WATCHER_SECONDS = 10.0
MAX_STUCK_WATCHERS = 8


class EventWatcher:
    """One plugin's `event_published`."""

    def __init__(
        self, plugin: str, watch: Callable[[PublishedEvent], object], *, seconds: float = WATCHER_SECONDS
    ) -> None:
        self._plugin = plugin
        self._watch = watch
        self._seconds = seconds
        self._running = 0

    async def notify(self, event: PublishedEvent) -> None:
        """Wait until it has watched, at most `seconds`; what it raises is logged. Nothing is raised.

        A thread cannot be stopped: one that takes longer is left behind, and a plugin with `MAX_LEFT_BEHIND` of them is not told of more
        until one returns.
        """
        if self._running >= MAX_STUCK_WATCHERS:
            logger.error(
                "plugin not told of an event: it hangs in earlier ones", plugin=self._plugin, event_name=event.name
            )
            return
        try:
            async with asyncio.timeout(self._seconds):
                error = await self._start(event)
        except TimeoutError:
            logger.error(
                "plugin left behind while watching an event",
                plugin=self._plugin,
                event_name=event.name,
                seconds=self._seconds,
            )
            return
        if error is not None:
            logger.error(
                "plugin failed while watching an event", plugin=self._plugin, event_name=event.name, exc_info=error
            )

    def _start(self, event: PublishedEvent) -> asyncio.Future[BaseException | None]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[BaseException | None] = loop.create_future()

        def settle(error: BaseException | None) -> None:
            self._running -= 1
            if not done.done():
                done.set_result(error)

        def run() -> None:
            error: BaseException | None = None
            try:
                self._watch(event)
            except BaseException as raised:  # noqa: BLE001 - a stranger's code may raise anything, and this is its thread's end
                error = raised
            # The process may have ended its loop before a plugin that was left behind returned.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, error)

        self._running += 1
        # A daemon, because the threads of a pool are waited for when the process ends.
        threading.Thread(target=run, name=f"{self._plugin} watching", daemon=True).start()
        return done
