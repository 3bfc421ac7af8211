"""Timeline of a phone number: its calls and text messages, newest first.

Each part reads the newest rows of an index, so a page costs the same however long the timeline is.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import col

from switchboard.foundation.database import TenantSession
from switchboard.resources.calls.models import Call
from switchboard.resources.sms.models import SmsConversation, SmsMessage


@dataclass(frozen=True, slots=True)
class TimelinePart:
    """Calls and messages, newest first. `more_before` is the moment from which the next part goes on, None at the end.

    Rows of the same microsecond are in one part.
    """

    entries: list[Call | SmsMessage]
    more_before: datetime | None


async def load_timeline(
    session: TenantSession, phone_number: str, *, before: datetime | None, limit: int
) -> TimelinePart:
    """Return the newest calls and messages of a phone number before a moment."""
    found: list[Call | SmsMessage] = []
    for column in (col(Call.from_number), col(Call.to_number)):
        found += await _load_calls(session, column == phone_number, before, limit)
    conversations = session.select(SmsConversation).where(col(SmsConversation.contact_number) == phone_number)
    for conversation in (await session.exec(conversations)).all():
        found += await _load_messages(session, conversation, before, limit)
    newest = sorted({row.id: row for row in found}.values(), key=lambda row: (row.created_at, row.id), reverse=True)
    if len(newest) <= limit:
        return TimelinePart(newest, None)
    last = newest[limit - 1].created_at
    return TimelinePart([row for row in newest if row.created_at >= last], last)


async def _load_calls(
    session: TenantSession, of_number: ColumnElement[bool], before: datetime | None, limit: int
) -> list[Call]:
    rows = session.select(Call).where(of_number)
    if before is not None:
        rows = rows.where(col(Call.created_at) < before)
    return list((await session.exec(rows.order_by(col(Call.created_at).desc()).limit(limit + 1))).all())


async def _load_messages(
    session: TenantSession, conversation: SmsConversation, before: datetime | None, limit: int
) -> list[SmsMessage]:
    rows = session.select(SmsMessage).where(col(SmsMessage.conversation_id) == conversation.id)
    if before is not None:
        rows = rows.where(col(SmsMessage.created_at) < before)
    newest = rows.order_by(col(SmsMessage.created_at).desc(), col(SmsMessage.id).desc())
    return list((await session.exec(newest.limit(limit + 1))).all())
