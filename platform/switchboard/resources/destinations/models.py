"""Table of the pauses of outbound work."""

from datetime import datetime
from uuid import UUID

from sqlmodel import Field, SQLModel


class OutboundPause(SQLModel, table=True):
    """The last pause of an organization's calls and text messages, and the limit that caused it."""

    __tablename__ = "outbound_pause"

    organization_id: UUID = Field(primary_key=True, foreign_key="organization.id", ondelete="CASCADE")
    limit_name: str
    limit_value: float
    paused_at: datetime
    ends_at: datetime
