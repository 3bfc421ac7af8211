"""The outbox."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, text
from sqlmodel import Field

from switchboard.database import TenantTable, json_column, now


class Event(TenantTable, table=True):
    """A fact that was published. `watched_at` is set once the plugins that watch events have been told."""

    __tablename__ = "event"
    __table_args__ = (
        Index(None, "organization_id", "created_at"),
        Index("ix_event_unwatched", "created_at", postgresql_where=text("watched_at is null")),
    )

    name: str
    data: dict[str, Any] = json_column()
    occurred_at: datetime = Field(default_factory=now)
    watched_at: datetime | None = None
