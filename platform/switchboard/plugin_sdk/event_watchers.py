"""Event watchers: classes that plugins write, and delivery of events to the plain hook `event_published`, each in its
own thread, so that a watcher that hangs or raises affects nobody else.
"""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog

from switchboard.plugin_sdk.llm import JsonObject
from switchboard.plugin_sdk.provider import Extension

logger = structlog.get_logger()

WATCHER_SECONDS = 10.0
MAX_STUCK_WATCHERS = 8


@dataclass(frozen=True, slots=True)
class PublishedEvent:
    """An event of the catalog (for example `call.completed`), after its transaction was committed. `data` is the
    webhook payload.
    """

    id: UUID
    organization_id: UUID
    name: str
    data: JsonObject
    occurred_at: datetime


class EventWatcher(Extension, ABC):
    """Watches the events of the organizations that have its settings. A watcher without required settings watches the
    events of every organization.

    A worker creates an instance, without arguments, for each event.
    """

    @abstractmethod
    async def watch(self, event: PublishedEvent) -> None:
        """Handle an event within 10 seconds, after its transaction was committed.

        Called at least once per event, and again after a crash: `event.id` is the same. What it raises is logged, and
        the event is not delivered again.
        """


class HookWatcher:
    """One plugin's `event_published`."""

    def __init__(
        self, plugin: str, watch: Callable[[PublishedEvent], object], *, seconds: float = WATCHER_SECONDS
    ) -> None:
        self._plugin = plugin
        self._watch = watch
        self._seconds = seconds
        self._running = 0

    async def notify(self, event: PublishedEvent) -> BaseException | None:
        """Call the watcher, wait at most `seconds`, and return the exception that it raised.

        A thread cannot be stopped, so a watcher that takes longer is left running. A plugin with `MAX_STUCK_WATCHERS`
        such threads receives no more events until one of them returns.
        """
        if self._running >= MAX_STUCK_WATCHERS:
            logger.error(
                "event not delivered to a plugin: its earlier calls still run",
                plugin=self._plugin,
                event_name=event.name,
            )
            return None
        try:
            async with asyncio.timeout(self._seconds):
                return await self._start(event)
        except TimeoutError:
            logger.error(
                "plugin timed out while watching an event",
                plugin=self._plugin,
                event_name=event.name,
                seconds=self._seconds,
            )
            return None

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
            except BaseException as raised:  # noqa: BLE001 - third-party code, at the top of its thread
                error = raised
            # The event loop may be closed by the time a slow plugin returns.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, error)

        self._running += 1
        # A daemon thread, because the process waits for non-daemon threads and thread pools when it exits.
        threading.Thread(target=run, name=f"{self._plugin} watching", daemon=True).start()
        return done
