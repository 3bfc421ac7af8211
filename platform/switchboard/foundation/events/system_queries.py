"""The outbox across organizations: which events have plugins not been told of? Run under the system role."""

from datetime import timedelta
from uuid import UUID

from sqlmodel import col, delete, select, update

from switchboard.foundation.database import SystemSession, now
from switchboard.foundation.events.models import Event
from switchboard.plugin_sdk import PublishedEvent

BATCH = 10
TRIGGER_BATCH = 100
# Longer than a batch can take: a plugin is given ten seconds an event.
LEASE = timedelta(seconds=110)


async def claim_unwatched(session: SystemSession) -> list[PublishedEvent]:
    """Take events that plugins have not been told of, oldest first, of every organization; due again when the lease ends."""
    rows = await session.exec(
        select(Event)
        .where(col(Event.watch_due_at) <= now())
        .order_by(col(Event.watch_due_at))
        .limit(BATCH)
        .with_for_update(skip_locked=True)
    )
    events = []
    for row in rows.all():
        row.watch_due_at = now() + LEASE
        events.append(PublishedEvent(row.id, row.organization_id, row.name, row.data, row.occurred_at))
    return events


async def watched(session: SystemSession, event_id: UUID) -> None:
    """Plugins have been told of an event."""
    await session.exec(update(Event).where(col(Event.id) == event_id).values(watch_due_at=None))


async def untriggered(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """Organization and id of each event whose triggers nobody has pulled yet, oldest first."""
    rows = select(Event.organization_id, Event.id).where(col(Event.trigger_due_at) < now())
    return list((await session.exec(rows.order_by(col(Event.trigger_due_at)).limit(TRIGGER_BATCH))).all())


async def forget_events(session: SystemSession, *, age: timedelta, most: int) -> int:
    """Delete up to `most` events that are this old and that nothing is owed to any more; how many there were."""
    settled = col(Event.watch_due_at).is_(None), col(Event.trigger_due_at).is_(None)
    old = select(Event.id).where(col(Event.created_at) < now() - age, *settled).order_by(col(Event.id)).limit(most)
    return (await session.exec(delete(Event).where(col(Event.id).in_(old)))).rowcount
