"""Background work: rows that are due, and the jobs that work on them.

Every organization is in one of 1 024 buckets. The live workers share the buckets: each looks again and again for the
due rows of its own, whether or not Redis is there. A transaction that makes a row due wakes some worker, which looks
for the due rows of that bucket at once. A job claims its row before it works on it
(docs/decisions/0096-background-work.md).
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any, Final, Protocol, TypeAlias
from uuid import UUID
from zlib import crc32

import structlog
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    DateTime,
    Integer,
    Row,
    Select,
    Uuid,
    all_,
    bindparam,
    func,
    inspect,
    select,
    true,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import SQLModel

from switchboard.foundation.database import (
    BUCKETS,
    JOB_TIMEOUT,
    Database,
    Statement,
    get_bucket,
    is_database_away,
    is_not_moving,
    now,
)
from switchboard.foundation.injection import Parts, list_keyword_only
from switchboard.foundation.jobs import Job, bind_job, end_tasks

logger = structlog.get_logger()


@lru_cache(maxsize=2)
def share_buckets(node: str, workers: frozenset[str]) -> tuple[int, ...]:
    """Return the buckets of a worker among the live workers: those of which it has the highest hash (rendezvous
    hashing, Thaler and Ravishankar, 1998), so that few buckets move when a worker comes or goes.
    """
    nodes = sorted({*workers, node})
    return tuple(bucket for bucket in range(BUCKETS) if max(nodes, key=partial(_weigh, bucket)) == node)


def _weigh(bucket: int, node: str) -> tuple[int, str]:
    return crc32(f"{bucket} {node}".encode()), node


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FRESH: Final = timedelta(seconds=JOB_TIMEOUT)
"""Age up to which a row may become due unseen: no transaction lasts longer."""
MOMENT: Final = bindparam("moment", type_=DateTime(timezone=True))
"""The moment of a look, for conditions."""


class DueSelection(Protocol):
    """The rows that a kind of work is about."""

    def select(self, *, by_organization: bool) -> Statement:
        """Select organization and id of the rows of `buckets` that are due at `moment`, without the organizations
        `full` and the rows `tried`, at most `most` in all; or only their organizations. Those that became due before
        `since` may be left out, and those of organizations that are being moved are.
        """


@dataclass(frozen=True, slots=True)
class DueRows:
    """The rows of a table whose moment in the column `due` has passed, and that meet the conditions. `owner` is the
    column by which they are in buckets.
    """

    table: type[SQLModel]
    due: str
    conditions: tuple[ColumnElement[bool], ...] = ()
    owner: str = "organization_id"

    def match(self, owner: UUID) -> tuple[ColumnElement[bool], ...]:
        """Return the conditions that a row is due now, and the organization's, by which the index finds it."""
        columns = inspect(self.table).local_table.c
        is_owned = func.bucket(columns[self.owner]) == get_bucket(owner), columns[self.owner] == owner
        return *is_owned, columns[self.due] <= now(), *self.conditions

    def select(self, *, by_organization: bool) -> Select[*tuple[Any, ...]]:
        """Select the rows, the longest due of each bucket first, or only their organizations."""
        columns = inspect(self.table).local_table.c
        owned = func.unnest(bindparam("buckets", type_=ARRAY(Integer))).table_valued("bucket").render_derived("owned")
        most = bindparam("most", type_=Integer)
        owner, due_at = columns[self.owner].label("organization_id"), columns[self.due]
        is_wanted = (
            columns[self.owner] != all_(bindparam("full", type_=ARRAY(Uuid))),
            is_not_moving(columns[self.owner]),
        )
        bucket = func.bucket(columns[self.owner])
        is_due = bucket == owned.c.bucket, due_at <= MOMENT, *is_wanted, *self.conditions
        # As the index: with row-level security, PostgreSQL does not take the bucket for the constant that it is.
        oldest_first = bucket, due_at
        if by_organization:
            # Ordered all the same: for the few first organizations, PostgreSQL would read all that waits by an index of
            # organizations, in each bucket.
            due = select(owner).where(*is_due).order_by(*oldest_first).correlate(owned).lateral("due")
            rows = select(due.c.organization_id).distinct()
        else:
            is_untried = columns["id"] != all_(bindparam("tried", type_=ARRAY(Uuid)))
            rows = select(owner, columns["id"]).where(*is_due, is_untried).order_by(*oldest_first)
        found = rows.limit(most).lateral("found")
        return select(*found.c).select_from(owned).join(found, true()).limit(most)


@dataclass(frozen=True, slots=True)
class Work:
    """A kind of background work: a job, and the rows that it works on.

    The job's keyword-only parameters are the id of the organization, whose name is `owner`, and, unless it works on all
    of an organization's rows at once, the id of the row. A worker looks every `seconds`, works on at most `at_once`
    rows, of which at most `each` are one organization's (half of them by default), and cancels a job after
    `job_seconds`.
    """

    job: Job
    rows: DueSelection
    seconds: float = 2.0
    at_once: int = 16
    each: int = 0
    job_seconds: int = JOB_TIMEOUT
    owner: str = "organization_id"

    @property
    def most_of_one(self) -> int:
        """The number of rows of one organization at once."""
        return self.each or max(1, self.at_once // 2)

    @property
    def name(self) -> str:
        """The name of the job, by which it is woken."""
        return self.job.__name__


_Key: TypeAlias = tuple[UUID, UUID | None]
"""Organization, and row unless the job works on all rows of an organization."""


@dataclass(slots=True)
class _Running:
    """The rows of one kind that this worker works on, those that just ended, and the buckets that had more of them.

    `again` are the organizations that had due rows while the job worked on all of theirs. `asked` are the buckets to
    look in next, for rows that became due in the time after `since`.
    """

    job: Job
    statement: Statement
    row_name: str | None
    tasks: dict[_Key, asyncio.Task[None]] = field(default_factory=dict)
    owners: Counter[UUID] = field(default_factory=Counter)
    waiting: set[int] = field(default_factory=set)
    again: set[UUID] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)
    since: datetime | None = None
    is_looking: bool = False
    ended: dict[_Key, float] = field(default_factory=dict)


class WorkRunner:
    """The work of a worker."""

    def __init__(self, database: Database, works: Sequence[Work], parts: Parts) -> None:
        """Bind the parts and services that the jobs name. Raise `InvalidParameter`."""
        self.works: Mapping[str, Work] = {work.name: work for work in works}
        self._database = database
        self._running = {work.name: _prepare(work, parts) for work in works}
        self._looking: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    async def look(self, name: str, buckets: Sequence[int], *, since: datetime = EPOCH) -> int:
        """Begin to work on the due rows of one kind in these buckets, as far as there are places; return how many.

        Rows that became due before `since` may be passed over: a wake-up is about rows that have just become due. While
        a look goes on, the next one is for all who ask meanwhile, and they get 0.
        """
        running = self._running[name]
        running.asked.update(buckets)
        running.since = min(since, running.since or since)
        if running.is_looking:
            return 0
        running.is_looking = True
        started = 0
        try:
            while running.asked:
                asked, running.asked = sorted(running.asked), set()
                since, running.since = running.since or EPOCH, None
                started += await self._look(name, asked, since=since)
        finally:
            running.is_looking = False
        return started

    async def _look(
        self, name: str, buckets: Sequence[int], *, since: datetime = EPOCH, tried: Sequence[UUID] = ()
    ) -> int:
        work, running = self.works[name], self._running[name]
        has_place = len(running.tasks) < work.at_once
        if not has_place:
            running.waiting.update(buckets)
        if not has_place or not buckets or self._is_stopping:
            return 0
        last_look = time.monotonic() - work.seconds
        running.ended = {key: moment for key, moment in running.ended.items() if moment > last_look}
        first = secrets.randbelow(len(buckets))  # so that no bucket is always the last one
        is_shared = running.row_name is not None
        full = [owner for owner, count in running.owners.items() if is_shared and count >= work.most_of_one]
        ordered = [*buckets[first:], *buckets[:first]]
        values = {"buckets": ordered, "moment": now(), "since": since, "most": work.at_once}
        values |= {"full": [*full, *tried]} if running.row_name is None else {"full": full, "tried": tried}
        running.waiting.update(map(get_bucket, full))
        looked_at = time.monotonic()
        async with self._database.system() as session:
            found = await session.fetch(running.statement, values)
        if len(found) == work.at_once:
            running.waiting.update(buckets)
        started = sum([self._start(work, running, row, looked_at) for row in found])
        if found and not running.tasks:  # all of them have ended since
            self._look_for_more(work, running)
        return started

    def _start(self, work: Work, running: _Running, row: Row[*tuple[Any, ...]], looked_at: float) -> bool:
        """Begin to work on a row; return False if it is worked on, or was since the look, or must wait for a place."""
        organization_id: UUID = row.organization_id
        key = organization_id, None if running.row_name is None else row.id
        if key == (organization_id, None) and key in running.tasks:
            running.again.add(organization_id)
        has_ended = key[1] is not None and running.ended.get(key, looked_at) > looked_at
        if key in running.tasks or has_ended or self._is_stopping:
            return False
        if len(running.tasks) >= work.at_once or running.owners[organization_id] >= work.most_of_one:
            running.waiting.add(get_bucket(organization_id))
            return False
        self._begin(work, running, key)
        return True

    def _begin(self, work: Work, running: _Running, key: _Key) -> None:
        ids = {work.owner: key[0]}
        if running.row_name is not None and key[1] is not None:
            ids[running.row_name] = key[1]
        running.owners[key[0]] += 1
        running.tasks[key] = task = asyncio.create_task(_run(work, running.job, ids))
        task.add_done_callback(lambda _: self._go_on(work, running, key))

    def _go_on(self, work: Work, running: _Running, key: _Key) -> None:
        del running.tasks[key]
        running.owners -= Counter([key[0]])
        if key[0] in running.again and not self._is_stopping:
            running.again.discard(key[0])
            self._begin(work, running, key)
        else:
            running.ended[key] = time.monotonic()
            self._look_for_more(work, running)

    def _look_for_more(self, work: Work, running: _Running) -> None:
        """Look in the buckets that had more rows, once half of the places are free."""
        if running.waiting and len(running.tasks) <= work.at_once // 2:
            buckets, running.waiting = running.waiting, set()
            # What was just worked on and is due has failed: it is tried again at the next look of a reconciler.
            known = *running.ended, *running.tasks
            tried = [organization_id if row_id is None else row_id for organization_id, row_id in known]
            task = asyncio.create_task(self._look_again(work.name, list(buckets), tried))
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)

    async def _look_again(self, name: str, buckets: Sequence[int], tried: Sequence[UUID]) -> None:
        try:
            await self._look(name, buckets, tried=tried)
        except (SQLAlchemyError, OSError) as error:  # the next look of a reconciler finds the rows
            logger.warning("due work was not looked for", job=name, error=type(error).__name__)

    async def finish(self) -> None:
        """Wait until nothing is worked on."""
        while pending := [*self._list_tasks(), *self._looking]:
            await asyncio.wait(pending)

    def _list_tasks(self) -> list[asyncio.Task[None]]:
        return [task for running in self._running.values() for task in running.tasks.values()]

    async def stop(self, *, seconds: float) -> None:
        """Give the jobs so many seconds to end, and cancel those that are left, which other workers find again."""
        self._is_stopping = True
        await end_tasks(self._list_tasks(), seconds=seconds)
        await asyncio.gather(*self._looking, return_exceptions=True)


def _prepare(work: Work, parts: Parts) -> _Running:
    names = list_keyword_only(work.job) - {work.owner}
    statement = work.rows.select(by_organization=not names)
    return _Running(bind_job(work.job, parts), statement, min(names, default=None))


async def _run(work: Work, job: Job, ids: Mapping[str, UUID]) -> None:
    try:
        async with asyncio.timeout(work.job_seconds):
            await job(**ids)
    except Exception as error:  # a job's failure must not end the worker: its row stays due
        subject = {name: str(value) for name, value in ids.items()}
        if is_database_away(error):
            logger.warning("a job waits for the database", job=work.name, error=type(error).__name__, **subject)
        else:
            logger.exception("a job failed", job=work.name, **subject)
