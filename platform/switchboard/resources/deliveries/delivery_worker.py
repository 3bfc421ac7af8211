"""The worker loop that sends deliveries: claim, send, record.

The rows are the queue. A wake-up makes the loop look at once; otherwise it looks every second. If the worker is killed,
its leases lapse and the rows become due again.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from secrets import randbits
from time import monotonic
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.database import Database, SystemSession
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.foundation.observability import metrics
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.settings import Settings
from switchboard.resources.deliveries import system_queries
from switchboard.resources.deliveries.concurrency_limits import ClaimShare, ConcurrencyLimits
from switchboard.resources.deliveries.result_recorder import ResultRecorder
from switchboard.resources.deliveries.sender import ClaimedDelivery, DeliverySender

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
        self._id = randbits(system_queries.WORKER_BITS)
        self._recorder = ResultRecorder(database, self._due, seconds=LEASE_SLACK_SECONDS)
        self._after = START
        self._soonest = POLL_SECONDS
        self._sending: dict[asyncio.Task[None], UUID] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop` is set. Requests in progress then get a few seconds, and the remaining leases are
        released.
        """
        recording = asyncio.create_task(self._recorder.run())
        stopping = asyncio.create_task(self._wake_at(stop))
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
            await self._finish()
            await self._recorder.close()
            await recording

    async def _fill(self) -> int:
        """Claim once around all targets within the concurrency limits; return how many were claimed."""
        count = 0
        self._soonest = POLL_SECONDS
        around = self._after == START
        while self._limits.free:
            async with self._database.system() as session:
                part = await system_queries.list_waiting_targets(session, after=self._after, visits=VISITS)
                self._soonest = min(self._soonest, part.soonest)
                shares = self._limits.plan(part.ready)
                claimed = await self._claim(session, shares) if shares else []
            claimed_at = monotonic()
            for delivery in claimed:
                self._start(delivery, claimed_at)
            count += len(claimed)
            self._after = part.next or START
            if part.next is None:
                if around:
                    break
                around = True
        return count

    async def _claim(self, session: SystemSession, shares: Mapping[UUID, ClaimShare]) -> list[ClaimedDelivery]:
        """Claim from the targets that no other transaction claims from or changes at this moment."""
        locked = await system_queries.lock_targets(session, shares)
        if len(locked) < len(shares):
            self._soonest = min(self._soonest, LOCKED_SECONDS)
        if not locked:
            return []
        return await system_queries.claim_deliveries(
            session,
            {target: share for target, share in shares.items() if target in locked},
            token=system_queries.create_lease_token(self._id),
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

    def _start(self, claimed: ClaimedDelivery, claimed_at: float) -> None:
        self._limits.take(claimed.target_id, claimed.organization_id)
        metrics.deliveries_under_way.inc()
        metrics.leases_held.labels("delivery").inc()
        task = asyncio.create_task(self._deliver(claimed, claimed_at))
        self._sending[task] = claimed.token
        task.add_done_callback(lambda done: self._sending.pop(done, None))

    async def _deliver(self, claimed: ClaimedDelivery, claimed_at: float) -> None:
        slow = succeeded = queued = False
        try:
            result = await self._sender.send(claimed, claimed_at=claimed_at)
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

    async def _wake_at(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._due.set()

    async def _finish(self) -> None:
        if self._sending:
            await asyncio.wait(self._sending, timeout=STOP_SECONDS)
        left: Mapping[asyncio.Task[None], UUID] = dict(self._sending)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._recorder.hand_back_at_close(set(left.values()))
