"""Queries about automation runs that cross organizations."""

from uuid import UUID

from sqlalchemy import func
from sqlmodel import col, select

from switchboard.foundation.database import Database, now
from switchboard.resources.automations.models import AutomationRun
from switchboard.resources.identity.service import select_suspended_ids


async def list_due_runs(database: Database, *, limit: int, per_organization: int) -> list[tuple[UUID, UUID]]:
    """List the organization and id of runs whose next action is due and that no worker has claimed, oldest first.
    Those of a suspended organization wait.
    """
    due_at = col(AutomationRun.due_at)
    rank = func.row_number().over(partition_by=col(AutomationRun.organization_id), order_by=due_at).label("rank")
    rows_due = select(AutomationRun.organization_id, AutomationRun.id, due_at, rank).where(
        due_at <= now(), col(AutomationRun.organization_id).not_in(select_suspended_ids())
    )
    due = rows_due.subquery()
    rows = select(due.c.organization_id, due.c.id).where(due.c.rank <= per_organization)
    async with database.system() as session:
        found = (await session.exec(rows.order_by(due.c.due_at).limit(limit))).all()
    return [(organization_id, run_id) for organization_id, run_id in found]
