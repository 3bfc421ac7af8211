"""The outbox across organizations: which events have plugins not been told of? Run under the system role."""

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.database import now
from switchboard.events.models import Event
from switchboard.plugins import PublishedEvent

BATCH = 100


async def claim_unwatched(session: AsyncSession) -> list[PublishedEvent]:
    """Take events that plugins have not been told of, oldest first, of every organization; they count as told when the session commits."""
    rows = await session.exec(
        select(Event).where(col(Event.watched_at).is_(None)).order_by(col(Event.created_at)).limit(BATCH).with_for_update(skip_locked=True)
    )
    events = []
    for row in rows.all():
        row.watched_at = now()
        events.append(PublishedEvent(row.id, row.organization_id, row.name, row.data, row.occurred_at))
    return events
