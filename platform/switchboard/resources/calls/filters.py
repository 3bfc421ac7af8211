"""Filters of the list of calls, and the search of their transcripts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast
from uuid import UUID

from sqlalchemy import ColumnElement, SQLColumnExpression, any_, exists, func, or_
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, TenantTable, is_among
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import paginate, select_after
from switchboard.foundation.web.schemas import NO_ID, Page, parse_id
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.schemas import CallFilters, CallQuery
from switchboard.resources.contacts.models import Contact
from switchboard.resources.identity.service import get_policy

TENANT, SEARCH = "switchboard_tenant", "switchboard_search"
MANY_ENTRIES, MANY_CALLS, PROBED_CALLS = 20_000, 10_000, 50_000
"""Words in fewer entries are rare: the calls of their entries are counted and sorted. Of common words the entries of
each call are looked at instead, newest call first, until `MANY_CALLS` have the words, or `PROBED_CALLS` were looked at.
"""


def filter_calls(session: ReadSession, query: CallFilters) -> SelectOfScalar[Call]:
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


async def find_calls(session: ReadSession, query: CallQuery) -> Page[Call]:
    """Return one page of the calls that match a query, newest first.

    The total of common words is at most `MANY_CALLS`. Raises `InvalidState` for words of encrypted transcripts.
    """
    if query.transcript is None:
        return await paginate(session, filter_calls(session, query), lambda call: call, query)
    await _require_searchable(session)
    found = filter_calls(session, query)
    async with _show_only(session, query.transcript):
        matching, total = await _find_common(session, found) or await _find_rare(session, found)
        page = select_after(matching, None).offset(query.offset).limit(query.limit)
        ids = (await session.exec(_select_ids(page))).all()
    # The tenant role may decrypt the texts of calls, and the role of the search may not.
    rows = session.select(Call).where(is_among(col(Call.id), ids))
    items = list(await session.exec(select_after(rows, None)))
    await open_content(session, *items)
    return Page[Call].model_construct(items=items, total=total, limit=query.limit, offset=query.offset)


async def _find_common(session: ReadSession, found: SelectOfScalar[Call]) -> tuple[SelectOfScalar[Call], int] | None:
    """Return those of the calls that have the words, and their total; None if the words, or such calls, are rare."""
    entries = select(TranscriptLine.call_id).where(session.owns(TranscriptLine))
    if await session.count(entries.limit(MANY_ENTRIES)) < MANY_ENTRIES:
        return None
    newest = _select_ids(select_after(found, None).limit(PROBED_CALLS))
    probed = newest.subquery()
    total = await session.count(select(probed.c.id).where(_has_words(session, probed.c.id)).limit(MANY_CALLS))
    if total < MANY_CALLS and await session.count(newest) == PROBED_CALLS:
        return None
    return found.where(_has_words(session, col(Call.id))), total


def _has_words(session: ReadSession, call_id: SQLColumnExpression[UUID]) -> ColumnElement[bool]:
    """Return the condition that a call has a visible entry.

    The offset keeps PostgreSQL from looking for all entries with the words before it looks at the first call.
    """
    entries = select(TranscriptLine.id).where(session.owns(TranscriptLine), col(TranscriptLine.call_id) == call_id)
    return exists(entries.offset(0))


async def _find_rare(session: ReadSession, found: SelectOfScalar[Call]) -> tuple[SelectOfScalar[Call], int]:
    """Return those of the calls that have the words, and their total, by looking at each entry with the words."""
    # PostgreSQL does not know how rare the words are, and would look through each call, newest first.
    visible = select(TranscriptLine.call_id).where(session.owns(TranscriptLine)).cte("visible")
    visible = visible.prefix_with("materialized")
    matching = found.where(col(Call.id).in_(select(visible.c.call_id)))
    return matching, await session.count(matching)


async def list_call_batch(
    session: ReadSession, query: CallFilters, *, after: TenantTable | None, limit: int
) -> tuple[list[Call], Call | None]:
    """Look at the next `limit` calls after `after`, newest first, and return those that match the query, and the last
    one looked at, or None at the end of the list. Raises `InvalidState` as `find_calls` does.

    Only those calls are looked at, however rare the words are, so that every batch is as fast.
    """
    rows = (await session.exec(select_after(filter_calls(session, query), after).limit(limit))).all()
    await open_content(session, *rows)
    last = rows[-1] if len(rows) == limit else None
    if query.transcript is None:
        return list(rows), last
    await _require_searchable(session)
    matching = select(TranscriptLine.call_id).where(session.owns(TranscriptLine))
    matching = matching.where(is_among(col(TranscriptLine.call_id), [call.id for call in rows]))
    async with _show_only(session, query.transcript):
        ids = set((await session.exec(matching)).all())
    return [call for call in rows if call.id in ids], last


def _select_ids(rows: SelectOfScalar[Call]) -> SelectOfScalar[UUID]:
    return cast("SelectOfScalar[UUID]", rows.with_only_columns(col(Call.id)))


def _belongs_to(session: ReadSession, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition that a contact who meets `condition` has the number of either party."""
    numbers = select(Contact.phone_number).where(session.owns(Contact), condition)
    return or_(col(Call.from_number).in_(numbers), col(Call.to_number).in_(numbers))


async def _require_searchable(session: ReadSession) -> None:
    if (await get_policy(session, session.organization_id)).encryption.texts:
        raise InvalidState("The organization's transcripts are encrypted and cannot be searched.")


@asynccontextmanager
async def _show_only(session: ReadSession, words: str) -> AsyncIterator[None]:
    """Take the role whose policy shows only the entries of transcripts with these words.

    Row-level security keeps a query's own condition out of the index, because it might leak hidden rows; a condition of
    the policy itself may use the index. The tenant role has no such condition, which would cost every reader.
    """
    for name, value in (("app.transcript_search", words), ("role", SEARCH)):
        await session.exec(select(func.set_config(name, value, True)))
    yield
    for name, value in (("role", TENANT), ("app.transcript_search", "")):
        await session.exec(select(func.set_config(name, value, True)))
