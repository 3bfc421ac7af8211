"""Jobs of the foundation: notify plugins of events, compact row counts and the counters of limits, delete idempotent
responses, and close idle providers.
"""

import asyncio
from functools import partial
from typing import Final
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Extensions, Providers
from switchboard.foundation.database import Database
from switchboard.foundation.events import queries
from switchboard.foundation.jobs import repeat_in_batches
from switchboard.foundation.leases import LeaseKeeper, LeaseWatch
from switchboard.foundation.observability.extension_faults import record_extension_fault, record_hook_fault
from switchboard.foundation.web import row_counts
from switchboard.foundation.web.idempotency import delete_old_records
from switchboard.foundation.work import Work, share_buckets
from switchboard.plugin_sdk import EventWatcher, PublishedEvent
from switchboard.plugin_sdk.event_watchers import WATCHER_SECONDS
from switchboard.resources.destinations.queries import merge_limit_counts

logger = structlog.get_logger()
HOOK = "event_published"
ORGANIZATIONS: Final = 100
"""Organizations whose counters a transaction merges: it holds a lock of each."""


async def notify_event_watchers(extensions: Extensions, *, organization_id: UUID) -> None:
    """Notify plugins of an organization's published events, oldest first, and again after a crash in between. No
    transaction is open meanwhile.
    """
    database = extensions.database
    while True:
        async with database.system() as session:
            events = await queries.claim_unnotified_events(session, organization_id)
        if not events:
            return
        for event in events:
            await asyncio.gather(_call_hooks(extensions, event), _notify_watchers(extensions, event))
            async with database.system() as session:
                await queries.mark_done(session, event.id, "watch_due_at")


async def _call_hooks(extensions: Extensions, event: PublishedEvent) -> None:
    for plugin, error in await extensions.registry.publish(event):
        record_hook_fault("plugin failed while watching an event", plugin, HOOK, error, event_name=event.name)


async def _notify_watchers(extensions: Extensions, event: PublishedEvent) -> None:
    """Notify the event watchers that the event's organization can use. Their errors are logged and never raised."""
    watchers = await extensions.create_all(event.organization_id, EventWatcher)
    await asyncio.gather(*(_notify(watcher, event) for watcher in watchers))


async def _notify(watcher: EventWatcher, event: PublishedEvent) -> None:
    try:
        async with asyncio.timeout(WATCHER_SECONDS):
            await watcher.watch(event)
    except TimeoutError:
        logger.error("event watcher timed out", watcher=watcher.name, event_name=event.name, seconds=WATCHER_SECONDS)
    except Exception as error:  # noqa: BLE001 - a plugin's watcher may raise anything
        record_extension_fault("event watcher failed", watcher, "watch", error, event_name=event.name)


async def compact_row_counts(database: Database, lease: LeaseKeeper, lease_watch: LeaseWatch) -> None:
    """Merge the changes of lists' totals, as far as their buckets are this worker's."""
    buckets = share_buckets(lease.node, lease_watch.workers)
    await repeat_in_batches(database, partial(row_counts.merge_row_count_changes, buckets=buckets))


async def compact_limit_counters(database: Database, lease: LeaseKeeper, lease_watch: LeaseWatch) -> None:
    """Merge the changes of the counters that limits compare, as far as their buckets are this worker's."""
    buckets, merged = share_buckets(lease.node, lease_watch.workers), ORGANIZATIONS
    while merged == ORGANIZATIONS:
        async with database.system() as session:
            merged = await merge_limit_counts(session, buckets=buckets, most=ORGANIZATIONS)


async def delete_old_idempotent_responses(database: Database) -> None:
    """Delete the idempotent responses that are older than a day."""
    await repeat_in_batches(database, delete_old_records)


async def close_idle_providers(providers: Providers) -> None:
    """Close the providers of idle organizations in this process."""
    providers.close_idle()


WORK: Final = (Work(notify_event_watchers, queries.EVENTS_TO_WATCH, seconds=5),)
