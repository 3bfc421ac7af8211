"""Read and unread messages of each user. A resolved conversation has nothing unread."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import exists, func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import TenantSession, is_among, new_id, now
from switchboard.resources.sms.models import SmsConversation, SmsConversationReader, SmsMessage

RECENT = 500
"""Latest unresolved conversations, among which the unread ones are counted: a bounded cost."""


async def mark_read(session: TenantSession, user_id: UUID, conversation: SmsConversation) -> None:
    """Record that a user has read the conversation up to now."""
    row = SmsConversationReader(
        id=new_id(), organization_id=session.organization_id, conversation_id=conversation.id, user_id=user_id
    )
    added = insert(SmsConversationReader).values(row.model_dump())
    key = ["organization_id", "conversation_id", "user_id"]
    await session.exec(added.on_conflict_do_update(index_elements=key, set_={"read_at": now()}))


async def count_unread_messages(
    session: TenantSession, user_id: UUID | None, conversation_ids: Collection[UUID]
) -> dict[UUID, int] | None:
    """Count the messages of contacts that a user has not read, by conversation; None without a user."""
    if user_id is None:
        return None
    unread = (
        select(SmsMessage.conversation_id, func.count())
        .join(SmsConversation, col(SmsConversation.id) == col(SmsMessage.conversation_id))
        .where(
            session.owns(SmsMessage),
            session.owns(SmsConversation),
            is_among(col(SmsMessage.conversation_id), conversation_ids),
            col(SmsMessage.direction) == "inbound",
            col(SmsConversation.last_inbound_at).is_not(None),
            col(SmsConversation.resolved_at).is_(None),
            ~exists(_reader(session, user_id, col(SmsMessage.created_at))),
        )
        .group_by(col(SmsMessage.conversation_id))
    )
    return dict((await session.exec(unread)).all())


async def count_unread_conversations(session: TenantSession, user_id: UUID) -> int:
    """Count the unresolved conversations with messages that a user has not read, of the latest 500."""
    is_unread = ~exists(_reader(session, user_id, col(SmsConversation.last_inbound_at)))
    recent = (
        select(SmsConversation.id, is_unread.label("is_unread"))
        .where(
            session.owns(SmsConversation),
            col(SmsConversation.last_inbound_at).is_not(None),
            col(SmsConversation.resolved_at).is_(None),
        )
        .order_by(col(SmsConversation.last_inbound_at).desc())
        .limit(RECENT)
        .subquery()
    )
    return (await session.exec(select(func.count()).select_from(recent).where(recent.c.is_unread))).one()


def _reader(
    session: TenantSession, user_id: UUID, moment: Mapped[datetime] | Mapped[datetime | None]
) -> SelectOfScalar[UUID]:
    """Select the row of a user who has read the conversation since a moment."""
    return select(SmsConversationReader.id).where(
        session.owns(SmsConversationReader),
        col(SmsConversationReader.conversation_id) == col(SmsConversation.id),
        col(SmsConversationReader.user_id) == user_id,
        col(SmsConversationReader.read_at) >= moment,
    )
