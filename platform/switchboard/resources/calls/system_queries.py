"""Queries for calls across organizations, for reconciler, heartbeat, and command line. They need the system role."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, or_
from sqlmodel import col, select, update

from switchboard.foundation.database import SystemSession, is_among, now
from switchboard.plugin_sdk import CarrierCall
from switchboard.resources.calls.models import Call
from switchboard.resources.identity.models import Organization

BATCH = 100


async def list_overdue_calls(session: SystemSession, silent: Collection[str | UUID]) -> list[Call]:
    """List calls whose `watch_at` has passed, the oldest first. A call that a process runs is listed only if the call
    or the process is silent.
    """
    may_end = or_(
        col(Call.holder).is_(None),
        is_among(col(Call.holder), [key for key in silent if isinstance(key, str)]),
        is_among(col(Call.id), [key for key in silent if isinstance(key, UUID)]),
    )
    overdue = select(Call).where(col(Call.watch_at) <= now(), may_end)
    return list(await session.exec(overdue.order_by(col(Call.watch_at)).limit(BATCH)))


async def read_beats(session: SystemSession) -> dict[str | UUID, datetime]:
    """Return the latest lease of each process that runs calls, and the leases that have lapsed, by call.

    A database that is read-only has none, because nobody can extend one there: a standby answers reads before it is
    promoted, and its transactions are read-only (PostgreSQL manual, "Hot Standby").
    """
    is_writable = func.current_setting("transaction_read_only") == "off"
    held = is_writable, col(Call.holder).is_not(None), col(Call.watch_at).is_not(None)
    processes = select(Call.holder, func.max(Call.watch_at)).where(*held).group_by(col(Call.holder))
    lapsed = select(Call.id, Call.watch_at).where(*held, col(Call.watch_at) <= now())
    found = [*(await session.exec(processes)).all(), *(await session.exec(lapsed)).all()]
    return {key: beat for key, beat in found if key is not None and beat is not None}


async def find_carrier_call(session: SystemSession, call_id: UUID) -> CarrierCall | None:
    """Return a call of any organization as its carrier knows it; None if there is no such call."""
    columns = select(Call.organization_id, Call.carrier, Call.carrier_call_id).where(col(Call.id) == call_id)
    row = (await session.exec(columns)).one_or_none()
    return None if row is None else CarrierCall(*row)


async def extend_call_leases(session: SystemSession, call_ids: Collection[UUID], until: datetime) -> list[UUID]:
    """Extend the leases of calls that a process still runs; return the ids of those that a machine has answered."""
    extended = (
        update(Call)
        .where(is_among(col(Call.id), call_ids), col(Call.watch_at).is_not(None))
        .values(watch_at=until)
        .returning(col(Call.id), col(Call.answered_by))
    )
    return [call_id for call_id, answered_by in (await session.exec(extended)).all() if answered_by == "machine"]


async def list_prepaid_calls(session: SystemSession, call_ids: Collection[UUID]) -> list[tuple[UUID, UUID, datetime]]:
    """List organization, id and start of the calls whose organization is prepaid."""
    organizations = select(Organization.id).where(col(Organization.policy)["billing_mode"].astext == "prepaid")
    rows = select(Call.organization_id, Call.id, Call.started_at).where(
        is_among(col(Call.id), call_ids),
        col(Call.started_at).is_not(None),
        col(Call.organization_id).in_(organizations),
    )
    return [
        (organization, call, started)
        for organization, call, started in (await session.exec(rows)).all()
        if started is not None
    ]
