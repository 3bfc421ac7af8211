"""The worker loop that advances automation runs. The rows are the queue: a wake-up makes the loop look at once,
otherwise it looks every second.

Actions may take long, so they do not use the workers' job slots: calls and text messages never wait for a tenant's
endpoint.
"""

import asyncio
import contextlib
from collections import Counter
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.engine.providers.instances import Extensions
from switchboard.foundation.observability import metrics
from switchboard.foundation.outbound import OutboundClient
from switchboard.resources.automations import runs, system_queries

logger = structlog.get_logger()
MOST = 64
"""Runs that a worker advances at the same time."""
MOST_EACH = 8
"""Runs of one organization at the same time, so that its slow endpoints do not delay other organizations."""
POLL_SECONDS = 1.0
STOP_SECONDS = 5.0


class RunWorker:
    """Advance due runs until stopped."""

    def __init__(self, extensions: Extensions, outbound: OutboundClient, *, due: asyncio.Event) -> None:
        self._extensions, self._outbound = extensions, outbound
        self._due = due
        self._under_way: dict[UUID, asyncio.Task[None]] = {}
        self._owners: Counter[UUID] = Counter()

    async def run(self, stop: asyncio.Event) -> None:
        """Advance runs until `stop` is set. Runs in progress then get a few seconds; the rest become due again when
        their leases lapse.
        """
        stopping = asyncio.create_task(self._wake_at(stop))
        try:
            while not stop.is_set():
                self._due.clear()
                if not await self._start_due():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(POLL_SECONDS):
                            await self._due.wait()
        finally:
            stopping.cancel()
            await self._finish()

    async def _start_due(self) -> int:
        """Start due runs up to the concurrency limits; return how many were started."""
        try:
            due = await system_queries.list_due_runs(self._extensions.database, limit=MOST, per_organization=MOST_EACH)
        except (SQLAlchemyError, OSError) as error:
            logger.warning("automation runs wait for the database", error=type(error).__name__)
            return 0
        started = 0
        for organization_id, run_id in due:
            if (
                run_id not in self._under_way
                and len(self._under_way) < MOST
                and self._owners[organization_id] < MOST_EACH
            ):
                self._under_way[run_id] = asyncio.create_task(self._take(organization_id, run_id))
                self._owners[organization_id] += 1
                started += 1
        return started

    async def _take(self, organization_id: UUID, run_id: UUID) -> None:
        """Advance a run until it has to wait."""
        moved = False
        metrics.leases_held.labels("automation_run").inc()
        try:
            while await runs.advance_run(self._extensions, self._outbound, organization_id, run_id):
                moved = True
        except (SQLAlchemyError, OSError) as error:
            logger.warning("automation run waits for the database", run_id=str(run_id), error=type(error).__name__)
        finally:
            metrics.leases_held.labels("automation_run").dec()
            self._owners -= Counter([organization_id])
            del self._under_way[run_id]
            # A run that cannot advance now, because it is locked or the database cannot be reached, is retried on the
            # next tick.
            if moved:
                self._due.set()

    async def _wake_at(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._due.set()

    async def _finish(self) -> None:
        left = set(self._under_way.values())
        if left:
            _, left = await asyncio.wait(left, timeout=STOP_SECONDS)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
