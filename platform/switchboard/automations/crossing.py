"""Runs across organizations: what has become due, and what is old. Run under the system role."""

from datetime import timedelta
from uuid import UUID

from sqlmodel import col, delete, select
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.automations.models import AutomationRun
from switchboard.database import now

BATCH = 100


async def due(session: AsyncSession) -> list[tuple[UUID, UUID]]:
    """Organization and id of each run whose next action is due and that no worker is at."""
    rows = select(AutomationRun.organization_id, AutomationRun.id).where(col(AutomationRun.due_at) < now())
    return list((await session.exec(rows.order_by(col(AutomationRun.due_at)).limit(BATCH))).all())


async def forget(session: AsyncSession, *, age: timedelta, most: int) -> int:
    """Delete up to `most` runs that ended this long ago; how many there were."""
    old = select(AutomationRun.id).where(col(AutomationRun.completed_at) < now() - age).order_by(col(AutomationRun.completed_at)).limit(most)
    return (await session.exec(delete(AutomationRun).where(col(AutomationRun.id).in_(old)))).rowcount
