"""Tables of text messages and their conversations."""

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlmodel import Field

from switchboard.foundation.database import Money, TenantTable, index_due, json_column, now, refer_to
from switchboard.foundation.encryption.content import Content, ContentList, ContentObject, ContentText, content_column
from switchboard.foundation.web.row_counts import RowCounter


class SmsConversation(TenantTable, table=True):
    """All messages between one phone number and one contact. `closed`: the contact has sent STOP and receives no
    messages until START.

    `reply_due_at` is when the agent's answer is due, None without one; `answering_until` is the lease of the worker
    that answers, and identifies its claim; `answer_attempts` counts claims since the last answer.

    `assigned_to` is the member who answers in the agent's place. `waiting_since` is when the contact wrote a message
    that waits for a person, because no agent answers it; None if no message does. `last_inbound_at` is None while the
    contact has written nothing.

    `parts` are those of the agents (`WrittenPart`), empty while the number's agent has it; `variables` are
    those that they have learned, by name, with their origins. Both are forgotten after a day without messages.
    """

    __tablename__ = "sms_conversation"
    __row_counter__ = RowCounter()
    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        UniqueConstraint("organization_id", "phone_number_id", "contact_number"),
        Index(None, "organization_id", "created_at", "id"),
        Index(None, "organization_id", "last_message_at", "id"),
        index_due("ix_sms_conversation_reply_due", "reply_due_at"),
        refer_to("phone_number", "phone_number_id"),
        ForeignKeyConstraint(
            ["organization_id", "assigned_to"],
            ["membership.organization_id", "membership.user_id"],
            ondelete="SET NULL (assigned_to)",
        ),
        Index(
            "ix_sms_conversation_unresolved",
            "organization_id",
            "last_inbound_at",
            postgresql_where=text("last_inbound_at is not null and resolved_at is null"),
        ),
        CheckConstraint("status in ('open', 'closed')", name="status"),
    )

    phone_number_id: UUID
    contact_number: str
    status: str = "open"
    last_message_at: datetime = Field(default_factory=now)
    reply_due_at: datetime | None = None
    answering_until: datetime | None = None
    answer_attempts: int = 0
    assigned_to: UUID | None = None
    resolved_at: datetime | None = None
    waiting_since: datetime | None = None
    last_inbound_at: datetime | None = None
    parts: Content[list[Any]] = content_column(ContentList)
    variables: Content[dict[str, Any]] = content_column(ContentObject)


class SmsConversationReader(TenantTable, table=True):
    """The moment until which a user has read a conversation."""

    __tablename__ = "sms_conversation_reader"
    __table_args__ = (
        UniqueConstraint("organization_id", "conversation_id", "user_id"),
        refer_to("sms_conversation", "conversation_id"),
    )

    conversation_id: UUID
    user_id: UUID = Field(foreign_key="user_account.id", ondelete="CASCADE", index=True)
    read_at: datetime = Field(default_factory=now)


class SmsMessage(TenantTable, table=True):
    """A text message. `author` is the contact, an API client, an agent (`agent_id`, which stays when it is deleted), an
    automation, a user of the dashboard, or the platform itself (replies to STOP, START, and HELP). `interventions` are
    those of the agent's answer (`Intervention` of the engine, without a time).

    `unsent_body` is the full text of a redacted `body` until the carrier has been asked to send it.
    `watch_at` is when the reconciler checks a message that has not been sent by then, or asks the carrier about one
    that has; None once there is nothing more to do. `cause_depth`: length of the automation chain that caused the
    message; its events inherit it.
    """

    __tablename__ = "sms_message"
    __row_counter__ = RowCounter("conversation_id")
    __table_args__ = (
        Index(None, "organization_id", "conversation_id", "created_at", "id"),
        Index(None, "organization_id", "created_at", "id"),
        index_due("ix_sms_message_watched", "watch_at"),
        refer_to("sms_conversation", "conversation_id"),
        CheckConstraint("direction in ('inbound', 'outbound')", name="direction"),
        CheckConstraint(
            "status in ('queued', 'sending', 'sent', 'delivered', 'undelivered', 'failed', 'received')", name="status"
        ),
        CheckConstraint("author in ('contact', 'api', 'agent', 'automation', 'person', 'platform')", name="author"),
    )

    conversation_id: UUID
    direction: str
    from_number: str
    to_number: str
    body: Content[str] = content_column(ContentText)
    unsent_body: Content[str | None] = content_column(ContentText, nullable=True)
    media_urls: Content[list[Any]] = content_column(ContentList)
    status: str
    author: str
    agent_id: UUID | None = None
    interventions: list[dict[str, Any]] = json_column(list)
    segments: int
    cost: Decimal = Field(default=Decimal(0), sa_type=Money)
    text_cost: Decimal | None = Field(default=None, sa_type=Money)
    error_message: str | None = None
    carrier: str
    carrier_text_id: str | None = None
    watch_at: datetime | None = None
    cause_depth: int = 0


class SmsMedia(TenantTable, table=True):
    """A file of an inbound message. Its content is in the store of recordings once `content_type` is set.

    `carrier_url` and `fetch_due_at` are None once the file was fetched, or is given up with `error_message`. While a
    worker fetches the file, `fetch_due_at` is the end of its lease; `attempts` counts claims.
    """

    __tablename__ = "sms_media"
    __table_args__ = (
        Index(None, "organization_id", "message_id"),
        index_due("ix_sms_media_fetch_due", "fetch_due_at"),
        ForeignKeyConstraint(["message_id"], ["sms_message.id"], ondelete="CASCADE"),
    )

    message_id: UUID
    carrier_url: Content[str | None] = content_column(ContentText, nullable=True)
    content_type: str | None = None
    error_message: str | None = None
    fetch_due_at: datetime | None = Field(default_factory=now)
    attempts: int = 0
