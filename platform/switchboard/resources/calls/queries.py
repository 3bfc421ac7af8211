"""Statements about calls, their transcripts, and the queue of callers who wait for a person."""

import secrets
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    SQLColumnExpression,
    String,
    and_,
    any_,
    bindparam,
    exists,
    func,
    inspect,
    literal,
    or_,
    text,
    tuple_,
)
from sqlalchemy import cast as cast_column
from sqlalchemy import select as select_columns
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import col, delete, select, update
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import (
    ReadSession,
    SystemSession,
    TenantTable,
    WriteSession,
    is_among,
    is_not_among,
    lock_name,
    now,
)
from switchboard.foundation.encryption.content import Content, get_table, open_content
from switchboard.foundation.leases import ProcessLease
from switchboard.foundation.web.paging import select_after
from switchboard.foundation.web.schemas import NO_ID, parse_id
from switchboard.foundation.work import DueRows
from switchboard.plugin_sdk import CarrierCall, IncomingCall
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls.models import (
    Call,
    CallQueueEntry,
    QueueAttendant,
    TranscriptLine,
    TranscriptSearch,
)
from switchboard.resources.calls.schemas import CallFilters, CallQuery
from switchboard.resources.contacts.models import Contact
from switchboard.resources.deliveries.queries import list_undelivered_subjects
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.queries import SETTLED_BEFORE, ExpiringRows
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.queries import OURS, select_reference

# Built once, because every call asks them.
_REFERENCE: Final = select_reference(
    "call", bindparam("organization_id"), bindparam("carrier_call_id"), bindparam("carrier")
)
_BY_CARRIER: Final = select(Call).where(
    col(Call.organization_id) == bindparam("organization_id"), col(Call.id) == _REFERENCE.scalar_subquery()
)
_IS_AGENT: Final = and_(col(Agent.organization_id) == Call.organization_id, col(Agent.id) == Call.agent_id)
_WITH_AGENT: Final = (
    select(Call, Agent)
    .join(Agent, _IS_AGENT, isouter=True)
    .where(col(Call.organization_id) == bindparam("organization_id"), col(Call.id) == bindparam("call_id"))
    .with_for_update(of=Call)
)


async def find_call_by_carrier_id(session: ReadSession, carrier: str, carrier_call_id: str) -> Call | None:
    """Return the organization's call that a carrier knows by this id."""
    values = {"organization_id": session.organization_id, "carrier": carrier, "carrier_call_id": carrier_call_id}
    return (await session.exec(_BY_CARRIER, params=values)).one_or_none()


async def lock_call_by_carrier_id(session: WriteSession, carrier: str, carrier_call_id: str) -> Call | None:
    """Lock and return the organization's call that a carrier knows by this id."""
    values = {"organization_id": session.organization_id, "carrier": carrier, "carrier_call_id": carrier_call_id}
    return (await session.exec(_BY_CARRIER.with_for_update(), params=values)).one_or_none()


async def find_simulated_call(session: ReadSession, carrier_call_id: str) -> Call | None:
    """Return the call of a simulated caller, of whichever carrier, by the carrier's id."""
    found = select_reference("call", session.organization_id, carrier_call_id)
    return (await session.exec(session.select(Call).where(col(Call.id).in_(found)))).one_or_none()


async def lock_call_with_agent(session: WriteSession, call_id: UUID) -> tuple[Call, Agent | None] | None:
    """Return a call, locked for an update, with its agent; None for a call without one, and if there is no call."""
    values = {"organization_id": session.organization_id, "call_id": call_id}
    return (await session.exec(_WITH_AGENT, params=values)).one_or_none()


async def lock_calls_by_id(session: WriteSession, call_ids: Sequence[UUID | None]) -> Sequence[Call]:
    """Return calls as they are now, locked in the order of their ids."""
    rows = session.select(Call).where(is_among(col(Call.id), call_ids)).order_by(col(Call.id))
    return (await session.exec(rows.with_for_update().execution_options(populate_existing=True))).all()


PARTS: Final = 8
"""Parts of the lock of calls, and so calls of an organization that may begin at once far from its limits."""


async def lock_calls(session: WriteSession) -> None:
    """Let no other transaction start a call of the organization, or dial for its campaigns, until this one ends.

    This one must not hold a part of the lock. All parts are taken in one order, so that two transactions cannot wait
    for each other.
    """
    number = func.generate_series(0, PARTS - 1).column_valued("number")
    names = literal(f"calls of {session.organization_id} ").concat(cast_column(number, String))
    await session.exec(select(func.pg_advisory_xact_lock(func.hashtextextended(names, 0))))


async def lock_part_of_calls(session: WriteSession) -> None:
    """Hold one of the parts of the lock of calls until this transaction ends, or until `release_part_of_calls`.
    `PARTS` transactions at most hold one, and none of them beside one that holds the whole lock.
    """
    await session.fetch(text("savepoint lock_part"))  # after a flush: what was added stays if the part is released
    await lock_name(session, f"calls of {session.organization_id} {secrets.randbelow(PARTS)}")


async def release_part_of_calls(session: WriteSession) -> None:
    """Release the part, and undo what was written since it is held."""
    await session.fetch(text("rollback to savepoint lock_part"))


async def list_ongoing_calls(session: ReadSession) -> Sequence[tuple[Call, str | None]]:
    """List the calls that an agent, or a supervisor who took one over, speaks on now, latest first; each with the name
    of its agent, or None if that has been deleted.
    """
    rows = select(Call, Agent.name).join(Agent, _IS_AGENT, isouter=True)
    rows = rows.where(session.owns(Call), col(Call.ended_at).is_(None))
    rows = rows.where(col(Call.status) == "in-progress", col(Call.holder).is_not(None))
    return (await session.exec(rows.order_by(col(Call.created_at).desc()))).all()


async def list_latest_calls(session: ReadSession, agent_id: UUID, *, most: int) -> Sequence[Call]:
    """List an agent's latest calls."""
    rows = session.select(Call).where(col(Call.agent_id) == agent_id)
    return (await session.exec(rows.order_by(col(Call.created_at).desc()).limit(most))).all()


async def list_lines(session: ReadSession, found: Sequence[Call]) -> Sequence[TranscriptLine]:
    """List the lines of calls' transcripts in the order of time. An utterance in progress is among them once its call
    has ended.
    """
    ended = is_among(col(TranscriptLine.call_id), [call.id for call in found if call.ended_at is not None])
    rows = session.select(TranscriptLine).where(is_among(col(TranscriptLine.call_id), [call.id for call in found]))
    rows = rows.where(or_(~col(TranscriptLine.unfinished), ended))
    return (await session.exec(rows.order_by(col(TranscriptLine.timestamp_ms), col(TranscriptLine.position)))).all()


async def delete_lines(session: WriteSession, call_id: UUID, *, first: int) -> None:
    """Delete the lines of a transcript from a position on."""
    lines = delete(TranscriptLine).where(session.owns(TranscriptLine), col(TranscriptLine.call_id) == call_id)
    await session.exec(lines.where(col(TranscriptLine.position) >= first))


async def index_transcript(session: WriteSession, call_id: UUID) -> None:
    """Let a call be found by the words of its transcript, as they are now."""
    row = {"organization_id": session.organization_id, "call_id": call_id}
    found = insert(TranscriptSearch).values(**row, words=func.collect_transcript_words(*row.values()))
    await session.exec(
        found.on_conflict_do_update(
            index_elements=["organization_id", "call_id"], set_={"words": found.excluded["words"]}
        )
    )


# The announcement of an inbound call, by one statement.


async def read_route_columns(
    session: ReadSession, carrier: str, incoming: IncomingCall, *, agent_id: UUID | None
) -> Row[*tuple[Any, ...]]:
    """Return the columns that decide the route of a call. `agent_id` is the agent that the caller asked for, if any."""
    values: dict[str, object] = {
        "organization_id": session.organization_id,
        "carrier": carrier,
        "carrier_call_id": incoming.carrier_call_id,
        "from_number": incoming.from_number,
        "to_number": incoming.to_number,
        **({} if agent_id is None else {"agent_id": agent_id}),
    }
    (row,) = await session.fetch(_select_route_columns(names_agent=agent_id is not None), values)
    return row


@cache
def _select_route_columns(*, names_agent: bool) -> Select[Any]:
    """Select the organization, with the number that was called, and its agent or the one that was asked for."""
    organization = inspect(Organization).local_table
    call, number, agent = get_table(Call), get_table(PhoneNumber), get_table(Agent)
    ours = organization.c.id
    placed = select_columns(call.c.cause_depth).where(
        call.c.organization_id == ours,
        call.c.direction == "outbound",
        call.c.ended_at.is_(None),
        call.c.from_number == bindparam("from_number"),
        call.c.to_number == bindparam("to_number"),
    )
    is_number = and_(
        number.c.organization_id == ours,
        number.c.phone_number == bindparam("to_number"),
        or_(*(number.c.status == status for status in OURS)),
    )
    wanted = bindparam("agent_id", type_=agent.c.id.type) if names_agent else number.c.inbound_agent_id
    return (
        select_columns(
            exists(_REFERENCE).label("is_repeated"),
            organization.c.suspended_at.is_not(None).label("is_suspended"),
            organization.c.moving_since.is_not(None).label("is_moving"),
            func.coalesce(placed.order_by(call.c.created_at.desc()).limit(1).scalar_subquery(), 0).label("cause_depth"),
            number.c.id.label("number_id"),
            number.c.schedule,
            number.c.forward_number,
            number.c.forward_webhook_url,
            agent.c.id.label("agent_id"),
            agent.c.status.label("agent_status"),
        )
        .select_from(organization)
        .outerjoin(number, is_number)
        .outerjoin(agent, and_(agent.c.organization_id == ours, agent.c.id == wanted))
        .where(ours == bindparam("organization_id"))
    )


# The list of calls, and the search of transcripts.

TENANT, SEARCH = "switchboard_tenant", "switchboard_search"
MANY_CALLS, PROBED_CALLS = 10_000, 50_000
"""Words that fewer than `MANY_CALLS` have are rare: their calls are counted and sorted. Of common words each call is
looked at instead, newest first, until so many have the words, or `PROBED_CALLS` were looked at.
"""


def select_calls(session: ReadSession, query: CallFilters) -> SelectOfScalar[Call]:
    """Select the organization's calls that match a query, apart from the words of their transcripts.

    Conditions of equality keep the shape that row counters know.
    """
    exact = {
        Call.direction: query.direction,
        Call.status: query.status,
        Call.ended_reason: query.ended_reason,
        Call.user_sentiment: query.user_sentiment,
        Call.call_successful: query.call_successful,
    }
    conditions = [col(column) == value for column, value in exact.items() if value is not None]
    if query.agent_id is not None:
        conditions.append(col(Call.agent_id) == (parse_id(query.agent_id) or NO_ID))
    if query.created_after is not None:
        conditions.append(col(Call.created_at) >= query.created_after)
    if query.created_before is not None:
        conditions.append(col(Call.created_at) < query.created_before)
    if query.min_duration_seconds is not None:
        conditions.append(col(Call.duration_seconds) >= query.min_duration_seconds)
    if query.max_duration_seconds is not None:
        conditions.append(col(Call.duration_seconds) <= query.max_duration_seconds)
    if query.phone is not None:
        conditions.append(match_number(query.phone))
    if query.contact_id is not None:
        conditions.append(_belongs_to(session, col(Contact.id) == (parse_id(query.contact_id) or NO_ID)))
    if query.tag is not None:
        tags = func.regexp_split_to_array(func.lower(func.trim(col(Contact.tags))), r"\s*,\s*")
        conditions.append(_belongs_to(session, func.lower(query.tag) == any_(tags)))
    return session.select(Call).where(*conditions)


def match_number(phone_number: str) -> ColumnElement[bool]:
    """Return the condition that a call is from or to a number."""
    return or_(col(Call.from_number) == phone_number, col(Call.to_number) == phone_number)


def _belongs_to(session: ReadSession, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition that a contact who meets `condition` has the number of either party."""
    numbers = select(Contact.phone_number).where(session.owns(Contact), condition)
    return or_(col(Call.from_number).in_(numbers), col(Call.to_number).in_(numbers))


async def list_next_calls(
    session: ReadSession, query: CallFilters, *, after: TenantTable | None, limit: int
) -> Sequence[Call]:
    """List the next calls after `after` that match a query, apart from the words of their transcripts, newest first."""
    rows = select_after(select_calls(session, query), after).limit(limit)
    return (await session.exec(rows)).all()


async def find_calls_with_words(session: ReadSession, calls: Sequence[Call], words: str) -> set[UUID]:
    """Return the ids of those of the calls whose transcripts have the words."""
    matching = select(TranscriptSearch.call_id).where(session.owns(TranscriptSearch))
    matching = matching.where(is_among(col(TranscriptSearch.call_id), [call.id for call in calls]))
    async with _show_only(session, words):
        return set((await session.exec(matching)).all())


async def search_calls(session: ReadSession, query: CallQuery, words: str) -> tuple[list[Call], int]:
    """Return one page of the calls that match a query and have the words, newest first, and their total."""
    found = select_calls(session, query)
    async with _show_only(session, words):
        matching, total = await _find_common(session, found) or await _find_rare(session, found)
        page = select_after(matching, None).offset(query.offset).limit(query.limit)
        ids = (await session.exec(_select_ids(page))).all()
    # The tenant role may decrypt the texts of calls, and the role of the search may not.
    rows = session.select(Call).where(is_among(col(Call.id), ids))
    items = list(await session.exec(select_after(rows, None)))
    await open_content(session, *items)
    return items, total


async def _find_common(session: ReadSession, found: SelectOfScalar[Call]) -> tuple[SelectOfScalar[Call], int] | None:
    """Return those of the calls that have the words, and their total; None if the words, or such calls, are rare."""
    having = select(TranscriptSearch.call_id).where(session.owns(TranscriptSearch))
    if await session.count(having.limit(MANY_CALLS)) < MANY_CALLS:
        return None
    newest = _select_ids(select_after(found, None).limit(PROBED_CALLS))
    probed = newest.subquery()
    total = await session.count(select(probed.c.id).where(_has_words(session, probed.c.id)).limit(MANY_CALLS))
    if total < MANY_CALLS and await session.count(newest) == PROBED_CALLS:
        return None
    return found.where(_has_words(session, col(Call.id))), total


def _has_words(session: ReadSession, call_id: SQLColumnExpression[UUID]) -> ColumnElement[bool]:
    """Return the condition that a call is visible to the search.

    The offset keeps PostgreSQL from looking for all calls with the words before it looks at the first one.
    """
    visible = select(TranscriptSearch.call_id).where(
        session.owns(TranscriptSearch), col(TranscriptSearch.call_id) == call_id
    )
    return exists(visible.offset(0))


async def _find_rare(session: ReadSession, found: SelectOfScalar[Call]) -> tuple[SelectOfScalar[Call], int]:
    """Return those of the calls that have the words, and their total, by looking at each call with the words."""
    # PostgreSQL does not know how rare the words are, and would look through each call, newest first.
    visible = select(TranscriptSearch.call_id).where(session.owns(TranscriptSearch)).cte("visible")
    visible = visible.prefix_with("materialized")
    matching = found.where(col(Call.id).in_(select(visible.c.call_id)))
    return matching, await session.count(matching)


def _select_ids(rows: SelectOfScalar[Call]) -> SelectOfScalar[UUID]:
    return cast("SelectOfScalar[UUID]", rows.with_only_columns(col(Call.id)))


@asynccontextmanager
async def _show_only(session: ReadSession, words: str) -> AsyncIterator[None]:
    """Take the role whose policy shows only the transcripts with these words.

    Row-level security keeps a query's own condition out of the index, because it might leak hidden rows; a condition of
    the policy itself may use the index. The tenant role has no such condition, which would cost every reader.
    """
    for name, value in (("app.transcript_search", words), ("role", SEARCH)):
        await session.exec(select(func.set_config(name, value, True)))
    yield
    for name, value in (("role", TENANT), ("app.transcript_search", "")):
        await session.exec(select(func.set_config(name, value, True)))


# The queue of callers who wait for a person.

ATTENDANCE: Final = timedelta(seconds=30)
RENEWAL: Final = timedelta(seconds=10)
MOST_SHOWN: Final = 100
_LONGEST_WAIT: Final = col(CallQueueEntry.created_at), col(CallQueueEntry.id)
"""The longest wait first; of two callers of the same moment, the one who was written first."""


async def attend_queue(session: WriteSession, user_id: UUID) -> None:
    """Record that a user's browser follows the queue."""
    row = QueueAttendant(organization_id=session.organization_id, user_id=user_id)
    seen = insert(QueueAttendant).values(row.model_dump())
    await session.exec(
        seen.on_conflict_do_update(
            index_elements=["organization_id", "user_id"],
            set_={"seen_at": row.seen_at},
            where=col(QueueAttendant.seen_at) < now() - RENEWAL,
        )
    )


async def is_staffed(session: ReadSession) -> bool:
    """Return whether a user follows the queue."""
    present = session.select(QueueAttendant).where(col(QueueAttendant.seen_at) > now() - ATTENDANCE)
    return (await session.exec(present.limit(1))).first() is not None


async def find_queue_entry(session: ReadSession, call_id: UUID, *statuses: str) -> CallQueueEntry | None:
    """Return a call's entry with one of the statuses; None if there is none."""
    values = {"organization_id": session.organization_id, "call_id": call_id}
    return (await session.exec(_select_entry(False, *statuses), params=values)).first()


async def lock_queue_entry(session: WriteSession, call_id: UUID, *statuses: str) -> CallQueueEntry | None:
    """Return a call's entry with one of the statuses, locked for an update; None if there is none."""
    values = {"organization_id": session.organization_id, "call_id": call_id}
    return (await session.exec(_select_entry(True, *statuses), params=values)).first()


@cache
def _select_entry(lock: bool, *statuses: str) -> SelectOfScalar[CallQueueEntry]:
    rows = select(CallQueueEntry).where(
        col(CallQueueEntry.organization_id) == bindparam("organization_id"),
        col(CallQueueEntry.call_id) == bindparam("call_id"),
        is_among(col(CallQueueEntry.status), statuses),
    )
    rows = rows.order_by(*_LONGEST_WAIT)
    return rows.with_for_update() if lock else rows


async def count_entries_before(session: ReadSession, entry: CallQueueEntry) -> int:
    """Count the waiting callers who have waited longer."""
    place = tuple_(*_LONGEST_WAIT) < tuple_(entry.created_at, entry.id)
    return await session.count(session.select(CallQueueEntry).where(col(CallQueueEntry.status) == "waiting", place))


async def list_queue_entries(session: ReadSession, status: str) -> list[CallQueueEntry]:
    """List the callers who are `waiting`, or the entries of type `callback` that are due, the longest wait first, at
    most 100.
    """
    rows = session.select(CallQueueEntry).where(col(CallQueueEntry.status) == status)
    entries = list(await session.exec(rows.order_by(*_LONGEST_WAIT).limit(MOST_SHOWN)))
    await open_content(session, *entries)
    return entries


# Calls, recordings, and transcripts that retention deletes.

SETTLED: Final[tuple[ColumnElement[bool], ...]] = (
    col(Call.ended_at) < SETTLED_BEFORE,
    col(Call.watch_at).is_(None),
    col(Call.analysis_due_at).is_(None),
    col(Call.recording_due_at).is_(None),
)
_RECORDED: Final = or_(col(Call.has_recording), col(Call.carrier_recording_id).is_not(None))
SETTLED_CALLS: Final = ExpiringRows(Call, SETTLED)
RECORDED_CALLS: Final = ExpiringRows(Call, (*SETTLED, _RECORDED))
TRANSCRIBED_CALLS: Final = ExpiringRows(Call, (*SETTLED, cast("ColumnElement[bool]", col(Call.has_transcript))))


async def list_settled_calls(
    session: ReadSession, rows: ExpiringRows, cutoff: datetime, *, most: int
) -> Sequence[UUID]:
    """List calls with nothing left to do, and no webhook left to deliver. Nothing starts for them any more."""
    awaited = await list_undelivered_subjects(session)
    found = rows.select_ids(session, cutoff, most=most).where(is_not_among(col(Call.id), awaited))
    return (await session.exec(found)).all()


async def list_calls_with_recording(session: ReadSession, ids: Sequence[UUID]) -> Sequence[UUID]:
    """List those of the calls that have a recording."""
    return (await session.exec(select(Call.id).where(*_are_calls(session, ids), _RECORDED))).all()


async def lock_settled_calls(session: WriteSession, rows: ExpiringRows, ids: Sequence[UUID]) -> Sequence[UUID]:
    """Lock those of the calls that still have nothing left to do, and list them."""
    left = select(Call.id).where(*_are_calls(session, ids), *rows.conditions)
    return (await session.exec(left.order_by(col(Call.id)).with_for_update())).all()


async def delete_calls(session: WriteSession, ids: Sequence[UUID]) -> None:
    """Delete calls with their transcripts."""
    await _delete_lines_of(session, ids)
    await session.exec(delete(Call).where(*_are_calls(session, ids)))


async def mark_recordings_deleted(session: WriteSession, ids: Sequence[UUID]) -> None:
    """Record that calls have no recording any more."""
    gone = update(Call).where(*_are_calls(session, ids))
    await session.exec(gone.values(has_recording=False, carrier_recording_id=None))


async def delete_transcripts(session: WriteSession, ids: Sequence[UUID]) -> None:
    """Delete the transcripts of calls, what the analysis took from them, and what agents have learned."""
    await _delete_lines_of(session, ids)
    gone = update(Call).where(*_are_calls(session, ids))
    await session.exec(
        gone.values(
            has_transcript=False,
            call_summary=None,
            extracted_data=Content({}),
            variables=Content({}),
            consent=col(Call.consent).op("||")(literal({"heard": None}, JSONB)),
        )
    )


async def _delete_lines_of(session: WriteSession, ids: Sequence[UUID]) -> None:
    for table in (TranscriptLine, TranscriptSearch):
        await session.exec(delete(table).where(session.owns(table), is_among(col(table.call_id), ids)))


def _are_calls(session: ReadSession, ids: Sequence[UUID]) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return session.owns(Call), is_among(col(Call.id), ids)


# Calls of all organizations, for the reconciler, the heartbeat, and the command line.

MOST_HELD: Final = 5000
_IS_UNPLACED: Final = and_(col(Call.status) == "queued", col(Call.carrier_call_id).is_(None))
_IS_OVER: Final = col(Call.ended_at).is_not(None)
_IS_UNDIALED: Final = col(Call.dialing_at).is_(None)
CALLS_TO_DIAL: Final = DueRows(Call, "watch_at", (_IS_UNPLACED, _IS_UNDIALED))
UNCONFIRMED_CALLS: Final = DueRows(Call, "watch_at", (_IS_UNPLACED, ~_IS_UNDIALED))
CALLS_TO_END: Final = DueRows(Call, "watch_at", (~_IS_UNPLACED, ~_IS_OVER))
CALLS_TO_HANG_UP: Final = DueRows(Call, "watch_at", (_IS_OVER,))
CALLS_TO_ANALYZE: Final = DueRows(Call, "analysis_due_at")


async def list_calls_held_by(session: SystemSession, nodes: Collection[str]) -> Sequence[tuple[UUID, UUID]]:
    """List organization and id of the calls of processes, at most 5 000."""
    rows = select(Call.organization_id, Call.id).where(is_among(col(Call.holder), nodes))
    return (await session.exec(rows.limit(MOST_HELD))).all()


async def find_carrier_call(session: SystemSession, call_id: UUID) -> CarrierCall | None:
    """Return a call of any organization as its carrier knows it; None if there is no such call."""
    columns = select(Call.organization_id, Call.carrier, Call.carrier_call_id).where(col(Call.id) == call_id)
    row = (await session.exec(columns)).one_or_none()
    return None if row is None else CarrierCall(*row)


class HeldCall(NamedTuple):
    """A call that a process holds by its row."""

    organization_id: UUID
    call_id: UUID
    started_at: datetime | None
    answered_by: str | None
    is_prepaid: bool


async def list_held_calls(session: SystemSession, node: str) -> list[HeldCall]:
    """List the calls that a process holds."""
    is_prepaid = func.coalesce(col(Organization.policy)["billing_mode"].astext == "prepaid", False)
    columns = (Call.organization_id, Call.id, Call.started_at, Call.answered_by)
    rows = select_columns(*map(col, columns), is_prepaid).where(col(Call.holder) == node)
    rows = rows.join(Organization, col(Organization.id) == Call.organization_id)
    return [HeldCall(*row) for row in await session.fetch(rows)]


async def give_calls_up(session: SystemSession, node: str, call_ids: Collection[UUID]) -> None:
    """Let the reconciler end calls that a process holds by their rows only."""
    lost = update(Call).where(is_among(col(Call.id), call_ids), col(Call.holder) == node)
    await session.exec(lost.where(col(Call.watch_at).is_(None)).values(watch_at=now()))


async def delete_leases(session: SystemSession, nodes: Collection[str], *, before: datetime) -> None:
    """Delete the leases of processes without a beat since a moment, unless they hold a call."""
    held = select(Call.id).where(col(Call.holder) == ProcessLease.node)
    ended = delete(ProcessLease).where(is_among(col(ProcessLease.node), nodes), col(ProcessLease.beat_at) <= before)
    await session.exec(ended.where(~exists(held)))
