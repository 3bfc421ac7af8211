"""Rows that have outlived their organization's retention (docs/decisions/0029-retention.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, cast
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, DateTime, Uuid, bindparam, column, func, literal, true
from sqlmodel import col, delete, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import Database, ReadSession, SystemSession, TenantTable, now
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Retention

RetainedData = Literal["calls", "recordings", "transcripts", "messages", "appointments", "events", "audit"]
"""Kinds of data: the keys of `[retention]` in a tenant file."""
MOMENT: Final = DateTime(timezone=True)
BATCH: Final = 1000
SETTLING_TIME: Final = timedelta(minutes=3)
"""Time after the end of a call, or after a text message, in which a process that had no database writes what it still
has, and carriers repeat their callbacks.
"""
SETTLED_BEFORE: Final = bindparam("settled_before", callable_=lambda: now() - SETTLING_TIME, type_=MOMENT)


@dataclass(frozen=True, slots=True)
class ExpiringRows:
    """Rows of a table that retention deletes: `conditions` hold for a row with nothing left to do, and `moment` is the
    column from which its days count. An index that begins with the organization and this column finds them.
    """

    table: type[TenantTable]
    conditions: tuple[ColumnElement[bool], ...] = ()
    moment: str = "created_at"

    async def find_organizations(self, session: SystemSession, cutoffs: Mapping[UUID, datetime]) -> list[UUID]:
        """Return the organizations of `cutoffs` with a row from before their moment: one probe of the index each."""
        wanted = (
            func.unnest(literal(list(cutoffs), ARRAY(Uuid())), literal(list(cutoffs.values()), ARRAY(MOMENT)))
            .table_valued(column("organization_id", Uuid()), column("cutoff", MOMENT))
            .render_derived(name="wanted")
        )
        oldest = (
            select(col(self.table.id))
            .where(col(self.table.organization_id) == wanted.c.organization_id, self._moment < wanted.c.cutoff)
            .where(*self.conditions)
            .order_by(self._moment)
            .limit(1)
            .lateral("oldest")
        )
        return list(await session.exec(select(wanted.c.organization_id).join(oldest, true())))

    def select_ids(self, session: ReadSession, cutoff: datetime, *, most: int) -> SelectOfScalar[UUID]:
        """Select the ids of the organization's oldest such rows."""
        rows = select(self.table.id).where(session.owns(self.table), self._moment < cutoff, *self.conditions)
        return rows.order_by(self._moment).limit(most)

    @property
    def _moment(self) -> ColumnElement[datetime]:
        return cast("ColumnElement[datetime]", getattr(self.table, self.moment))


@dataclass(frozen=True, slots=True)
class RetentionDeleter:
    """Deletes one kind of an organization's rows, `most` in one transaction: here, rows without further clean-up."""

    database: Database
    data: RetainedData
    rows: ExpiringRows
    most: int = BATCH

    async def delete_batch(self, organization_id: UUID, cutoff: datetime) -> int:
        """Delete the oldest rows from before `cutoff`; return how many. Fewer than `most` mean that none are left."""
        table = self.rows.table
        async with self.database.write(organization_id) as session:
            ids = self.rows.select_ids(session, cutoff, most=self.most)
            deleted = await session.exec(delete(table).where(session.owns(table), col(table.id).in_(ids)))
        return deleted.rowcount


async def list_retentions(session: SystemSession) -> dict[UUID, Retention]:
    """Return the retention of each organization without a legal hold."""
    found = (await session.exec(select(col(Organization.id), col(Organization.policy)))).all()
    return {organization_id: policy.retention for organization_id, policy in found if not policy.retention.legal_hold}
