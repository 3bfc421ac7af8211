"""Events and their deliveries that retention deletes, and the rows that deliveries still wait for."""

from uuid import UUID

from sqlalchemy import text
from sqlmodel import col

from switchboard.foundation.database import Database, TenantSession
from switchboard.foundation.events.models import Delivery, Event
from switchboard.resources.identity.retention import ExpiringRows, RowDeleter

ENDED_DELIVERIES = ExpiringRows(Delivery, (col(Delivery.status) != "pending",))
HANDLED_EVENTS = ExpiringRows(Event, (col(Event.watch_due_at).is_(None), col(Event.trigger_due_at).is_(None)))

# By target, because that is how the pending ones are indexed. Deliveries from before `subject_id` have none, and
# plain bodies.
_AWAITED = text(
    """
    select distinct coalesce(
        pending.subject_id,
        case when pending.body like '{%'
          then coalesce(pending.body::json #>> '{data,call_id}', pending.body::json #>> '{data,message_id}')::uuid end
    )
    from event_target target cross join lateral (
        select subject_id, body from delivery where target_id = target.id and status = 'pending'
    ) pending
    where target.organization_id = :organization_id
    """
)


def build_event_deleters(database: Database) -> tuple[RowDeleter, ...]:
    """Build the deleters of deliveries, with their attempts, and of events."""
    return (RowDeleter(database, "events", ENDED_DELIVERIES), RowDeleter(database, "events", HANDLED_EVENTS))


async def list_undelivered_subjects(session: TenantSession) -> list[UUID]:
    """List the ids of the calls, text messages, and simulations that pending deliveries are about."""
    values = {"organization_id": session.organization_id}
    found = (await (await session.connection()).execute(_AWAITED, values)).scalars()
    return [subject for subject in found if subject is not None]
