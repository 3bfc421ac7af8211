"""The inbox: conversations by latest message, for users who read, share out, and answer them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from sqlalchemy import exists, func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, aliased
from sqlmodel import col, or_, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, is_among, new_id, now
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.web.errors import InvalidState, ValidationFailed
from switchboard.foundation.web.row_counts import count_rows
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.identity.models import Membership
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.models import SmsConversation, SmsConversationReader, SmsMessage
from switchboard.resources.sms.schemas import SmsConversationQuery, SmsConversationRow, SmsConversationUpdate

WAITING = 50
InboxView: TypeAlias = Literal["open", "mine", "waiting", "resolved", "all"]


async def list_latest_conversations(
    session: ReadSession, query: PageQuery, *, contact_number: str | None, view: InboxView, user_id: UUID
) -> tuple[list[SmsConversation], int]:
    """Return a page of the conversations, or of those with a number, latest message first, and the total.

    `mine` are those that the user has, `waiting` those that wait for a person.
    """
    shown = SmsConversationQuery(
        assigned_to=user_id if view == "mine" else None,
        waiting=True if view == "waiting" else None,
        resolved=view == "resolved" if view in ("open", "resolved") else None,
    )
    rows = filter_conversations(session, shown)
    if contact_number is not None:
        rows = rows.where(col(SmsConversation.contact_number) == contact_number)
    latest = rows.order_by(col(SmsConversation.last_message_at).desc(), col(SmsConversation.id).desc())
    part = await session.exec(latest.limit(query.limit).offset(query.offset))
    return list(part), await count_rows(session, rows)


async def list_waiting_conversations(session: ReadSession, user_id: UUID) -> list[SmsConversation]:
    """List the latest 50 conversations that wait for this user, or for anybody."""
    assigned, waiting = col(SmsConversation.assigned_to), col(SmsConversation.waiting_since)
    rows = session.select(SmsConversation).where(
        waiting.is_not(None),
        or_(assigned.is_(None), assigned == user_id),
        # The conditions of an index, which is ordered by the same column.
        col(SmsConversation.last_inbound_at).is_not(None),
        col(SmsConversation.resolved_at).is_(None),
    )
    return list(await session.exec(rows.order_by(col(SmsConversation.last_inbound_at).desc()).limit(WAITING)))


async def get_last_messages(session: ReadSession, conversations: Sequence[SmsConversation]) -> dict[UUID, SmsMessage]:
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
    messages = found.all()
    await open_content(session, *messages)
    return {message.conversation_id: message for message in messages}


async def reply_to_conversation(session: WriteSession, conversation_id: UUID, body: str) -> SmsMessage:
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


# Sharing conversations out: the member who has one, and those that are resolved.


def filter_conversations(session: ReadSession, query: SmsConversationQuery) -> SelectOfScalar[SmsConversation]:
    """Select the conversations that a query asks for."""
    rows = session.select(SmsConversation)
    if query.assigned_to is not None:
        rows = rows.where(col(SmsConversation.assigned_to) == query.assigned_to)
    if query.resolved is not None:
        resolved = col(SmsConversation.resolved_at)
        rows = rows.where(resolved.is_not(None) if query.resolved else resolved.is_(None))
    if query.waiting is not None:
        waiting = col(SmsConversation.waiting_since)
        rows = rows.where(waiting.is_not(None) if query.waiting else waiting.is_(None))
    return rows


async def update_conversation(
    session: WriteSession, conversation_id: UUID, data: SmsConversationUpdate
) -> SmsConversation:
    """Assign a conversation to a member, who then answers in the agent's place, or resolve it.

    Resolving ends the assignment: when the contact writes again, the agent answers. Raises `NotFound`, and
    `ValidationFailed` for a user who is not a member, or for a conversation that is to be assigned and resolved.
    """
    if data.assigned_to is not None and data.resolved:
        raise ValidationFailed.field("resolved", "ends the assignment; give one of both")
    conversation = await sms.get_conversation(session, conversation_id, lock=True)
    is_resolved = conversation.resolved_at is not None
    given = data.keep_changes(SmsConversationRow.model_validate(conversation), resolved=is_resolved).model_fields_set
    if not given:
        return conversation
    if "assigned_to" in given:
        await _assign(session, conversation, data.assigned_to)
    if "resolved" in given:
        conversation.resolved_at = (conversation.resolved_at or now()) if data.resolved else None
        if data.resolved:
            conversation.assigned_to = conversation.waiting_since = None
    record_audit(session, AuditAction.SMS_CONVERSATION_UPDATED, conversation_id, fields=given)
    return conversation


async def _assign(session: WriteSession, conversation: SmsConversation, user_id: UUID | None) -> None:
    if user_id is not None:
        member = select(Membership.id).where(session.owns(Membership), col(Membership.user_id) == user_id)
        if (await session.exec(member)).first() is None:
            raise ValidationFailed.field("assigned_to", "is not a member of the organization")
        conversation.resolved_at = None
        if conversation.reply_due_at is not None:
            conversation.waiting_since = conversation.last_inbound_at
            conversation.reply_due_at = conversation.answering_until = None
    conversation.assigned_to = user_id


# Read and unread messages of each user. A resolved conversation has nothing unread.

RECENT = 500
"""Latest unresolved conversations, among which the unread ones are counted: a bounded cost."""


async def mark_read(session: WriteSession, user_id: UUID, conversation: SmsConversation) -> None:
    """Record that a user has read the conversation up to now."""
    row = SmsConversationReader(
        id=new_id(), organization_id=session.organization_id, conversation_id=conversation.id, user_id=user_id
    )
    added = insert(SmsConversationReader).values(row.model_dump())
    key = ["organization_id", "conversation_id", "user_id"]
    await session.exec(added.on_conflict_do_update(index_elements=key, set_={"read_at": now()}))


async def count_unread_messages(
    session: ReadSession, user_id: UUID | None, conversation_ids: Collection[UUID]
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


async def count_unread_conversations(session: ReadSession, user_id: UUID) -> int:
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
    session: ReadSession, user_id: UUID, moment: Mapped[datetime] | Mapped[datetime | None]
) -> SelectOfScalar[UUID]:
    """Select the row of a user who has read the conversation since a moment."""
    return select(SmsConversationReader.id).where(
        session.owns(SmsConversationReader),
        col(SmsConversationReader.conversation_id) == col(SmsConversation.id),
        col(SmsConversationReader.user_id) == user_id,
        col(SmsConversationReader.read_at) >= moment,
    )
