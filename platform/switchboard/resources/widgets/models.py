"""Tables of widgets and of the conversations that visitors had with them."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlmodel import Field

from switchboard.foundation.database import Money, TenantTable, json_column, now, refer_to


class Widget(TenantTable, table=True):
    """A widget, with the API's Widget fields. It is deleted with its agent."""

    __tablename__ = "widget"
    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        UniqueConstraint("public_key"),
        Index(None, "organization_id", "agent_id", "created_at"),
        refer_to("agent", "agent_id"),
        CheckConstraint("position in ('left', 'right')", name="position"),
    )

    agent_id: UUID
    name: str
    public_key: str
    enabled: bool = True
    demo_enabled: bool = False
    allowed_origins: list[str] = json_column(list)
    text_enabled: bool = True
    voice_enabled: bool = True
    color: str = "#0f766e"
    position: str = "right"
    title: str | None = None
    greeting: str | None = None
    language: str | None = None
    max_sessions_per_minute: int = 30
    max_sessions_per_minute_per_address: int = 5
    max_concurrent_sessions: int = 10
    max_spend_per_day: Decimal = Field(default=Decimal(10), sa_type=Money)
    updated_at: datetime = Field(default_factory=now)


class WidgetSession(TenantTable, table=True):
    """A visitor's conversation, which is a call. It is deleted with the call.

    `call_id` is None until the carrier has announced a voice call, whose `widget_id` is set then. While a chat is being
    answered, `answering_until` is the time until which no other message is.
    """

    __tablename__ = "widget_session"
    __table_args__ = (
        Index(None, "organization_id", "widget_id"),
        Index(None, "organization_id", "call_id"),
        refer_to("widget", "widget_id"),
        refer_to("call", "call_id"),
    )

    widget_id: UUID
    call_id: UUID | None = None
    answering_until: datetime | None = None
