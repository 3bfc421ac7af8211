"""Jobs of the foundation, identity, and OAuth: notify plugins of events, compact row counts, delete expired rows."""

from switchboard.foundation.database import Database
from switchboard.foundation.events import system_queries
from switchboard.foundation.web import row_counts
from switchboard.foundation.web.idempotency import delete_old_records
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity.system_queries import delete_expired_sessions
from switchboard.resources.oauth.system_queries import delete_unusable_grants as delete_grants

DIFFERENCES = 100


async def notify_event_watchers(database: Database, registry: Registry) -> int:
    """Notify plugins of published events, oldest first, and again after a crash in between; return how many. No
    transaction is open meanwhile.
    """
    notified = 0
    while True:
        async with database.system() as session:
            events = await system_queries.claim_unnotified_events(session)
        if not events:
            return notified
        for event in events:
            await registry.publish(event)
            async with database.system() as session:
                await system_queries.mark_notified(session, event.id)
            notified += 1


async def compact_row_counts(database: Database) -> None:
    """Compact the row counts of lists."""
    async with database.system() as session:
        await row_counts.merge_row_count_changes(session, most=DIFFERENCES)


async def delete_old_idempotent_responses(database: Database) -> None:
    """Delete the idempotent responses that are older than a day."""
    async with database.system() as session:
        await delete_old_records(session)


async def delete_expired_grants(database: Database) -> None:
    """Delete the OAuth grants that can no longer be used."""
    async with database.system() as session:
        await delete_grants(session)


async def delete_old_sessions(database: Database) -> None:
    """Delete the browser sessions that have expired."""
    async with database.system() as session:
        await delete_expired_sessions(session)
