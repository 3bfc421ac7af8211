"""Calls across organizations: what has become due, and what a process holds. Run under the system role."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlmodel import col, select, update

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.calls.models import Call
from switchboard.resources.identity.models import Organization

BATCH = 100


async def list_overdue_calls(session: SystemSession) -> list[Call]:
    """Calls to which nothing has happened for longer than it may take."""
    rows = await session.exec(select(Call).where(col(Call.watch_at) < now()).order_by(col(Call.watch_at)).limit(BATCH))
    return list(rows.all())


async def list_calls_to_analyze(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """Organization and id of each call whose analysis is due."""
    rows = await session.exec(
        select(Call.organization_id, Call.id).where(col(Call.analysis_due_at) < now()).limit(BATCH)
    )
    return list(rows.all())


async def extend_call_leases(session: SystemSession, call_ids: Collection[UUID], until: datetime) -> None:
    """Say that a process still holds these calls."""
    await session.exec(
        update(Call).where(col(Call.id).in_(call_ids), col(Call.watch_at).is_not(None)).values(watch_at=until)
    )


async def list_prepaid_calls(session: SystemSession, call_ids: Collection[UUID]) -> list[tuple[UUID, UUID, datetime]]:
    """Organization, id and start of those of these calls whose organization pays beforehand."""
    organizations = select(Organization.id).where(col(Organization.policy)["billing_mode"].astext == "prepaid")
    rows = select(Call.organization_id, Call.id, Call.started_at).where(
        col(Call.id).in_(call_ids), col(Call.started_at).is_not(None), col(Call.organization_id).in_(organizations)
    )
    return [
        (organization, call, started)
        for organization, call, started in (await session.exec(rows)).all()
        if started is not None
    ]
