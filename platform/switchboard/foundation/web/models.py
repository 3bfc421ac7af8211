"""What is kept of requests that must not happen twice, and of how long lists are."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index, LargeBinary
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from switchboard.foundation.database import new_id, now


class IdempotencyRecord(SQLModel, table=True):
    """The answer to a request with an `Idempotency-Key`, written in the transaction of what it did. Kept for 24 hours."""

    __tablename__ = "idempotency_record"
    __table_args__ = (Index(None, "created_at"),)

    organization_id: UUID = Field(primary_key=True, foreign_key="organization.id", ondelete="CASCADE")
    key: str = Field(primary_key=True)
    request_hash: bytes = Field(sa_type=LargeBinary)
    status: int
    body: bytes = Field(sa_type=LargeBinary)
    created_at: datetime = Field(default_factory=now)


class RowTally(SQLModel, table=True):
    """By how many rows a list has become longer or shorter (`totals.py`). Written by triggers only."""

    __tablename__ = "row_tally"
    __table_args__ = (Index(None, "organization_id", "list", "parent"),)

    id: UUID = Field(default_factory=new_id, primary_key=True)
    organization_id: UUID
    list: str
    parent: UUID
    facets: dict[str, Any] = Field(sa_type=JSONB)
    rows: int
