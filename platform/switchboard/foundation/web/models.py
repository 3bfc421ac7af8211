"""Responses kept for `Idempotency-Key`, and the row counts of lists."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Index, LargeBinary, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from switchboard.foundation.database import encryption_label, new_id, now

BODY_LABEL = "idempotency_record|body|{key}|{organization_id}"


class IdempotencyRecord(SQLModel, table=True):
    """The response to a request with an `Idempotency-Key`, stored in the request's transaction. Kept for 24 hours."""

    __tablename__ = "idempotency_record"
    __table_args__ = (Index(None, "created_at"),)

    organization_id: UUID = Field(primary_key=True, foreign_key="organization.id", ondelete="CASCADE")
    key: str = Field(primary_key=True)
    request_hash: bytes = Field(sa_type=LargeBinary)
    status: int
    body: bytes = Field(sa_type=LargeBinary, sa_column_kwargs=encryption_label(BODY_LABEL))
    created_at: datetime = Field(default_factory=now)


class RowCount(SQLModel, table=True):
    """The number of rows of a list (`row_counts.py`), without the changes that have not been merged yet.

    Only its columns are selected: with JSON in its key, a row cannot be an object of a session.
    """

    __tablename__ = "row_count"
    __table_args__ = (Index("ix_row_count_none", "organization_id", postgresql_where=text("rows = 0")),)

    organization_id: UUID = Field(primary_key=True)
    list: str = Field(primary_key=True)
    parent: UUID = Field(primary_key=True)
    facets: dict[str, Any] = Field(primary_key=True, sa_type=JSONB)
    rows: int = Field(sa_type=BigInteger)


class RowCountChange(SQLModel, table=True):
    """A change of a list's number of rows, written by a trigger."""

    __tablename__ = "row_count_change"

    organization_id: UUID = Field(primary_key=True)
    list: str = Field(primary_key=True)
    parent: UUID = Field(primary_key=True)
    id: UUID = Field(default_factory=new_id, primary_key=True)
    facets: dict[str, Any] = Field(sa_type=JSONB)
    rows: int
