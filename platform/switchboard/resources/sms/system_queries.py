"""Texts across organizations: what has become due. Run under the system role."""

from uuid import UUID

from sqlalchemy import or_
from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.sms.models import SmsConversation, SmsMessage

BATCH = 100


async def unattended(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """Organization and id of each text to which nothing has happened for longer than it may take."""
    rows = select(SmsMessage.organization_id, SmsMessage.id).where(col(SmsMessage.watch_at) < now())
    return list((await session.exec(rows.order_by(col(SmsMessage.watch_at)).limit(BATCH))).all())


async def unanswered(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """Organization and id of each conversation whose answer is due and that nobody is at."""
    free = or_(col(SmsConversation.answering_until).is_(None), col(SmsConversation.answering_until) < now())
    rows = select(SmsConversation.organization_id, SmsConversation.id).where(
        col(SmsConversation.reply_due_at) < now(), free
    )
    return list((await session.exec(rows.order_by(col(SmsConversation.reply_due_at)).limit(BATCH))).all())
