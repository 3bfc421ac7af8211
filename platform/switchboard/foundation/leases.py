"""Leases of processes: the row that a process writes every three seconds, and the judgment of the others' rows.

What a process holds names it, and is held for as long as that row changes (docs/decisions/0090-silent-processes.md).
"""

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import Field, SQLModel, select

from switchboard.foundation.database import Database, now

BEAT_SECONDS: Final = 3.0
SILENT_SECONDS: Final = 10.0
"""Time without a beat after which a process is taken for dead."""
FRESH_SECONDS: Final = SILENT_SECONDS / 2
"""Age of a process's last beat up to which the process may claim work without another one: nobody can judge the process
before the claim is committed.
"""
LONG_DEAD: Final = timedelta(seconds=60)
"""Age of a beat from which a process is not taken for a worker, even by a process that has just begun to watch."""
MOST_BETWEEN_LOOKS: Final = 5.0
"""After a longer time without a look, the database may have been unreachable meanwhile."""


class ProcessLease(SQLModel, table=True):
    """The lease of a process. `node` is the process's id, and `beat_at` the time of its last beat; a worker takes
    its share of the background work.
    """

    __tablename__ = "process_lease"

    node: str = Field(primary_key=True)
    beat_at: datetime
    is_worker: bool


class LeaseKeeper:
    """Keeper of the lease of this process, which has the id `node`."""

    def __init__(self, database: Database, node: str) -> None:
        self.node = node
        self.is_worker = False
        self._database = database
        self._extended_at = -SILENT_SECONDS

    async def extend(self) -> None:
        """Write a beat. Raises `SQLAlchemyError` or `OSError` if the database does not answer."""
        began = time.monotonic()
        async with self._database.system() as session:
            beat = insert(ProcessLease).values(node=self.node, beat_at=now(), is_worker=self.is_worker)
            values = {"beat_at": beat.excluded.beat_at, "is_worker": beat.excluded.is_worker}
            await session.exec(beat.on_conflict_do_update(index_elements=["node"], set_=values))
        self._extended_at = began

    async def ensure(self) -> None:
        """Write a beat unless the last one is fresh. Called before a claim, outside of its transaction."""
        if time.monotonic() - self._extended_at > FRESH_SECONDS:
            await self.extend()


class LeaseWatch:
    """Watch of the leases of all processes, by this process's own clock (`clock`, monotonic, in seconds).

    `silent` has the processes whose beat has not changed for ten seconds in which every look succeeded, each with that
    beat. A process that lives cannot write during an outage of the database, and a standby that takes over may have
    lost its last beat. `workers` are the workers that are not silent.
    """

    def __init__(self) -> None:
        self.clock = time.monotonic
        self.silent: Mapping[str, datetime] = MappingProxyType({})
        self.workers: frozenset[str] = frozenset()
        self._seen: dict[str, tuple[datetime, float]] = {}
        self._looked_at = self.clock()

    async def look(self, database: Database) -> None:
        """Read the leases. Raises what the reading raises; what was seen before is forgotten then."""
        seen, self._seen, self.silent = self._seen, {}, {}
        # None from a standby, which answers reads before it is promoted: its transactions are read-only (PostgreSQL
        # manual, "Hot Standby"), so that nobody can write a beat there.
        is_writable = func.current_setting("transaction_read_only") == "off"
        async with database.system() as session:
            leases = (await session.exec(select(ProcessLease).where(is_writable))).all()
        beats = {lease.node: lease.beat_at for lease in leases}
        before, self._looked_at = self._looked_at, self.clock()
        if self._looked_at - before <= MOST_BETWEEN_LOOKS:
            self._seen = {node: found for node, found in seen.items() if beats.get(node) == found[0]}
        for node, beat in beats.items():
            self._seen.setdefault(node, (beat, self._looked_at))
        until = self._looked_at - SILENT_SECONDS
        self.silent = {node: beat for node, (beat, since) in self._seen.items() if since <= until}
        fresh = now() - LONG_DEAD
        workers = (lease.node for lease in leases if lease.is_worker and lease.beat_at > fresh)
        self.workers = frozenset(workers).difference(self.silent)
