"""Statements of pages that show rows of several resources."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement
from sqlmodel import col

from switchboard.foundation.database import ReadSession, TenantTable, is_among
from switchboard.foundation.encryption.content import open_content
from switchboard.resources.calls.models import Call
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.widgets.models import WidgetSession

RowT = TypeVar("RowT", bound=TenantTable)


async def list_rows_named(session: ReadSession, table: type[RowT], column: str, text: str, *, most: int) -> list[RowT]:
    """List the rows of a table whose name has a text, by name."""
    name = col(getattr(table, column))
    rows = session.select(table).where(name.icontains(text, autoescape=True))
    return list(await session.exec(rows.order_by(name).limit(most)))


async def list_numbers_like(session: ReadSession, text: str, digits: str, *, most: int) -> list[PhoneNumber]:
    """List the phone numbers whose name has a text, or that have these digits."""
    named = col(PhoneNumber.friendly_name).icontains(text, autoescape=True)
    wanted = named | col(PhoneNumber.phone_number).contains(digits, autoescape=True)
    rows = session.select(PhoneNumber).where(wanted)
    return list(await session.exec(rows.order_by(PhoneNumber.phone_number).limit(most)))


async def list_newest_exchanges(
    session: ReadSession, phone_number: str, *, before: datetime | None, limit: int
) -> list[Call | SmsMessage]:
    """List the newest calls and text messages of a phone number before a moment, newest first, at least `limit` of them
    if there are so many.

    Each part reads the newest rows of an index, so that it costs the same however many there are.
    """
    conversations = session.select(SmsConversation).where(col(SmsConversation.contact_number) == phone_number)
    sources: list[tuple[type[Call | SmsMessage], ColumnElement[bool]]] = [
        (Call, col(Call.from_number) == phone_number),
        (Call, col(Call.to_number) == phone_number),
        *((SmsMessage, col(SmsMessage.conversation_id) == one.id) for one in await session.exec(conversations)),
    ]
    found: dict[UUID, Call | SmsMessage] = {}
    for table, is_of_contact in sources:
        rows = session.select(table).where(is_of_contact)
        if before is not None:
            rows = rows.where(col(table.created_at) < before)
        newest = rows.order_by(col(table.created_at).desc()).limit(limit)
        found |= {row.id: row for row in await session.exec(newest)}
    await open_content(session, *found.values())
    return sorted(found.values(), key=lambda row: (row.created_at, row.id), reverse=True)


async def list_calls_of_widget(session: ReadSession, widget_id: UUID, *, most: int) -> Sequence[Call]:
    """List the latest conversations of a widget, newest first."""
    held = session.select(WidgetSession).where(col(WidgetSession.widget_id) == widget_id)
    newest = (await session.exec(held.order_by(col(WidgetSession.created_at).desc()).limit(most))).all()
    rows = session.select(Call).where(is_among(col(Call.id), [each.call_id for each in newest if each.call_id]))
    found = (await session.exec(rows.order_by(col(Call.created_at).desc()))).all()
    await open_content(session, *found)
    return found


async def list_selected_calls(session: ReadSession, call_ids: Sequence[UUID]) -> Sequence[Call]:
    """List the calls with these ids."""
    return (await session.exec(session.select(Call).where(is_among(col(Call.id), call_ids)))).all()


async def has_answered_call(session: ReadSession, carrier: str) -> bool:
    """Return whether a call over a carrier has been answered."""
    answered = session.select(Call).where(col(Call.carrier) == carrier, col(Call.started_at).is_not(None))
    return (await session.exec(answered.order_by(col(Call.created_at).desc()).limit(1))).first() is not None
