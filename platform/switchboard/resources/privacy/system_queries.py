"""Deletion of an organization's row."""

from uuid import UUID

from sqlalchemy import func
from sqlmodel import col, delete, select

from switchboard.foundation.database import Database, is_among
from switchboard.foundation.web.row_counts import delete_row_counts
from switchboard.resources.calls.models import ORDER, Call
from switchboard.resources.identity.models import Organization


async def delete_organization_rows(database: Database, organization_id: UUID) -> int:
    """Delete an organization with all of its rows, unless calls are queued or live; return their number.

    The lock keeps new calls away: a row of the organization cannot be inserted meanwhile.
    """
    mine = col(Organization.id) == organization_id
    async with database.system() as session:
        # The rows of years go in one statement.
        await session.exec(select(func.set_config("statement_timeout", "0", True)))
        await session.exec(select(Organization.id).where(mine).with_for_update())
        unfinished = select(func.count()).where(
            col(Call.organization_id) == organization_id, is_among(col(Call.status), ORDER)
        )
        live = (await session.exec(unfinished)).one()
        if not live:
            await session.exec(delete(Organization).where(mine))
            await delete_row_counts(session, organization_id)
    return live
