"""Tables of knowledge bases, documents, and pending work in the vector store."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, index_due, now, refer_to
from switchboard.foundation.web.row_counts import RowCounter


class KnowledgeBase(TenantTable, table=True):
    """A collection of documents with vectors of one model. The model's fields are null until there is a document."""

    __tablename__ = "knowledge_base"
    __row_counter__ = RowCounter()
    __table_args__ = (UniqueConstraint("organization_id", "id"), Index(None, "organization_id", "created_at", "id"))

    name: str
    description: str = ""
    embedding_provider: str | None = None
    embedding_model: str | None = None
    embedding_dimension: int | None = None
    updated_at: datetime = Field(default_factory=now)


class KnowledgeDocument(TenantTable, table=True):
    """A document. `file_size` is in bytes as sent.

    While it is `processing`, `process_after` is the end of the current worker's lease, and `attempts` counts the
    attempts. `request_key` is the digest of a request with an Idempotency-Key: a repetition after a crash finds its
    document.
    """

    __tablename__ = "knowledge_document"
    __row_counter__ = RowCounter("knowledge_base_id")
    __table_args__ = (
        refer_to("knowledge_base", "knowledge_base_id"),
        UniqueConstraint("organization_id", "id"),
        UniqueConstraint("organization_id", "request_key"),
        Index(None, "organization_id", "knowledge_base_id", "created_at", "id"),
        index_due("ix_knowledge_document_processing", "process_after", "status = 'processing'"),
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
    """A document's text, in a table of its own because lists do not read it; `id` is the document's. Vectors can be
    rebuilt from it.
    """

    __tablename__ = "knowledge_text"
    __table_args__ = (refer_to("knowledge_document", "id"),)

    content: str


class VectorDeletion(TenantTable, table=True):
    """Vectors to delete: a document's, or a knowledge base's (of one model, if given). Saved with the deletion of
    the rows.

    The deletion runs twice, the second time when no worker can be processing the deleted document any more.
    """

    __tablename__ = "vector_deletion"
    __table_args__ = (
        index_due("ix_vector_deletion_due", "due_at"),
        Index(None, "organization_id", "due_at"),
    )

    knowledge_base_id: UUID
    document_id: UUID | None = None
    model: str | None = None
    due_at: datetime = Field(default_factory=now)


class VectorMaintenance(TenantTable, table=True):
    """Marks an organization, by its `id`, whose vectors have changed and must be compacted and indexed."""

    __tablename__ = "vector_maintenance"
    __table_args__ = (index_due("ix_vector_maintenance_due", "due_at"),)

    due_at: datetime
