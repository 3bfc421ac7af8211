"""The inbox: conversations by latest message, for users who read and answer them."""

from collections.abc import Sequence
from typing import Literal, TypeAlias
from uuid import UUID

from sqlalchemy.orm import aliased
from sqlmodel import col, or_, select

from switchboard.foundation.database import TenantSession, is_among
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.row_counts import count_rows
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.models import SmsConversation, SmsMessage

WAITING = 50
InboxView: TypeAlias = Literal["open", "mine", "waiting", "resolved", "all"]


async def list_latest_conversations(
    session: TenantSession, query: PageQuery, *, contact_number: str | None, view: InboxView, user_id: UUID
) -> tuple[list[SmsConversation], int]:
    """Return a page of the conversations, or of those with a number, latest message first, and the total.

    `mine` are those that the user has, `waiting` those that wait for a person.
    """
    rows = session.select(SmsConversation)
    if view == "mine":
        rows = rows.where(col(SmsConversation.assigned_to) == user_id)
    elif view == "waiting":
        rows = rows.where(col(SmsConversation.waiting_since).is_not(None))
    elif view != "all":
        resolved = col(SmsConversation.resolved_at)
        rows = rows.where(resolved.is_not(None) if view == "resolved" else resolved.is_(None))
    if contact_number is not None:
        rows = rows.where(col(SmsConversation.contact_number) == contact_number)
    part = (
        rows.order_by(col(SmsConversation.last_message_at).desc(), col(SmsConversation.id).desc())
        .limit(query.limit)
        .offset(query.offset)
    )
    return list((await session.exec(part)).all()), await count_rows(session, rows)


async def list_waiting_conversations(session: TenantSession, user_id: UUID) -> list[SmsConversation]:
    """List the latest 50 conversations that wait for this user, or for anybody."""
    assigned, waiting = col(SmsConversation.assigned_to), col(SmsConversation.waiting_since)
    rows = session.select(SmsConversation).where(
        waiting.is_not(None),
        or_(assigned.is_(None), assigned == user_id),
        # The conditions of an index, which is ordered by the same column.
        col(SmsConversation.last_inbound_at).is_not(None),
        col(SmsConversation.resolved_at).is_(None),
    )
    return list((await session.exec(rows.order_by(col(SmsConversation.last_inbound_at).desc()).limit(WAITING))).all())


async def get_last_messages(session: TenantSession, conversations: Sequence[SmsConversation]) -> dict[UUID, SmsMessage]:
    """Return the last message of each conversation that has one."""
    text = aliased(SmsMessage)
    own = select(text.id).where(
        text.organization_id == session.organization_id, text.conversation_id == col(SmsConversation.id)
    )
    newest = (
        own.order_by(col(text.created_at).desc(), col(text.id).desc())
        .limit(1)
        .correlate(SmsConversation)
        .scalar_subquery()
    )
    wanted = session.select(SmsConversation).where(
        is_among(col(SmsConversation.id), [conversation.id for conversation in conversations])
    )
    found = await session.exec(
        sms.list_messages(session).where(col(SmsMessage.id).in_(wanted.with_only_columns(newest)))
    )
    return {message.conversation_id: message for message in found.all()}


async def reply_to_conversation(session: TenantSession, conversation_id: UUID, body: str) -> SmsMessage:
    """Save a user's answer to be sent, and clear the agent's due answer.

    Raises `NotFound`, `InvalidState` for a conversation whose number is no longer in use, and what `compose_message`
    raises.
    """
    conversation = await sms.get_conversation(session, conversation_id, lock=True)
    number = await numbers.find_active_number(session, conversation.phone_number_id)
    if number is None:
        raise InvalidState("The phone number of this conversation is no longer in use.")
    content = sms.MessageContent(body)
    message = await sms.compose_message(session, number, conversation.contact_number, content, author="person")
    conversation.reply_due_at = conversation.answering_until = None
    return message
