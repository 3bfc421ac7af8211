"""Rules of the queue of callers who wait for a person."""

from dataclasses import dataclass, field
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, ReadSession, WriteSession, now, retry_while_away
from switchboard.foundation.encryption.content import Content, open_content, seal_content
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import lock_row
from switchboard.resources.calls.models import Call, CallQueueEntry
from switchboard.resources.calls.queries import count_entries_before, find_queue_entry, is_staffed, lock_queue_entry
from switchboard.resources.calls.service import get_other_number


async def join_queue(session: WriteSession, call_id: UUID, number: str, reason: str) -> None:
    """Let a call wait. A repeated request changes nothing."""
    entry = await lock_queue_entry(session, call_id, "waiting", "calling")
    if entry is None:
        entry = CallQueueEntry(
            organization_id=session.organization_id,
            call_id=call_id,
            number=number,
            reason=Content(reason),
            status="waiting",
        )
        await seal_content(session, entry)
        session.add(entry)
    entry.status = "waiting"


async def get_position(session: ReadSession, call_id: UUID) -> int:
    """Return the position of a waiting call, from 1: the longest wait is answered first."""
    entry = await find_queue_entry(session, call_id, "waiting")
    if entry is None:
        return 1
    return 1 + await count_entries_before(session, entry)


async def leave_queue(session: WriteSession, call_id: UUID, *, callback: bool) -> bool:
    """End the wait of a call without an answer; return whether a callback is noted."""
    entry = await lock_queue_entry(session, call_id, "waiting")
    if entry is None:
        return await lock_queue_entry(session, call_id, "callback") is not None
    entry.ended_at = now()
    # A call back that nobody took over: the callback that it was for is open again.
    if entry.callback_of is not None:
        await _reopen(session, entry.callback_of)
        entry.status = "expired"
        return True
    entry.status = "callback" if callback and entry.number else "expired"
    return entry.status == "callback"


async def answer_waiting(session: WriteSession, call_id: UUID, name: str) -> None:
    """Record the user who has taken over a call, if it waited."""
    entry = await lock_queue_entry(session, call_id, "waiting", "calling")
    if entry is not None:
        entry.status, entry.handled_by, entry.ended_at = "answered", name, now()


async def end_waiting(session: WriteSession, call_id: UUID, *, was_lost: bool) -> None:
    """End the wait of a call that is over. A caller whose call was lost, not hung up, is called back."""
    entry = await lock_queue_entry(session, call_id, "waiting", "calling")
    if entry is None:
        return
    entry.ended_at = now()
    if entry.callback_of is not None:
        entry.status = "abandoned"
        await _reopen(session, entry.callback_of)
    else:
        entry.status = "callback" if was_lost and entry.number else "abandoned"


async def take_callback(session: WriteSession, entry_id: UUID, name: str) -> CallQueueEntry:
    """Take a callback, which nobody else can take then. Raises `NotFound`, and `InvalidState` if it is taken."""
    entry = await lock_row(session, CallQueueEntry, entry_id)
    if entry.status != "callback":
        raise InvalidState(f"{entry.handled_by or 'Somebody'} has taken this callback.")
    entry.status, entry.handled_by = "called_back", name
    record_audit(session, AuditAction.CALLBACK_TAKEN, entry.id)
    return entry


async def begin_calling_back(session: WriteSession, entry: CallQueueEntry, call_id: UUID) -> None:
    """Record the call that answers a callback: whoever picks up is connected with a user."""
    await open_content(session, entry)
    calling = CallQueueEntry(
        organization_id=session.organization_id,
        call_id=call_id,
        number=entry.number,
        reason=Content(entry.reason.value),
        status="calling",
        callback_of=entry.id,
    )
    await seal_content(session, calling)
    # The call may be new, too, and a flush does not insert it before the entry, which refers to it.
    await session.flush()
    session.add(calling)


async def _reopen(session: WriteSession, entry_id: UUID) -> None:
    entry = await session.lock(CallQueueEntry, entry_id)
    if entry is not None and entry.status == "called_back":
        entry.status, entry.handled_by = "callback", None


logger = structlog.get_logger()
RETRY_SECONDS = 30.0


@dataclass(slots=True)
class DatabasePersonQueue:
    """The engine's `PersonQueue` of one call. During an outage of the database the caller goes on waiting."""

    database: Database
    call: Call
    _position: int = field(default=1, init=False)

    async def is_staffed(self) -> bool:
        """Return whether a user follows the queue; nobody does during an outage of the database."""
        try:
            async with self.database.read(self.call.organization_id) as session:
                return await is_staffed(session)
        except (SQLAlchemyError, OSError):
            logger.warning("whether the queue is staffed is not known", call_id=str(self.call.id))
            return False

    async def join(self, reason: str) -> None:
        """Enter the queue."""
        other = get_other_number(self.call)
        number = other if other.startswith("+") else ""

        async def attempt() -> None:
            async with self.database.write(self.call.organization_id) as session:
                await join_queue(session, self.call.id, number, reason)

        await retry_while_away(attempt, seconds=RETRY_SECONDS)

    async def get_position(self) -> int:
        """Return the position, from 1; the last known position during an outage of the database."""
        try:
            async with self.database.read(self.call.organization_id) as session:
                self._position = await get_position(session, self.call.id)
        except (SQLAlchemyError, OSError):
            logger.warning("the position in the queue is not known", call_id=str(self.call.id))
        return self._position

    async def leave(self, *, callback: bool) -> bool:
        """End the wait; return whether a callback is noted."""

        async def attempt() -> bool:
            async with self.database.write(self.call.organization_id) as session:
                return await leave_queue(session, self.call.id, callback=callback)

        return await retry_while_away(attempt, seconds=RETRY_SECONDS)
