"""The worker loop that sends deliveries: claim, send within concurrency limits, record.

The rows are the queue. A wake-up makes the loop look at once; otherwise it looks every second. If the worker is killed,
its leases lapse and the rows become due again.
"""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import randbits
from time import monotonic
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import Database, SystemSession
from switchboard.foundation.jobs import end_tasks, repeat_in_batches
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.foundation.observability import metrics, organization_metrics
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.settings import Settings
from switchboard.resources.deliveries import queries
from switchboard.resources.deliveries.queries import ClaimShare
from switchboard.resources.deliveries.sender import AttemptResult, ClaimedDelivery, DeliverySender

# Concurrency limits of requests per target and per organization, so that a slow receiver delays only itself.
#
# Each worker learns the limits from its own requests. The limit of a target holds for the requests of all workers
# (`queries.claim_deliveries` counts those of the others), that of an organization for the worker's own.

SLOTS = 512
FIRST_LIMIT = 4
"""Limit of a target that nothing is known of."""
REMEMBERED = 10_000


@dataclass(slots=True)
class _Limit:
    limit: int
    taken: int = 0


@dataclass(frozen=True, slots=True)
class LimitGroup:
    """The limits of all targets, or of all organizations; idle ones are dropped when there are too many.

    A limit starts at `first`, is halved down to `least` by each failure that costs time, and grows by one up to `most`
    with each success.
    """

    least: int
    first: int
    most: int
    _limits: dict[UUID, _Limit] = field(default_factory=dict, init=False)

    def free(self, key: UUID) -> int:
        """Return how many more requests may start."""
        known = self._limits.get(key)
        return self.first if known is None else max(0, known.limit - known.taken)

    def take(self, key: UUID) -> None:
        """Count a request that starts."""
        self._limits.setdefault(key, _Limit(self.first)).taken += 1

    def give_back(self, key: UUID, *, slow: bool, succeeded: bool) -> None:
        """Count a request that has ended."""
        known = self._limits[key]
        known.taken -= 1
        if slow:
            known.limit = max(self.least, known.limit // 2)
        elif succeeded:
            known.limit = min(self.most, known.limit + 1)
        if known.taken == 0 and (known.limit == self.first or len(self._limits) > REMEMBERED):
            del self._limits[key]


class ConcurrencyLimits:
    """The concurrency limits of one worker."""

    def __init__(self) -> None:
        self._taken = 0
        self._targets = LimitGroup(least=1, first=FIRST_LIMIT, most=64)
        self._organizations = LimitGroup(least=16, first=64, most=256)

    @property
    def free(self) -> int:
        """Return how many more requests may start in total."""
        return SLOTS - self._taken

    def plan(self, waiting: Mapping[UUID, UUID]) -> dict[UUID, ClaimShare]:
        """Plan how many deliveries to claim for each target of `waiting` (target to organization), in its order;
        targets without capacity are left out.
        """
        left = self.free
        of_organization: dict[UUID, int] = {}
        shares: dict[UUID, ClaimShare] = {}
        for target, organization in waiting.items():
            available = of_organization.setdefault(organization, self._organizations.free(organization))
            free = self._targets.free(target)
            most = min(free, available, left)
            if most > 0:
                shares[target] = ClaimShare(most, free)
                of_organization[organization] -= most
                left -= most
        return shares

    def take(self, target: UUID, organization: UUID) -> None:
        """Count a request that starts."""
        self._taken += 1
        self._targets.take(target)
        self._organizations.take(organization)

    def give_back(self, target: UUID, organization: UUID, *, slow: bool, succeeded: bool) -> None:
        """Count a request that has ended; `slow` if it cost time without a result."""
        self._taken -= 1
        self._targets.give_back(target, slow=slow, succeeded=succeeded)
        self._organizations.give_back(organization, slow=slow, succeeded=succeeded)


# Write results in batches, each only under its lease. During an outage of the database, results wait in memory as long
# as the lease holds.

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

    async def close(self, given_up: Collection[UUID]) -> None:
        """Let `run` end once everything is written, and the leases without a result are released."""
        self._given_up = list(given_up)
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
    """Record results whose leases still hold, and count failures per endpoint, in the order in which deliveries ended.

    Returns the id and organization of each endpoint that was disabled.
    """
    written = await queries.record_attempts(session, results)
    metrics.leases_lost.labels("delivery").inc(len(results) - len(written))
    runs: dict[UUID, tuple[bool, int]] = {}
    for result in results:
        if result.claimed.id not in written:
            continue
        target, status = written[result.claimed.id]
        if result.status == "failed":
            organization_metrics.count_failed_delivery(result.claimed.organization_id)
        if result.status != "pending":
            reset, added = runs.get(target, (False, 0))
            runs[target] = (True, 0) if status == "delivered" else (reset, added + 1)
    if cleared := sorted(target for target, (_, added) in runs.items() if not added):
        await queries.reset_failures(session, cleared)
    failed = {target: run for target, run in runs.items() if run[1]}
    return await queries.count_failures(session, failed) if failed else []


async def expire_deliveries(database: Database) -> None:
    """Fail deliveries that have waited for a disabled endpoint for seven days
    (docs/decisions/0010-webhook-deliveries.md).
    """
    await repeat_in_batches(database, queries.fail_waiting_deliveries)


logger = structlog.get_logger()

START = UUID(int=0)
VISITS = 256
POLL_SECONDS = 1.0
# A target that another worker is claiming from is looked at again soon: that worker may lack capacity for it.
LOCKED_SECONDS = 0.05
# Requests end one by one: a short pause lets one claim use the capacity of several.
GATHER_SECONDS = 0.005
BACKOFF_SECONDS = (0.2, 0.5, 1.0, 2.0)
# Lease time beyond the receiver's timeout: waiting for the database before and after the request.
LEASE_SLACK_SECONDS = 15.0
STOP_SECONDS = 5.0


async def wake_delivery_worker(deliveries_due: asyncio.Event) -> None:
    """Wake this worker's delivery loop for new deliveries."""
    deliveries_due.set()


class DeliveryWorker:
    """Deliver until stopped. `due` wakes the loop."""

    def __init__(
        self, settings: Settings, database: Database, keyring: KeyRing, outbound: OutboundClient, *, due: asyncio.Event
    ) -> None:
        self._database = database
        self._due = due
        self._sender = DeliverySender(
            outbound, keyring, delays=settings.webhook_retry_delays, seconds=settings.webhook_timeout
        )
        self._lease = settings.webhook_timeout + LEASE_SLACK_SECONDS
        self._limits = ConcurrencyLimits()
        self._id = randbits(queries.WORKER_BITS)
        self._recorder = ResultRecorder(database, self._due, seconds=LEASE_SLACK_SECONDS)
        self._after = START
        self._soonest = POLL_SECONDS
        self._sending: dict[asyncio.Task[None], UUID] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop` is set. Requests in progress then get a few seconds, and the remaining leases are
        released.
        """
        recording = asyncio.create_task(self._recorder.run())
        stopping = asyncio.create_task(stop.wait())
        stopping.add_done_callback(lambda _: self._due.set())
        failures = 0
        try:
            while not stop.is_set():
                self._due.clear()
                try:
                    claimed = await self._fill()
                    failures = 0
                except (SQLAlchemyError, OSError) as error:
                    logger.warning("deliveries wait for the database", error=type(error).__name__)
                    claimed, failures = 0, failures + 1
                await self._pause(claimed, failures)
        finally:
            stopping.cancel()
            sending = dict(self._sending)
            left = await end_tasks(sending, seconds=STOP_SECONDS)
            await self._recorder.close({sending[task] for task in left})
            await recording

    async def _fill(self) -> int:
        """Claim once around all targets within the concurrency limits; return how many were claimed."""
        count = 0
        self._soonest = POLL_SECONDS
        around = self._after == START
        while self._limits.free:
            async with self._database.system() as session:
                part = await queries.list_waiting_targets(session, after=self._after, visits=VISITS)
                self._soonest = min(self._soonest, part.soonest)
                shares = self._limits.plan(part.ready)
                claimed = await self._claim(session, shares) if shares else []
            for delivery in claimed:
                self._limits.take(delivery.target_id, delivery.organization_id)
                metrics.deliveries_under_way.inc()
                metrics.leases_held.labels("delivery").inc()
                task = asyncio.create_task(self._deliver(delivery))
                self._sending[task] = delivery.token
                task.add_done_callback(lambda done: self._sending.pop(done, None))
            count += len(claimed)
            self._after = part.next or START
            if part.next is None:
                if around:
                    break
                around = True
        return count

    async def _claim(self, session: SystemSession, shares: Mapping[UUID, ClaimShare]) -> list[ClaimedDelivery]:
        """Claim from the targets that no other transaction claims from or changes at this moment."""
        locked = await queries.lock_targets(session, shares)
        if len(locked) < len(shares):
            self._soonest = min(self._soonest, LOCKED_SECONDS)
        if not locked:
            return []
        return await queries.claim_deliveries(
            session,
            {target: share for target, share in shares.items() if target in locked},
            token=queries.create_lease_token(self._id),
            lease=self._lease,
        )

    async def _pause(self, claimed: int, failures: int) -> None:
        if failures:
            await asyncio.sleep(BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS)) - 1])
            return
        if not claimed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._soonest):
                    await self._due.wait()
        if self._sending:
            await asyncio.sleep(GATHER_SECONDS)

    async def _deliver(self, claimed: ClaimedDelivery) -> None:
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
            self._limits.give_back(claimed.target_id, claimed.organization_id, slow=slow, succeeded=succeeded)
            self._due.set()
