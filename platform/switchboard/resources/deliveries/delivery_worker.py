"""The part of a worker that sends deliveries: claim, send within concurrency limits, record.

The rows of `delivery_due` are the queue. If the worker is killed, its leases lapse and its deliveries are due again.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import Database, SystemSession
from switchboard.foundation.jobs import end_tasks
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.foundation.observability import metrics
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.settings import Settings
from switchboard.resources.deliveries import queries
from switchboard.resources.deliveries.queries import Outcomes
from switchboard.resources.deliveries.sender import AttemptResult, ClaimedDelivery, DeliverySender

logger = structlog.get_logger()

SLOTS = 512
"""Requests of a worker at once."""
LEAST, FIRST, MOST = 16, 64, 256
"""Requests of an organization at once: the fewest that a worker learns, those that it begins with, and the most."""
REMEMBERED = 10_000
# Lease time beyond the receiver's timeout: waiting for the database before and after the request.
LEASE_SLACK_SECONDS = 15.0
KEPT_SECONDS: Final = 600.0
"""Time for which a worker keeps results that it cannot write."""
STOP_SECONDS = 5.0


@dataclass(slots=True)
class _Use:
    limit: int = FIRST
    taken: int = 0


class RequestLimits:
    """The places for requests of one worker, in all and of each organization, so that slow receivers of one
    organization leave places to the others.

    An organization's limit is halved by each failure that costs time, and grows by one with each success.
    """

    def __init__(self) -> None:
        self._taken = 0
        self._uses: dict[UUID, _Use] = {}

    @property
    def is_full(self) -> bool:
        """True if no organization has a free place."""
        return self._taken >= SLOTS

    def reserve(self, organization_id: UUID) -> int:
        """Take all free places of an organization, and return how many they are."""
        use = self._uses.setdefault(organization_id, _Use())
        count = max(0, min(use.limit - use.taken, SLOTS - self._taken))
        use.taken += count
        self._taken += count
        return count

    def release(self, organization_id: UUID, count: int) -> None:
        """Give places back. What was learned of idle organizations is dropped when they are too many."""
        use = self._uses[organization_id]
        use.taken -= count
        self._taken -= count
        if use.taken == 0 and (use.limit == FIRST or len(self._uses) > REMEMBERED):
            del self._uses[organization_id]

    def learn(self, organization_id: UUID, *, slow: bool, succeeded: bool) -> None:
        """Change the limit by the outcome of a request whose place is not given back yet."""
        use = self._uses[organization_id]
        if slow:
            use.limit = max(LEAST, use.limit // 2)
        elif succeeded:
            use.limit = min(MOST, use.limit + 1)


# Write results in batches, each only under its lease. During an outage of the database, results wait in memory as long
# as the lease holds.

BATCH = 256
WAITING = 4096
RETRY_SECONDS = 0.5


class ResultRecorder:
    """Writes results of attempts. `written` is called with the organizations of those that were written.

    While the database cannot be reached, nobody claims the deliveries either, so that results are kept for
    `KEPT_SECONDS`, and once the worker stops for `seconds`.
    """

    def __init__(self, database: Database, written: Callable[[set[UUID]], None], *, seconds: float) -> None:
        self._database = database
        self._written = written
        self._seconds = seconds
        self._results: asyncio.Queue[AttemptResult | None] = asyncio.Queue(WAITING)
        self._given_up: Sequence[ClaimedDelivery] = ()
        self._ends_at = math.inf

    async def put(self, result: AttemptResult) -> None:
        """Queue a result; waits while too many are queued."""
        await self._results.put(result)

    async def close(self, given_up: Collection[ClaimedDelivery]) -> None:
        """Let `run` end once everything is written, and the leases without a result are released."""
        self._given_up = list(given_up)
        self._ends_at = monotonic() + self._seconds
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
            try:
                async with self._database.system() as session:
                    await queries.release_leases(session, self._given_up)
            except (SQLAlchemyError, OSError) as error:
                logger.warning("leases of deliveries are left to lapse", error=type(error).__name__)

    async def _write(self, results: list[AttemptResult]) -> None:
        until = monotonic() + KEPT_SECONDS
        while results:
            try:
                await self._record(results)
                metrics.leases_held.labels("delivery").dec(len(results))
                self._written({result.claimed.organization_id for result in results})
                return
            except (SQLAlchemyError, OSError) as error:
                if monotonic() > min(until, self._ends_at):
                    # Another worker sends them again, with the same delivery id.
                    metrics.leases_held.labels("delivery").dec(len(results))
                    metrics.leases_lost.labels("delivery").inc(len(results))
                    logger.error(
                        "results of deliveries could not be written", count=len(results), error=type(error).__name__
                    )
                    return
                await asyncio.sleep(RETRY_SECONDS)

    async def _record(self, results: list[AttemptResult]) -> None:
        async with self._database.system() as session:
            disabled = await record_results(session, results)
            for endpoint_id, organization_id in disabled:
                record_audit_as(session, organization_id, "system", AuditAction.WEBHOOK_ENDPOINT_DISABLED, endpoint_id)
        for endpoint_id, organization_id in disabled:
            metrics.endpoints_disabled.inc()
            logger.warning(
                "webhook endpoint disabled after failures",
                endpoint_id=str(endpoint_id),
                organization_id=str(organization_id),
            )


async def record_results(session: SystemSession, results: Sequence[AttemptResult]) -> list[tuple[UUID, UUID]]:
    """Record results whose leases still hold, count failures per endpoint in the order in which deliveries ended, and
    learn the limits of their targets.

    Returns the id and organization of each endpoint that was disabled.
    """
    written = await queries.record_attempts(session, results)
    metrics.leases_lost.labels("delivery").inc(len(results) - len(written))
    outcomes: dict[UUID, Outcomes] = {}
    for result in results:
        if result.claimed.id not in written:
            continue
        target, status = written[result.claimed.id]
        outcome = outcomes.setdefault(target, Outcomes())
        outcome.slow += result.slow
        if status == "delivered":
            outcome.good += not result.slow
            outcome.reset, outcome.failed = True, 0
        elif status == "failed":
            outcome.failed += 1
            label = metrics.get_organization_label(result.claimed.organization_id)
            metrics.organization_failed_deliveries.labels(label).inc()
    return await queries.learn_from_outcomes(session, outcomes) if outcomes else []


class DeliveryWorker(AbstractAsyncContextManager["DeliveryWorker"]):
    """Sends deliveries within its block. At its end, requests in progress get a few seconds, and the remaining leases
    are released.
    """

    def __init__(self, settings: Settings, database: Database, keyring: KeyRing, outbound: OutboundClient) -> None:
        self._database = database
        self._sender = DeliverySender(
            outbound, keyring, delays=settings.webhook_retry_delays, seconds=settings.webhook_timeout
        )
        self._lease = settings.webhook_timeout + LEASE_SLACK_SECONDS
        self._limits = RequestLimits()
        self._recorder = ResultRecorder(database, self._claim_more, seconds=LEASE_SLACK_SECONDS)
        self._sending: dict[asyncio.Task[None], ClaimedDelivery] = {}
        self._claiming: set[asyncio.Task[None]] = set()
        self._waiting: set[UUID] = set()
        self._crowded_out: set[UUID] = set()
        self._is_stopping = False

    async def __aenter__(self) -> "DeliveryWorker":
        self._recording = asyncio.create_task(self._recorder.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_stopping = True
        await end_tasks(self._claiming, seconds=STOP_SECONDS)
        sending = dict(self._sending)
        left = await end_tasks(sending, seconds=STOP_SECONDS)
        await self._recorder.close([sending[task] for task in left])
        await self._recording

    async def deliver(self, organization_id: UUID) -> None:
        """Begin to send the ready deliveries of an organization, as far as there are places. What is left is sent as
        places become free.
        """
        if self._is_stopping:
            return
        places = self._limits.reserve(organization_id)
        claimed: list[ClaimedDelivery] = []
        has_more = True
        try:
            if places:
                async with self._database.system() as session:
                    found = await queries.claim_deliveries(session, organization_id, most=places, lease=self._lease)
                claimed, has_more = found  # which holds once it is committed
        finally:
            is_crowded_out = not places and self._limits.is_full
            self._limits.release(organization_id, places - len(claimed))
        if has_more:
            (self._crowded_out if is_crowded_out else self._waiting).add(organization_id)
        for delivery in claimed:
            metrics.deliveries_under_way.inc()
            metrics.leases_held.labels("delivery").inc()
            task = asyncio.create_task(self._send(delivery))
            self._sending[task] = delivery
            task.add_done_callback(lambda done: self._sending.pop(done, None))

    def _claim_more(self, organizations: set[UUID]) -> None:
        """Claim for those of the organizations that have more deliveries than they had places, and for those that found
        all places of the worker taken.
        """
        again = (self._waiting & organizations) | self._crowded_out
        self._waiting -= again
        self._crowded_out = set()
        for organization_id in again:
            task = asyncio.create_task(self._deliver_more(organization_id))
            self._claiming.add(task)
            task.add_done_callback(self._claiming.discard)

    async def _deliver_more(self, organization_id: UUID) -> None:
        try:
            await self.deliver(organization_id)
        except (SQLAlchemyError, OSError) as error:  # the next look finds them
            logger.warning("deliveries wait for the database", error=type(error).__name__)

    async def _send(self, claimed: ClaimedDelivery) -> None:
        slow = succeeded = queued = False
        try:
            result = await self._sender.send(claimed)
            slow, succeeded = result.slow, result.error is None
            await self._recorder.put(result)
            queued = True
        except SecretError as error:
            # Not the receiver's fault: no attempt is counted, and the row becomes due again when its lease lapses.
            logger.error("a delivery cannot be signed", delivery_id=str(claimed.id), error=str(error))
        finally:
            if not queued:
                # Its lease is handed back or lapses; that of a queued result ends when the result is written.
                metrics.leases_held.labels("delivery").dec()
            metrics.deliveries_under_way.dec()
            self._limits.learn(claimed.organization_id, slow=slow, succeeded=succeeded)
            self._limits.release(claimed.organization_id, 1)
