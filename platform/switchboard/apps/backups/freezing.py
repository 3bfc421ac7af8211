"""Freeze an organization for a move: nothing new begins, what runs ends, then nothing is written any more.

The marks are columns of the organization (`foundation/database/moves.py`). Transactions that are older than a mark may
not have seen it, so they are waited for: each open one holds its own lock, which `pg_locks` shows (PostgreSQL manual,
section 52.12).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final
from uuid import UUID

from sqlalchemy import TextClause, text

from switchboard.apps.backups.snapshot import open_connection
from switchboard.foundation.database.moves import LATEST_SECONDS
from switchboard.foundation.settings import OperatorError

Report = Callable[[str], None]
POLL_SECONDS: Final = 0.2
NOTICE_SECONDS: Final = LATEST_SECONDS + 0.5
"""Time in which every process has noticed a mark: they keep credentials, and ask whether they may write, for five
seconds.
"""
DRAIN_SECONDS: Final = 180.0
"""Time that running work has to end, longer than any of its leases."""
PATIENCE_SECONDS: Final = 600.0
"""Time that older transactions have to end."""
FIND: Final = text("select name, slug, frozen_at is not null from organization where id = :id")
MARK_MOVING: Final = "update organization set moving_since = now() where id = :id and moving_since is null"
MARK_FROZEN: Final = "update organization set frozen_at = now() where id = :id"
THAW: Final = "update organization set frozen_at = null where id = :id"
RESUME: Final = "update organization set frozen_at = null, moving_since = null where id = :id"
HAS_PROCESSES: Final = text("select exists (select from process_lease where beat_at > now() - interval '20 seconds')")
LIVE_CALLS: Final = text(
    "select count(*) from call where organization_id = :id and status in ('queued', 'ringing', 'in-progress')"
)
# Work whose lease holds: somebody does it, and records its result soon.
RUNNING: Final = text(
    """
    select 'deliveries' as kind, count(*) from delivery_due
      where organization_id = :id and not is_ready and lease_token is not null and due_at > now()
    union all select 'text messages', count(*) from sms_message where organization_id = :id and status = 'sending'
    union all select 'replies', count(*) from sms_conversation where organization_id = :id and answering_until > now()
    union all select 'replies', count(*) from widget_session where organization_id = :id and answering_until > now()
    union all select 'automation runs', count(*) from automation_run
      where organization_id = :id and lease_token is not null and due_at > now()
    union all select 'simulations', count(*) from simulation
      where organization_id = :id and status = 'running' and due_at > now()
    union all select 'documents', count(*) from knowledge_document
      where organization_id = :id and status = 'processing' and process_after > now()
    union all select 'privacy requests', count(*) from privacy_request
      where organization_id = :id and status = 'running' and due_at > now()
    union all select 'purchases of numbers', count(*) from phone_number
      where organization_id = :id and status = 'provisioning' and created_at > now() - interval '3 minutes'
    union all select 'recordings', count(*) from call
      where organization_id = :id and recording_due_at > now() and ended_at > now() - interval '3 minutes'
    """
)
TRANSACTIONS: Final = text(
    "select lock.virtualtransaction from pg_locks lock join pg_stat_activity activity using (pid) "
    "where lock.locktype = 'virtualxid' and lock.granted and activity.datname = current_database() "
    "and activity.usesysid is not null and lock.pid <> pg_backend_pid()"
)


class MoveRefused(OperatorError):
    """The organization cannot be moved now."""


@dataclass(frozen=True, slots=True)
class FrozenOrganization:
    """An organization that takes no changes, and whether it took none before."""

    id: UUID
    name: str
    slug: str | None
    was_frozen: bool


@asynccontextmanager
async def freeze(database_url: str, organization_id: UUID, report: Report) -> AsyncIterator[FrozenOrganization]:
    """Freeze an organization for the block, and for good once the block ends without an error. One that was frozen
    before stays so in any case.

    Raises `MoveRefused` for an unknown organization, one with live calls, and one whose work does not end.
    """
    found = await _find(database_url, organization_id)
    if not found.was_frozen:
        report("refusing changes, and letting running work end")
        await _mark(database_url, organization_id, MARK_MOVING)
    try:
        if not found.was_frozen:
            await _require_no_calls(database_url, organization_id)
            await _drain(database_url, organization_id)
        await _wait_for_transactions(database_url, report)
        yield found
    except BaseException:  # also an interruption by the operator
        if not found.was_frozen:
            await asyncio.shield(_mark(database_url, organization_id, RESUME))
        raise


async def _drain(database_url: str, organization_id: UUID) -> None:
    """Freeze the organization at a moment at which nothing runs."""
    ((is_serving,),) = await _fetch(database_url, HAS_PROCESSES)
    await asyncio.sleep(NOTICE_SECONDS if is_serving else 0)
    until = monotonic() + DRAIN_SECONDS
    while True:
        await _wait_until_idle(database_url, organization_id, until)
        await _mark(database_url, organization_id, MARK_FROZEN)
        await asyncio.sleep(NOTICE_SECONDS)
        await _wait_for_transactions(database_url, lambda _line: None)
        await _require_no_calls(database_url, organization_id)
        # Work that was claimed in between must record its result first.
        if not await _list_running(database_url, organization_id):
            return
        await _mark(database_url, organization_id, THAW)


async def _wait_until_idle(database_url: str, organization_id: UUID, until: float) -> None:
    while running := await _list_running(database_url, organization_id):
        if monotonic() > until:
            raise MoveRefused(f"still running: {', '.join(running)}; try again later")
        await asyncio.sleep(POLL_SECONDS)


async def _list_running(database_url: str, organization_id: UUID) -> list[str]:
    return [f"{count} {kind}" for kind, count in await _fetch(database_url, RUNNING, id=organization_id) if count]


async def _require_no_calls(database_url: str, organization_id: UUID) -> None:
    ((live,),) = await _fetch(database_url, LIVE_CALLS, id=organization_id)
    if live:
        raise MoveRefused(f"{live} calls are queued or live: wait for their end, or hang up")


async def _wait_for_transactions(database_url: str, report: Report) -> None:
    """Wait until every transaction that is open now has ended."""
    older, until = {*await _fetch(database_url, TRANSACTIONS)}, monotonic() + PATIENCE_SECONDS
    if older:
        report("waiting for older transactions")
    while older:
        if monotonic() > until:
            raise MoveRefused(f"{len(older)} transactions of the database have been open for ten minutes; end them")
        await asyncio.sleep(POLL_SECONDS)
        older &= {*await _fetch(database_url, TRANSACTIONS)}


async def _find(database_url: str, organization_id: UUID) -> FrozenOrganization:
    for row in await _fetch(database_url, FIND, id=organization_id):
        return FrozenOrganization(organization_id, *row)
    raise MoveRefused(f"there is no organization {organization_id}; `switchboard orgs list` shows them")


async def _fetch(database_url: str, statement: TextClause, **values: object) -> list[tuple[Any, ...]]:
    """Return the rows of a statement in a transaction of its own."""
    async with open_connection(database_url) as connection:
        return [tuple(row) for row in await connection.execute(statement, values)]


async def _mark(database_url: str, organization_id: UUID, statement: str) -> None:
    async with open_connection(database_url) as connection:
        await connection.execute(text("set local role switchboard_system"))
        await connection.execute(text(statement), {"id": organization_id})
