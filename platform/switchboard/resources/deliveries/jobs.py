"""Background work of deliveries."""

from typing import Final
from uuid import UUID

from switchboard.foundation.database import BATCH, Database
from switchboard.foundation.events.outbox import OWNERLESS
from switchboard.foundation.events.queries import fail_pending_deliveries
from switchboard.foundation.work import Work
from switchboard.resources.deliveries import queries
from switchboard.resources.deliveries.delivery_worker import DeliveryWorker


async def deliver_events(delivery_worker: DeliveryWorker, *, organization_id: UUID) -> None:
    """Begin to send an organization's ready deliveries."""
    await delivery_worker.deliver(organization_id)


async def make_deliveries_ready(database: Database, *, organization_id: UUID) -> None:
    """Make an organization's deliveries ready whose retry's time has come, or whose lease has lapsed."""
    changed = BATCH
    while changed == BATCH:
        async with database.write(organization_id) as session:
            changed = await queries.make_ready(session)
            if changed:
                session.wake(deliver_events.__name__)


async def expire_deliveries(database: Database) -> None:
    """Fail deliveries that have waited for a disabled endpoint for seven days, and those of a deleted one
    (docs/decisions/0010-webhook-deliveries.md).
    """
    async with database.system() as session:
        closed = await queries.list_closed_targets(session)
    for organization_id, target_id, is_deleted in closed:
        error, age = (OWNERLESS, queries.NO_WAIT) if is_deleted else (queries.EXPIRED, queries.WAIT)
        changed = BATCH
        while changed == BATCH:
            async with database.write(organization_id) as session:
                changed = await fail_pending_deliveries(session, target_id, error, age=age)


WORK: Final = (
    Work(deliver_events, queries.OrganizationsToDeliver(), seconds=1, at_once=4),
    Work(make_deliveries_ready, queries.WAITING_DELIVERIES, seconds=1, at_once=4),
)
