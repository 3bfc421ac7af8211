"""Events and their deliveries that retention deletes, and the rows that deliveries still wait for."""

from uuid import UUID

from sqlalchemy import text
from sqlmodel import col

from switchboard.foundation.database import Database, TenantSession
from switchboard.foundation.events.models import Delivery, Event
from switchboard.resources.identity.retention import ExpiringRows, RowDeleter

ENDED_DELIVERIES = ExpiringRows(Delivery, (col(Delivery.status) != "pending",))
HANDLED_EVENTS = ExpiringRows(Event, (col(Event.watch_due_at).is_(None), col(Event.trigger_due_at).is_(None)))

# By target, because that is how the pending ones are indexed.
_AWAITED = text(
    """
    select distinct (pending.body::json #>> array['data', :field])::uuid
    from event_target target cross join lateral (
        select body from delivery where target_id = target.id and status = 'pending'
    ) pending
    where target.organization_id = :organization_id and pending.body::json #>> array['data', :field] is not null
    """
)


def build_event_deleters(database: Database) -> tuple[RowDeleter, ...]:
    """Build the deleters of deliveries, with their attempts, and of events."""
    return (RowDeleter(database, "events", ENDED_DELIVERIES), RowDeleter(database, "events", HANDLED_EVENTS))


async def list_undelivered_ids(session: TenantSession, field: str) -> list[UUID]:
    """List the ids that pending deliveries have in a field of their data, such as `call_id`."""
    values = {"organization_id": session.organization_id, "field": field}
    return list((await (await session.connection()).execute(_AWAITED, values)).scalars())
