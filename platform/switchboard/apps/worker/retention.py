"""The reconciler that deletes what organizations no longer keep, in small transactions."""

import random
from collections.abc import Collection
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

import structlog

from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.database import Database, now
from switchboard.foundation.leases import LeaseKeeper, LeaseWatch
from switchboard.foundation.object_store import ObjectStoreAway
from switchboard.foundation.observability import metrics
from switchboard.foundation.work import share_buckets
from switchboard.resources.appointments.queries import ENDED_APPOINTMENTS
from switchboard.resources.automations.models import AutomationRun
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.retention import CallDeleter, RecordingDeleter, TranscriptDeleter
from switchboard.resources.deliveries.queries import ENDED_DELIVERIES, HANDLED_EVENTS
from switchboard.resources.identity.queries import ExpiringRows, list_retentions
from switchboard.resources.identity.retention import RetentionDeleter
from switchboard.resources.sms.retention import MessageDeleter

logger = structlog.get_logger()
RUN_SECONDS = 30.0
"""Time after which a run stops; the next one goes on."""


async def delete_expired_data(
    database: Database, archive: RecordingArchive, lease: LeaseKeeper, lease_watch: LeaseWatch
) -> int:
    """Delete what has outlived its organization's retention, a batch of each organization and kind in turn, as far as
    their buckets are this worker's; return the number of organizations and kinds.

    Rows that are not deleted within `RUN_SECONDS` are left for the next run.
    """
    until = monotonic() + RUN_SECONDS
    buckets = share_buckets(lease.node, lease_watch.workers)
    expired = await _find_expired(database, build_deleters(database, archive), buckets)
    waiting = random.sample(expired, len(expired))  # so that no organization is passed over for long
    while waiting and monotonic() < until:
        waiting = [part for part in waiting if monotonic() < until and await _delete_batch(*part)]
    return len(expired)


def build_deleters(database: Database, archive: RecordingArchive) -> tuple[RetentionDeleter, ...]:
    """Build the deleters of all kinds of data. Data that belongs to a call is deleted before the call."""
    return (
        RecordingDeleter(database, archive=archive),
        TranscriptDeleter(database),
        CallDeleter(database, archive=archive),
        MessageDeleter(database, recordings=archive.recordings),
        RetentionDeleter(database, "appointments", ENDED_APPOINTMENTS),
        RetentionDeleter(database, "events", ENDED_DELIVERIES),
        RetentionDeleter(database, "events", HANDLED_EVENTS),
        RetentionDeleter(
            database, "events", ExpiringRows(AutomationRun, moment="completed_at")
        ),  # they hold their event's data
        RetentionDeleter(database, "audit", ExpiringRows(AuditEntry)),
    )


async def _find_expired(
    database: Database, deleters: tuple[RetentionDeleter, ...], buckets: Collection[int]
) -> list[tuple[RetentionDeleter, UUID, datetime]]:
    """Return the organizations that have expired rows of a kind, each with the moment from before which they are."""
    moment = now()
    async with database.system() as session:
        retentions = await list_retentions(session, buckets)
    expired: list[tuple[RetentionDeleter, UUID, datetime]] = []
    for deleter in deleters:
        days = {organization_id: getattr(kept, deleter.data) for organization_id, kept in retentions.items()}
        cutoffs = {organization_id: moment - timedelta(days=n) for organization_id, n in days.items() if n is not None}
        async with database.system() as session:
            found = await deleter.rows.find_organizations(session, cutoffs)
        expired += [(deleter, organization_id, cutoffs[organization_id]) for organization_id in found]
    return expired


async def _delete_batch(deleter: RetentionDeleter, organization_id: UUID, cutoff: datetime) -> bool:
    """Delete a batch; return whether there may be more."""
    try:
        count = await deleter.delete_batch(organization_id, cutoff)
    except ObjectStoreAway as error:
        logger.warning("expired recordings wait for the store", error=str(error))
        return False
    if count:
        metrics.retention_deleted.labels(deleter.data).inc(count)
        logger.info(
            "expired data deleted",
            data=deleter.data,
            table=deleter.rows.table.__tablename__,
            organization_id=str(organization_id),
            rows=count,
        )
    return count == deleter.most
