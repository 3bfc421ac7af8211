"""Runs across organizations: what has become due, and what is old. Run under the system role."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import func
from sqlmodel import col, delete, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.automations.models import AutomationRun


async def list_due_runs(session: SystemSession, *, most: int, each: int) -> list[tuple[UUID, UUID]]:
    """Organization and id of up to `most` runs whose next action is due and that no worker is at, oldest first, `each` of an organization."""
    waiting = col(AutomationRun.due_at)
    place = func.row_number().over(partition_by=col(AutomationRun.organization_id), order_by=waiting).label("place")
    rows = select(AutomationRun.organization_id, AutomationRun.id, waiting, place).where(waiting <= now()).subquery()
    first = select(rows.c.organization_id, rows.c.id).where(rows.c.place <= each).order_by(rows.c.due_at).limit(most)
    return [(organization_id, run_id) for organization_id, run_id in (await session.exec(first)).all()]


async def delete_ended_runs(session: SystemSession, *, age: timedelta, most: int) -> int:
    """Delete up to `most` runs that ended this long ago; how many there were."""
    old = (
        select(AutomationRun.id)
        .where(col(AutomationRun.completed_at) < now() - age)
        .order_by(col(AutomationRun.completed_at))
        .limit(most)
    )
    return (await session.exec(delete(AutomationRun).where(col(AutomationRun.id).in_(old)))).rowcount
