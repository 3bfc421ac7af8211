"""Queries about the outbox that cross organizations."""

from datetime import timedelta
from uuid import UUID

from sqlmodel import col, select, update

from switchboard.foundation.database import SystemSession, now
from switchboard.foundation.events.models import Event
from switchboard.plugin_sdk import PublishedEvent

BATCH = 10
# Longer than a batch can take: a plugin has ten seconds per event.
LEASE = timedelta(seconds=110)


async def claim_unnotified_events(session: SystemSession) -> list[PublishedEvent]:
    """Claim events of all organizations that plugins have not been notified of, oldest first; they are due again
    when the lease ends.
    """
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


async def mark_notified(session: SystemSession, event_id: UUID) -> None:
    """Record that plugins have been notified of an event."""
    await session.exec(update(Event).where(col(Event.id) == event_id).values(watch_due_at=None))
