"""Knowledge bases, their documents, and what is still to be done in the vector store."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, now


class KnowledgeBase(TenantTable, table=True):
    """A collection of documents whose vectors were all made by one model. The model's three fields are null until there is a document."""

    __tablename__ = "knowledge_base"
    __table_args__ = (UniqueConstraint("organization_id", "id"), Index(None, "organization_id", "created_at", "id"))

    name: str
    description: str = ""
    embedding_provider: str | None = None
    embedding_model: str | None = None
    embedding_dimension: int | None = None
    updated_at: datetime = Field(default_factory=now)


class KnowledgeDocument(TenantTable, table=True):
    """A document. `file_size` is in bytes, as it was sent.

    While it is `processing`, `process_after` is when whoever is at it must be dead, and `attempts` counts how often it was begun.
    `request_key` is the digest of a request with an Idempotency-Key: sent again after a crash, it finds its document.
    """

    __tablename__ = "knowledge_document"
    __table_args__ = (
        ForeignKeyConstraint(
            ["organization_id", "knowledge_base_id"],
            ["knowledge_base.organization_id", "knowledge_base.id"],
            ondelete="CASCADE",
        ),
        UniqueConstraint("organization_id", "id"),
        UniqueConstraint("organization_id", "request_key"),
        Index(None, "organization_id", "knowledge_base_id", "created_at", "id"),
        Index("ix_knowledge_document_processing", "process_after", postgresql_where=text("status = 'processing'")),
        CheckConstraint("status in ('processing', 'ready', 'failed')", name="status"),
    )

    knowledge_base_id: UUID
    filename: str
    content_type: str
    file_size: int
    chunk_count: int = 0
    status: str = "processing"
    error_message: str | None = None
    process_after: datetime | None = None
    attempts: int = 0
    request_key: bytes | None = None


class KnowledgeText(TenantTable, table=True):
    """A document's text, apart because lists do not read it; `id` is the document's. Vectors can be made anew from it at any time."""

    __tablename__ = "knowledge_text"
    __table_args__ = (
        ForeignKeyConstraint(
            ["organization_id", "id"],
            ["knowledge_document.organization_id", "knowledge_document.id"],
            ondelete="CASCADE",
        ),
    )

    content: str


class VectorDeletion(TenantTable, table=True):
    """Vectors to delete: a document's, or a knowledge base's (those of one model only, where it is named). Written with the deletion of the rows.

    It is done twice, the second time when nobody can be at the deleted document any more.
    """

    __tablename__ = "vector_deletion"
    __table_args__ = (Index(None, "due_at"), Index(None, "organization_id", "due_at"))

    knowledge_base_id: UUID
    document_id: UUID | None = None
    model: str | None = None
    due_at: datetime = Field(default_factory=now)


class VectorUpkeep(TenantTable, table=True):
    """An organization's vectors have changed and are to be compacted and indexed; `id` is the organization's."""

    __tablename__ = "vector_upkeep"
    __table_args__ = (Index(None, "due_at"),)

    due_at: datetime
