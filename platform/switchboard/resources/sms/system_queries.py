"""Queries about text messages that cross organizations."""

from uuid import UUID

from sqlalchemy import or_
from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.sms.models import SmsConversation, SmsMedia, SmsMessage

BATCH = 100


async def list_stalled_messages(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """List the organization and id of messages without progress for too long."""
    rows = select(SmsMessage.organization_id, SmsMessage.id).where(col(SmsMessage.watch_at) <= now())
    return list((await session.exec(rows.order_by(col(SmsMessage.watch_at)).limit(BATCH))).all())


async def list_due_answers(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """List the organization and id of conversations whose answer is due and that no worker has claimed."""
    free = or_(col(SmsConversation.answering_until).is_(None), col(SmsConversation.answering_until) <= now())
    rows = select(SmsConversation.organization_id, SmsConversation.id).where(
        col(SmsConversation.reply_due_at) <= now(), free
    )
    return list((await session.exec(rows.order_by(col(SmsConversation.reply_due_at)).limit(BATCH))).all())


async def list_due_media(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """List the organization and id of files that are due to be fetched and that no worker has claimed."""
    rows = select(SmsMedia.organization_id, SmsMedia.id).where(col(SmsMedia.fetch_due_at) <= now())
    return list((await session.exec(rows.order_by(col(SmsMedia.fetch_due_at)).limit(BATCH))).all())
