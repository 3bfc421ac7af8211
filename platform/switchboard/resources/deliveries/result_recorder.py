"""Write results in batches, each only under its lease. During an outage of the database, results wait in memory as long
as the lease holds.
"""

import asyncio
from collections.abc import Collection
from time import monotonic
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import Database
from switchboard.foundation.observability import metrics
from switchboard.resources.deliveries import system_queries
from switchboard.resources.deliveries.sender import AttemptResult

logger = structlog.get_logger()

BATCH = 256
WAITING = 4096
RETRY_SECONDS = 0.5


class ResultRecorder:
    """Writes results of attempts. `seconds` is how long after an attempt its lease can still hold."""

    def __init__(self, database: Database, written: asyncio.Event, *, seconds: float) -> None:
        self._database = database
        self._written = written
        self._seconds = seconds
        self._results: asyncio.Queue[AttemptResult | None] = asyncio.Queue(WAITING)
        self._given_up: list[UUID] = []

    async def put(self, result: AttemptResult) -> None:
        """Queue a result; waits while too many are queued."""
        await self._results.put(result)

    def hand_back_at_close(self, tokens: Collection[UUID]) -> None:
        """Register leases without a result, to be released on close."""
        self._given_up = list(tokens)

    async def close(self) -> None:
        """Let `run` end once everything is written."""
        await self._results.put(None)

    async def run(self) -> None:
        """Write results until closed."""
        closing = False
        while not closing:
            batch = [await self._results.get()]
            while len(batch) < BATCH and not self._results.empty():
                batch.append(self._results.get_nowait())
            closing = None in batch
            await self._write([result for result in batch if result is not None])
        if self._given_up:
            await self._hand_back()

    async def _write(self, results: list[AttemptResult]) -> None:
        until = monotonic() + self._seconds
        while results:
            try:
                await self._record(results)
                metrics.leases_held.labels("delivery").dec(len(results))
                self._written.set()
                return
            except (SQLAlchemyError, OSError) as error:
                if monotonic() > until:
                    # Their leases have lapsed: another worker sends them again, with the same delivery id.
                    metrics.leases_held.labels("delivery").dec(len(results))
                    metrics.leases_lost.labels("delivery").inc(len(results))
                    logger.error(
                        "results of deliveries could not be written", count=len(results), error=type(error).__name__
                    )
                    return
                await asyncio.sleep(RETRY_SECONDS)

    async def _record(self, results: list[AttemptResult]) -> None:
        async with self._database.system() as session:
            disabled = await system_queries.record_results(session, results)
            for endpoint_id, organization_id in disabled:
                record_audit_as(session, organization_id, "system", AuditAction.WEBHOOK_ENDPOINT_DISABLED, endpoint_id)
        for endpoint_id, organization_id in disabled:
            metrics.endpoints_disabled.inc()
            logger.warning(
                "webhook endpoint disabled after failures",
                endpoint_id=str(endpoint_id),
                organization_id=str(organization_id),
            )

    async def _hand_back(self) -> None:
        try:
            async with self._database.system() as session:
                await system_queries.release_leases(session, self._given_up)
        except (SQLAlchemyError, OSError) as error:
            logger.warning("leases of deliveries are left to lapse", error=type(error).__name__)
