"""Jobs of the foundation, identity, and OAuth: notify plugins of events, compact row counts, delete expired rows."""

from datetime import timedelta

from switchboard.foundation.events import system_queries
from switchboard.foundation.web import row_counts
from switchboard.foundation.web.idempotency import delete_old_records
from switchboard.resources.identity.system_queries import delete_expired_sessions
from switchboard.resources.oauth.system_queries import delete_expired_grants as delete_grants
from switchboard.runtime import Runtime

EVENTS_KEPT = timedelta(days=30)
BATCH = 5000
DIFFERENCES = 100


async def notify_event_watchers(runtime: Runtime) -> None:
    """Notify plugins of published events, oldest first, and again after a crash in between. No transaction is open
    meanwhile.
    """
    while True:
        async with runtime.database.system() as session:
            events = await system_queries.claim_unnotified_events(session)
        if not events:
            return
        for event in events:
            await runtime.registry.publish(event)
            async with runtime.database.system() as session:
                await system_queries.mark_notified(session, event.id)


async def compact_row_counts(runtime: Runtime) -> None:
    """Compact the row counts of lists."""
    async with runtime.database.system() as session:
        await row_counts.merge_row_count_changes(session, most=DIFFERENCES)


async def delete_old_idempotent_responses(runtime: Runtime) -> None:
    """Delete the idempotent responses that are older than a day."""
    async with runtime.database.system() as session:
        await delete_old_records(session)


async def delete_expired_grants(runtime: Runtime) -> None:
    """Delete the OAuth grants that can no longer be used."""
    async with runtime.database.system() as session:
        await delete_grants(session)


async def delete_old_sessions(runtime: Runtime) -> None:
    """Delete the browser sessions that have expired."""
    async with runtime.database.system() as session:
        await delete_expired_sessions(session)


async def delete_old_events(runtime: Runtime) -> None:
    """Delete the events that are thirty days old."""
    deleted = BATCH
    while deleted == BATCH:
        async with runtime.database.system() as session:
            deleted = await system_queries.delete_finished_events(session, age=EVENTS_KEPT, most=BATCH)
