"""Statements about the ledger, and of the usage that retention would otherwise lose."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, delete, select

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.resources.billing.models import LedgerHold


async def read_hold(session: ReadSession, reference: UUID) -> Decimal:
    """Return the money that is held for something in progress."""
    amount = select(col(LedgerHold.amount)).where(session.owns(LedgerHold), col(LedgerHold.id) == reference)
    return (await session.exec(amount)).one_or_none() or Decimal(0)


async def save_hold(session: WriteSession, hold: LedgerHold) -> None:
    """Insert a hold, or replace the amount of an earlier one for the same."""
    row = insert(LedgerHold).values(hold.model_dump())
    await session.exec(row.on_conflict_do_update(index_elements=["id"], set_={"amount": hold.amount}))


async def delete_hold(session: WriteSession, reference: UUID) -> None:
    """Delete the hold for something in progress, if there is one."""
    await session.exec(delete(LedgerHold).where(session.owns(LedgerHold), col(LedgerHold.id) == reference))


# Usage of rows that are about to be deleted, so that the months of the past stay what they were.

_ADD: Final = """
    insert into deleted_usage (organization_id, month, calls, seconds, sent, received)
    select part.organization_id, date_trunc('month', part.created_at at time zone organization.timezone)::date, {sums}
    from {table} part join organization on organization.id = part.organization_id
    where part.organization_id = :organization_id and part.id = any(:ids) group by 1, 2
    on conflict (organization_id, month) do update set calls = deleted_usage.calls + excluded.calls,
      seconds = deleted_usage.seconds + excluded.seconds, sent = deleted_usage.sent + excluded.sent,
      received = deleted_usage.received + excluded.received
"""
ADD_CALLS: Final = text(_ADD.format(table="call", sums="count(*), sum(part.duration_seconds), 0, 0"))
ADD_MESSAGES: Final = text(
    _ADD.format(
        table="sms_message",
        sums="0, 0, count(*) filter (where part.direction = 'outbound' and part.status <> 'failed'), "
        "count(*) filter (where part.direction = 'inbound')",
    )
)


async def keep_usage(session: WriteSession, addition: TextClause, ids: Sequence[UUID]) -> None:
    """Add the usage of calls (`ADD_CALLS`) or of text messages (`ADD_MESSAGES`) that this transaction deletes."""
    values = {"organization_id": session.organization_id, "ids": list(ids)}
    await session.fetch(addition, values)
