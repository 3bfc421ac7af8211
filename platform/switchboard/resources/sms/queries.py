"""Statements about text messages, their conversations, and their files."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, aliased
from sqlmodel import col, delete, or_, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import (
    ReadSession,
    WriteSession,
    is_among,
    is_not_among,
    now,
)
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.web.schemas import PageQuery
from switchboard.foundation.work import MOMENT, DueRows
from switchboard.resources.identity.queries import SETTLED_BEFORE, ExpiringRows
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.queries import select_reference
from switchboard.resources.sms.models import SmsConversation, SmsConversationReader, SmsMedia, SmsMessage
from switchboard.resources.sms.schemas import SmsConversationQuery

MOST_WAITING: Final = 50
MOST_RECENT: Final = 500
"""Latest unresolved conversations, among which the unread ones are counted: a bounded cost."""


def select_messages(session: ReadSession, conversation_id: UUID | None = None) -> SelectOfScalar[SmsMessage]:
    """Select the organization's messages, or those of one conversation."""
    rows = session.select(SmsMessage)
    return rows if conversation_id is None else rows.where(col(SmsMessage.conversation_id) == conversation_id)


async def has_inbound_message(session: ReadSession, conversation_id: UUID) -> bool:
    """Return whether the contact has written in a conversation."""
    rows = select_messages(session, conversation_id).where(col(SmsMessage.direction) == "inbound").limit(1)
    return (await session.exec(rows)).first() is not None


async def lock_outbound_message(
    session: WriteSession, message_id: UUID | None, *, carrier: str | None = None, carrier_text_id: str | None = None
) -> SmsMessage | None:
    """Lock and return the outbound message with an id, or without one with a carrier's id; None if there is none."""
    named = col(SmsMessage.id) == message_id
    if message_id is None and carrier_text_id is not None:
        named = col(SmsMessage.id).in_(select_reference("text", session.organization_id, carrier_text_id))
    rows = select_messages(session).where(named, col(SmsMessage.direction) == "outbound")
    if carrier is not None:
        rows = rows.where(col(SmsMessage.carrier) == carrier)
    return (await session.exec(rows.with_for_update())).one_or_none()


async def lock_due_message(session: WriteSession, message_id: UUID) -> SmsMessage | None:
    """Lock and return a sent message whose carrier is due to be asked for its status; None otherwise."""
    rows = select_messages(session).where(
        col(SmsMessage.id) == message_id, col(SmsMessage.status) == "sent", col(SmsMessage.watch_at) <= now()
    )
    return (await session.exec(rows.with_for_update())).one_or_none()


async def find_message_of_carrier(session: ReadSession, carrier_text_id: str) -> SmsMessage | None:
    """Return the message with an id of its carrier's."""
    found = select_reference("text", session.organization_id, carrier_text_id)
    return (await session.exec(select_messages(session).where(col(SmsMessage.id).in_(found)))).first()


async def find_reply(session: ReadSession, message: SmsMessage) -> SmsMessage | None:
    """Return the first message that was sent after an inbound one; None if there is none."""
    sent = select_messages(session, message.conversation_id).where(
        col(SmsMessage.direction) == "outbound", col(SmsMessage.created_at) >= message.created_at
    )
    found = (await session.exec(sent.order_by(col(SmsMessage.created_at)).limit(1))).one_or_none()
    if found is not None:
        await open_content(session, found)
    return found


async def find_sent_message(
    session: ReadSession, from_number: str, to_number: str, *, since: datetime
) -> SmsMessage | None:
    """Return the last message that was sent between two numbers since a moment; None if there is none."""
    rows = select_messages(session).where(
        col(SmsMessage.direction) == "outbound",
        col(SmsMessage.from_number) == from_number,
        col(SmsMessage.to_number) == to_number,
        col(SmsMessage.created_at) > since,
    )
    return (await session.exec(rows.order_by(col(SmsMessage.created_at).desc()).limit(1))).one_or_none()


async def list_recent_messages(session: ReadSession, conversation_id: UUID, *, most: int) -> list[SmsMessage]:
    """List the latest messages of a conversation, oldest first, without failed ones and the platform's own."""
    rows = select_messages(session, conversation_id).where(
        col(SmsMessage.author) != "platform", col(SmsMessage.status) != "failed"
    )
    newest = rows.order_by(col(SmsMessage.created_at).desc(), col(SmsMessage.id).desc()).limit(most)
    return list(await session.exec(newest))[::-1]


async def count_agent_answers(session: ReadSession, conversation_id: UUID, *, since: datetime) -> int:
    """Count the messages that agents have written in a conversation since a moment."""
    answers = select_messages(session, conversation_id).where(col(SmsMessage.author) == "agent")
    return await session.count(answers.where(col(SmsMessage.created_at) > since))


async def get_or_create_conversation(
    session: WriteSession, number: PhoneNumber, contact_number: str
) -> SmsConversation:
    """Return the conversation of a phone number with a contact, created if needed; locked, so that its messages are
    processed in order.
    """
    fresh = SmsConversation(
        organization_id=session.organization_id, phone_number_id=number.id, contact_number=contact_number
    )
    await session.insert_if_new(fresh)
    rows = session.select(SmsConversation).filter_by(phone_number_id=number.id, contact_number=contact_number)
    return (await session.exec(rows.with_for_update())).one()


def select_conversations(
    session: ReadSession, query: SmsConversationQuery, contact_number: str | None = None
) -> SelectOfScalar[SmsConversation]:
    """Select the conversations that a query asks for, or those of them with a number."""
    rows = session.select(SmsConversation)
    if contact_number is not None:
        rows = rows.where(col(SmsConversation.contact_number) == contact_number)
    if query.assigned_to is not None:
        rows = rows.where(col(SmsConversation.assigned_to) == query.assigned_to)
    for since, wanted in (
        (SmsConversation.resolved_at, query.resolved),
        (SmsConversation.waiting_since, query.waiting),
    ):
        if wanted is not None:
            rows = rows.where(col(since).is_not(None) if wanted else col(since).is_(None))
    return rows


async def list_latest_conversations(
    session: ReadSession, rows: SelectOfScalar[SmsConversation], page: PageQuery
) -> list[SmsConversation]:
    """List a page of selected conversations, latest message first."""
    latest = rows.order_by(col(SmsConversation.last_message_at).desc(), col(SmsConversation.id).desc())
    return list(await session.exec(latest.limit(page.limit).offset(page.offset)))


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
    return list(await session.exec(rows.order_by(col(SmsConversation.last_inbound_at).desc()).limit(MOST_WAITING)))


async def get_last_messages(session: ReadSession, conversations: Sequence[SmsConversation]) -> dict[UUID, SmsMessage]:
    """Return the last message of each conversation that has one."""
    text = aliased(SmsMessage)
    own = select(text.id).where(
        text.organization_id == session.organization_id, text.conversation_id == col(SmsConversation.id)
    )
    last = own.order_by(col(text.created_at).desc(), col(text.id).desc()).limit(1)
    newest = last.correlate(SmsConversation).scalar_subquery()
    wanted = session.select(SmsConversation).where(
        is_among(col(SmsConversation.id), [conversation.id for conversation in conversations])
    )
    found = await session.exec(select_messages(session).where(col(SmsMessage.id).in_(wanted.with_only_columns(newest))))
    messages = found.all()
    await open_content(session, *messages)
    return {message.conversation_id: message for message in messages}


async def mark_read(session: WriteSession, user_id: UUID, conversation: SmsConversation) -> None:
    """Record that a user has read the conversation up to now."""
    row = SmsConversationReader(
        organization_id=session.organization_id, conversation_id=conversation.id, user_id=user_id
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
        .limit(MOST_RECENT)
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


async def list_stored_media(session: ReadSession, message_ids: Sequence[UUID]) -> Sequence[SmsMedia]:
    """List the stored files of messages."""
    rows = session.select(SmsMedia).where(
        is_among(col(SmsMedia.message_id), message_ids), col(SmsMedia.content_type).is_not(None)
    )
    return (await session.exec(rows)).all()


MESSAGES_TO_SEND: Final = DueRows(SmsMessage, "watch_at")
"""Messages to be sent, without progress, or to be asked about."""
_CLAIMED_UNTIL: Final = col(SmsConversation.answering_until)
CONVERSATIONS_TO_ANSWER: Final = DueRows(
    SmsConversation, "reply_due_at", (or_(_CLAIMED_UNTIL.is_(None), _CLAIMED_UNTIL <= MOMENT),)
)
FILES_TO_FETCH: Final = DueRows(SmsMedia, "fetch_due_at")


# The agent answers with the conversation before its eyes, so a message waits while an answer is due.
_ANSWER_DUE = (
    select(SmsConversation.id)
    .where(
        col(SmsConversation.organization_id) == col(SmsMessage.organization_id),
        col(SmsConversation.id) == col(SmsMessage.conversation_id),
        col(SmsConversation.reply_due_at).is_not(None),
    )
    .exists()
)
_FILE_DUE = (
    select(SmsMedia.id)
    .where(
        col(SmsMedia.organization_id) == col(SmsMessage.organization_id),
        col(SmsMedia.message_id) == col(SmsMessage.id),
        col(SmsMedia.fetch_due_at).is_not(None),
    )
    .exists()
)
SETTLED_MESSAGES: Final = ExpiringRows(
    SmsMessage,
    (
        col(SmsMessage.created_at) < SETTLED_BEFORE,
        col(SmsMessage.status).not_in(("queued", "sending")),
        ~_ANSWER_DUE,
        ~_FILE_DUE,
    ),
)


async def list_expired_messages(
    session: ReadSession, rows: ExpiringRows, cutoff: datetime, *, awaited: Collection[UUID], most: int
) -> Sequence[UUID]:
    """List the ids of the oldest expired messages, without those that are `awaited`."""
    wanted = rows.select_ids(session, cutoff, most=most).where(is_not_among(col(SmsMessage.id), awaited))
    return (await session.exec(wanted)).all()


async def list_media_ids(session: ReadSession, message_ids: Sequence[UUID]) -> Sequence[UUID]:
    """List the ids of the files of messages."""
    rows = select(SmsMedia.id).where(session.owns(SmsMedia), is_among(col(SmsMedia.message_id), message_ids))
    return (await session.exec(rows)).all()


async def lock_messages(
    session: WriteSession, message_ids: Sequence[UUID], conditions: Sequence[ColumnElement[bool]]
) -> Sequence[UUID]:
    """Lock those of the messages for which the conditions hold, without those that are locked; return their ids."""
    left = select(SmsMessage.id).where(session.owns(SmsMessage), is_among(col(SmsMessage.id), message_ids), *conditions)
    return (await session.exec(left.with_for_update(skip_locked=True, of=SmsMessage))).all()


async def delete_messages(session: WriteSession, message_ids: Sequence[UUID]) -> set[UUID]:
    """Delete messages; return the ids of their conversations."""
    deleted = await session.exec(
        delete(SmsMessage)
        .where(session.owns(SmsMessage), is_among(col(SmsMessage.id), message_ids))
        .returning(col(SmsMessage.conversation_id))
    )
    return set(deleted.scalars())


async def delete_empty_conversations(session: WriteSession, conversation_ids: set[UUID], cutoff: datetime) -> None:
    """Delete those of the conversations that are open, older than `cutoff`, and without messages."""
    message = select(SmsMessage.id).where(
        session.owns(SmsMessage), col(SmsMessage.conversation_id) == col(SmsConversation.id)
    )
    await session.exec(
        delete(SmsConversation).where(
            session.owns(SmsConversation),
            is_among(col(SmsConversation.id), conversation_ids),
            col(SmsConversation.status) == "open",
            col(SmsConversation.last_message_at) < cutoff,
            ~message.exists(),
        )
    )
