"""Events and their deliveries that retention deletes, and the rows that deliveries still wait for."""

from uuid import UUID

from sqlalchemy import text
from sqlmodel import col

from switchboard.foundation.database import ReadSession
from switchboard.foundation.events.models import Delivery, Event
from switchboard.resources.identity.retention import ExpiringRows

ENDED_DELIVERIES = ExpiringRows(Delivery, (col(Delivery.status) != "pending",))
HANDLED_EVENTS = ExpiringRows(Event, (col(Event.watch_due_at).is_(None), col(Event.trigger_due_at).is_(None)))

# By target, because that is how the pending ones are indexed.
_AWAITED = text(
    """
    select distinct pending.subject_id
    from event_target target
    join delivery pending on pending.target_id = target.id and pending.status = 'pending'
    where target.organization_id = :organization_id
    """
)


async def list_undelivered_subjects(session: ReadSession) -> list[UUID]:
    """List the ids of the calls, text messages, and simulations that pending deliveries are about."""
    rows = await session.fetch(_AWAITED, {"organization_id": session.organization_id})
    return [row.subject_id for row in rows]
