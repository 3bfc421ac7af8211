"""What is kept of requests that must not happen twice."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Index, LargeBinary
from sqlmodel import Field, SQLModel

from switchboard.database import now


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
