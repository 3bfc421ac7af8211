"""Defects that the platform once had, planted again."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection
from switchboard.foundation.database import (
    Database,
    SystemSession,
    TenantTable,
    WriteSession,
    engine,
    now,
    retry_while_away,
)
from switchboard.foundation.leases import LeaseWatch
from switchboard.foundation.work import EPOCH, WorkRunner
from switchboard.resources.calls import allowance
from switchboard.resources.calls.media import call_runner
from switchboard.resources.calls.media.call_runner import CLAIM_SECONDS
from switchboard.resources.deliveries import delivery_worker
from switchboard.resources.deliveries import queries as delivery_queries
from switchboard.resources.deliveries.delivery_worker import RequestLimits
from switchboard.resources.deliveries.sender import ClaimedDelivery

from tests.interleavings.calls import CallStory
from tests.interleavings.deliveries import DeliveryStory

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class PlantedDefect:
    """A defect: the story that it is about, the word with which its complaint begins, and a function that plants it."""

    plant: Callable[[pytest.MonkeyPatch], None]
    story: type[CallStory | DeliveryStory]
    finding: str

    @property
    def name(self) -> str:
        """The name of the function that plants it."""
        return self.plant.__name__


def keep_places_of_lost_claims(patch: pytest.MonkeyPatch) -> None:
    """Keep the places of a claim of deliveries that was not committed."""
    claim, lost = delivery_queries.claim_deliveries, Counter[UUID]()

    async def note_claim(
        session: SystemSession, organization_id: UUID, *, most: int, lease: float
    ) -> tuple[list[ClaimedDelivery], bool]:
        found = await claim(session, organization_id, most=most, lease=lease)
        lost[organization_id] += len(found[0])
        session.after_commit(partial(forget, organization_id))
        return found

    async def forget(organization_id: UUID) -> None:
        lost.pop(organization_id, None)

    def release(self: RequestLimits, organization_id: UUID, count: int) -> None:
        give_back(self, organization_id, count - lost.pop(organization_id, 0))

    give_back = RequestLimits.release
    patch.setattr(delivery_queries, "claim_deliveries", note_claim)
    patch.setattr(RequestLimits, "release", release)


def wait_for_redis(patch: pytest.MonkeyPatch) -> None:
    """Look for due work when a wake-up says so, and never else."""
    look = WorkRunner.look

    async def look_if_woken(self: WorkRunner, name: str, buckets: Sequence[int], *, since: datetime = EPOCH) -> int:
        return await look(self, name, buckets) if since > EPOCH else 0

    patch.setattr(WorkRunner, "look", look_if_woken)


def give_up_results(patch: pytest.MonkeyPatch) -> None:
    """Try once to write the results of deliveries."""
    patch.setattr(delivery_worker, "KEPT_SECONDS", 0.0)


def announce_once(patch: pytest.MonkeyPatch) -> None:
    """Insert an announced call without a look at the other announcement."""

    async def insert(self: WriteSession, row: TenantTable) -> bool:
        self.add(row)
        await self.flush()
        return True

    patch.setattr(WriteSession, "insert_if_new", insert)


def admit_without_lock(patch: pytest.MonkeyPatch) -> None:
    """Count the calls of an organization while others begin some."""

    async def lock_calls(_session: WriteSession) -> None:
        pass

    patch.setattr(allowance, "lock_calls", lock_calls)


def save_results_once(patch: pytest.MonkeyPatch) -> None:
    """Try once to save the result of a call, and wait for the database only before it begins."""

    async def retry_claims(work: Callable[[], Awaitable[ResultT]], *, seconds: float) -> ResultT:
        return await (retry_while_away(work, seconds=seconds) if seconds == CLAIM_SECONDS else work())

    patch.setattr(call_runner, "retry_while_away", retry_claims)


def claim_calls_once(patch: pytest.MonkeyPatch) -> None:
    """Try once to claim a call whose media socket was opened."""

    async def retry_results(work: Callable[[], Awaitable[ResultT]], *, seconds: float) -> ResultT:
        return await (work() if seconds == CLAIM_SECONDS else retry_while_away(work, seconds=seconds))

    patch.setattr(call_runner, "retry_while_away", retry_results)


def end_calls_when_noticed(patch: pytest.MonkeyPatch) -> None:
    """Let the calls of a dead server last until somebody notices its death."""
    look = LeaseWatch.look

    async def look_late(self: LeaseWatch, database: Database) -> None:
        await look(self, database)
        self.silent = dict.fromkeys(self.silent, now())

    patch.setattr(LeaseWatch, "look", look_late)


def raise_driver_errors(patch: pytest.MonkeyPatch) -> None:
    """Raise the driver's own error for a new connection that breaks at once."""
    connect = Database._connect

    async def connect_raw(self: Database, closing: AsyncExitStack) -> AsyncConnection:
        try:
            return await connect(self, closing)
        except DBAPIError as error:
            raise error.__cause__ or error from None

    patch.setattr(Database, "_connect", connect_raw)


def raise_internal_errors(patch: pytest.MonkeyPatch) -> None:
    """Raise the driver's own error for a transaction whose connection is about to be closed."""
    patch.setattr(engine, "DRIVER_ERRORS", (asyncpg.PostgresError, asyncpg.InterfaceError))


DEFECTS: Final = (
    PlantedDefect(keep_places_of_lost_claims, DeliveryStory, "lost"),
    PlantedDefect(wait_for_redis, DeliveryStory, "lost"),
    PlantedDefect(give_up_results, DeliveryStory, "twice"),
    PlantedDefect(announce_once, CallStory, "error"),
    PlantedDefect(admit_without_lock, CallStory, "limit"),
    PlantedDefect(save_results_once, CallStory, "lost"),
    PlantedDefect(claim_calls_once, CallStory, "lost"),
    PlantedDefect(end_calls_when_noticed, CallStory, "ended"),
    PlantedDefect(raise_driver_errors, CallStory, "error"),
    PlantedDefect(raise_internal_errors, DeliveryStory, "error"),
)
