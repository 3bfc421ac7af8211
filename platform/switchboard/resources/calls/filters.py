"""Filters of the list of calls, and the search of their transcripts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from sqlalchemy import ColumnElement, any_, func, or_
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import paginate
from switchboard.foundation.web.schemas import Page, parse_id
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.schemas import CallQuery
from switchboard.resources.contacts.models import Contact
from switchboard.resources.identity.service import get_policy

TENANT, SEARCH = "switchboard_tenant", "switchboard_search"
NOBODY = UUID(int=0)


def filter_calls(session: TenantSession, query: CallQuery) -> SelectOfScalar[Call]:
    """Select the organization's calls that match a query, apart from the words of their transcripts."""
    return session.select(Call).where(*_list_conditions(session, query))


def filter_by_number(rows: SelectOfScalar[Call], phone_number: str) -> SelectOfScalar[Call]:
    """Keep the calls from or to a number."""
    return rows.where(or_(col(Call.from_number) == phone_number, col(Call.to_number) == phone_number))


async def find_calls(session: TenantSession, query: CallQuery) -> Page[Call]:
    """Return one page of the calls that match a query, newest first. Raises `InvalidState` for words of encrypted
    transcripts.
    """
    if query.transcript is None:
        return await paginate(session, filter_calls(session, query), lambda call: call, query)
    ids, total = await _search_transcripts(session, query, query.transcript)
    rows = session.select(Call).where(col(Call.id).in_(ids))
    items = list((await session.exec(rows.order_by(col(Call.created_at).desc(), col(Call.id).desc()))).all())
    return Page[Call].model_construct(items=items, total=total, limit=query.limit, offset=query.offset)


def _list_conditions(session: TenantSession, query: CallQuery) -> list[ColumnElement[bool]]:
    """Return the conditions on columns. Those of equality keep the shape that row counters know."""
    exact = {
        Call.direction: query.direction,
        Call.status: query.status,
        Call.ended_reason: query.ended_reason,
        Call.user_sentiment: query.user_sentiment,
        Call.call_successful: query.call_successful,
    }
    conditions = [col(column) == value for column, value in exact.items() if value is not None]
    if query.agent_id is not None:
        conditions.append(col(Call.agent_id) == (parse_id(query.agent_id) or NOBODY))
    if query.created_after is not None:
        conditions.append(col(Call.created_at) >= query.created_after)
    if query.created_before is not None:
        conditions.append(col(Call.created_at) < query.created_before)
    if query.min_duration_seconds is not None:
        conditions.append(col(Call.duration_seconds) >= query.min_duration_seconds)
    if query.max_duration_seconds is not None:
        conditions.append(col(Call.duration_seconds) <= query.max_duration_seconds)
    if query.phone is not None:
        conditions.append(or_(col(Call.from_number) == query.phone, col(Call.to_number) == query.phone))
    if query.contact_id is not None:
        conditions.append(_belongs_to(session, col(Contact.id) == (parse_id(query.contact_id) or NOBODY)))
    if query.tag is not None:
        tags = func.regexp_split_to_array(func.lower(func.trim(col(Contact.tags))), r"\s*,\s*")
        conditions.append(_belongs_to(session, func.lower(query.tag) == any_(tags)))
    return conditions


def _belongs_to(session: TenantSession, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition that a contact who meets `condition` has the number of either party."""
    numbers = select(Contact.phone_number).where(session.owns(Contact), condition)
    return or_(col(Call.from_number).in_(numbers), col(Call.to_number).in_(numbers))


async def _search_transcripts(session: TenantSession, query: CallQuery, words: str) -> tuple[list[UUID], int]:
    """Return the ids of one page of calls with these words in an entry of the transcript, and the total."""
    if (await get_policy(session, session.organization_id)).encryption.texts:
        raise InvalidState("The organization's transcripts are encrypted and cannot be searched.")
    matching = select(TranscriptLine.call_id).where(session.owns(TranscriptLine))
    found = [session.owns(Call), *_list_conditions(session, query), col(Call.id).in_(matching)]
    newest = select(Call.id).where(*found).order_by(col(Call.created_at).desc(), col(Call.id).desc())
    async with _show_only(session, words):
        total = (await session.exec(select(func.count()).select_from(Call).where(*found))).one()
        ids = (await session.exec(newest.offset(query.offset).limit(query.limit))).all()
    return list(ids), total


@asynccontextmanager
async def _show_only(session: TenantSession, words: str) -> AsyncIterator[None]:
    """Take the role whose policy shows only the entries of transcripts with these words.

    Row-level security keeps a query's own condition out of the index, because it might leak hidden rows; a condition of
    the policy itself may use the index. The tenant role has no such condition, which would cost every reader.
    """
    for name, value in (("app.transcript_search", words), ("role", SEARCH)):
        await session.exec(select(func.set_config(name, value, True)))
    yield
    for name, value in (("role", TENANT), ("app.transcript_search", "")):
        await session.exec(select(func.set_config(name, value, True)))
