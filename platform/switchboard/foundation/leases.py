"""Leases of processes: the row that a process writes every three seconds, and the judgment of the others' rows.

What a process holds names it, and is held for as long as that row changes (docs/decisions/0090-silent-processes.md).
"""

import time
from collections.abc import Mapping
from datetime import datetime
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
MOST_BETWEEN_LOOKS: Final = 5.0
"""After a longer time without a look, the database may have been unreachable meanwhile."""


class ProcessLease(SQLModel, table=True):
    """The lease of a process. `node` is the process's id, and `beat_at` the time of its last beat."""

    __tablename__ = "process_lease"

    node: str = Field(primary_key=True)
    beat_at: datetime


class LeaseKeeper:
    """Keeper of the lease of this process, which has the id `node`."""

    def __init__(self, database: Database, node: str) -> None:
        self.node = node
        self._database = database
        self._extended_at = -SILENT_SECONDS

    async def extend(self) -> None:
        """Write a beat. Raises `SQLAlchemyError` or `OSError` if the database does not answer."""
        began = time.monotonic()
        async with self._database.system() as session:
            beat = insert(ProcessLease).values(node=self.node, beat_at=now())
            beats = {"beat_at": beat.excluded.beat_at}
            await session.exec(beat.on_conflict_do_update(index_elements=["node"], set_=beats))
        self._extended_at = began

    async def ensure(self) -> None:
        """Write a beat unless the last one is fresh. Called before a claim, outside of its transaction."""
        if time.monotonic() - self._extended_at > FRESH_SECONDS:
            await self.extend()


class LeaseWatch:
    """Watch of the leases of all processes, by this process's own clock (`clock`, monotonic, in seconds).

    `silent` has the processes whose beat has not changed for ten seconds in which every look succeeded, each with that
    beat. A process that lives cannot write during an outage of the database, and a standby that takes over may have
    lost its last beat.
    """

    def __init__(self) -> None:
        self.clock = time.monotonic
        self.silent: Mapping[str, datetime] = MappingProxyType({})
        self._seen: dict[str, tuple[datetime, float]] = {}
        self._looked_at = self.clock()

    async def look(self, database: Database) -> None:
        """Read the leases. Raises what the reading raises; what was seen before is forgotten then."""
        seen, self._seen, self.silent = self._seen, {}, {}
        beats = await _read_beats(database)
        before, self._looked_at = self._looked_at, self.clock()
        if self._looked_at - before <= MOST_BETWEEN_LOOKS:
            self._seen = {node: found for node, found in seen.items() if beats.get(node) == found[0]}
        for node, beat in beats.items():
            self._seen.setdefault(node, (beat, self._looked_at))
        until = self._looked_at - SILENT_SECONDS
        self.silent = {node: beat for node, (beat, since) in self._seen.items() if since <= until}


async def _read_beats(database: Database) -> dict[str, datetime]:
    """Return the last beats; none from a database that is read-only.

    A standby answers reads before it is promoted, and its transactions are read-only (PostgreSQL manual, "Hot
    Standby"): nobody can write a beat there.
    """
    is_writable = func.current_setting("transaction_read_only") == "off"
    async with database.system() as session:
        beats = await session.exec(select(ProcessLease.node, ProcessLease.beat_at).where(is_writable))
        return dict(beats.all())
