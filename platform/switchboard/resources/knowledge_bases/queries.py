"""Statements about knowledge bases, their documents, and the upkeep of their vectors."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import func, or_, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, delete, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, WriteSession, is_among, now
from switchboard.foundation.work import DueRows
from switchboard.resources.knowledge_bases.models import (
    KnowledgeBase,
    KnowledgeDocument,
    KnowledgeText,
    VectorDeletion,
    VectorMaintenance,
)

UPKEEP_AFTER = timedelta(minutes=1)
MOST_DELETIONS: Final = 50


async def list_knowledge_bases(session: ReadSession) -> list[KnowledgeBase]:
    """List the organization's knowledge bases, by name."""
    rows = session.select(KnowledgeBase).order_by(func.lower(KnowledgeBase.name), col(KnowledgeBase.id))
    return list(await session.exec(rows))


async def list_oldest_knowledge_bases(
    session: ReadSession, embedding_provider: str | None = None
) -> list[KnowledgeBase]:
    """List the organization's knowledge bases, or those with vectors of an embedding provider, oldest first."""
    rows = session.select(KnowledgeBase)
    if embedding_provider is not None:
        rows = rows.where(col(KnowledgeBase.embedding_provider) == embedding_provider)
    return list(await session.exec(rows.order_by(col(KnowledgeBase.created_at))))


async def list_knowledge_bases_by_id(session: ReadSession, ids: Collection[UUID]) -> list[KnowledgeBase]:
    """List the knowledge bases with these ids, in any order."""
    return list(await session.exec(session.select(KnowledgeBase).where(is_among(col(KnowledgeBase.id), ids))))


def select_documents(session: ReadSession, base_id: UUID | None = None) -> SelectOfScalar[KnowledgeDocument]:
    """Select the organization's documents, or those of one knowledge base."""
    rows = session.select(KnowledgeDocument)
    return rows if base_id is None else rows.where(col(KnowledgeDocument.knowledge_base_id) == base_id)


class KnowledgeBaseSummary(NamedTuple):
    """Number of documents and passages in a knowledge base, and of failed documents."""

    documents: int
    passages: int
    failed: int


async def summarize_contents(session: ReadSession) -> dict[UUID, KnowledgeBaseSummary]:
    """Summarize the organization's knowledge bases that have documents, by id."""
    ours = session.owns(KnowledgeDocument)
    base, passages = col(KnowledgeDocument.knowledge_base_id), func.coalesce(func.sum(KnowledgeDocument.chunk_count), 0)
    failed = func.count().filter(col(KnowledgeDocument.status) == "failed")
    rows = await session.exec(select(base, func.count(), passages, failed).where(ours).group_by(base))
    return {base_id: KnowledgeBaseSummary(*numbers) for base_id, *numbers in rows}


async def schedule_vector_maintenance(session: WriteSession) -> None:
    """Schedule the compaction and indexing of the organization's vectors."""
    organization_id, due_at = session.organization_id, now() + UPKEEP_AFTER
    fresh = VectorMaintenance(id=organization_id, organization_id=organization_id, due_at=due_at)
    scheduled = insert(VectorMaintenance).values(fresh.model_dump())
    await session.exec(scheduled.on_conflict_do_update(index_elements=["id"], set_={"due_at": due_at}))


async def find_document_with_text(session: ReadSession, base_id: UUID, text: str, *, size: int) -> str | None:
    """Return the name of a document of the knowledge base with a text, of `size` bytes; None if there is none."""
    document, stored = KnowledgeDocument, KnowledgeText
    rows = (
        select(document.filename)
        .join(stored, col(stored.id) == col(document.id))
        .where(session.owns(document), col(document.knowledge_base_id) == base_id, col(document.status) != "failed")
        .where(col(document.file_size) == size, col(stored.content) == text)
    )
    return (await session.exec(rows.limit(1))).first()


async def find_document_of_request(session: ReadSession, request_key: bytes) -> KnowledgeDocument | None:
    """Return the document that a request with an Idempotency-Key has added; None if there is none."""
    rows = session.select(KnowledgeDocument).where(col(KnowledgeDocument.request_key) == request_key)
    return (await session.exec(rows)).one_or_none()


async def find_document_content(session: ReadSession, document_id: UUID) -> tuple[UUID, str] | None:
    """Return the knowledge base of a document and its text; None if it is deleted."""
    document, stored = KnowledgeDocument, KnowledgeText
    rows = select(document.knowledge_base_id, stored.content).join(stored, col(stored.id) == col(document.id))
    return (await session.exec(rows.where(col(document.id) == document_id))).one_or_none()


async def list_ready_documents(session: ReadSession, ids: Collection[UUID]) -> Sequence[KnowledgeDocument]:
    """List those of the documents that are ready."""
    rows = select_documents(session).where(
        is_among(col(KnowledgeDocument.id), ids), col(KnowledgeDocument.status) == "ready"
    )
    return (await session.exec(rows)).all()


async def list_processed_documents(session: ReadSession, base_id: UUID) -> Sequence[KnowledgeDocument]:
    """List the documents of a knowledge base that are not being processed, oldest first."""
    rows = select_documents(session, base_id).where(col(KnowledgeDocument.status) != "processing")
    return (await session.exec(rows.order_by(col(KnowledgeDocument.created_at)))).all()


async def lock_documents(session: WriteSession, ids: Collection[UUID]) -> Sequence[KnowledgeDocument]:
    rows = select_documents(session).where(is_among(col(KnowledgeDocument.id), ids))
    return (await session.exec(rows.with_for_update())).all()


async def lock_interrupted_document(session: WriteSession, document_id: UUID) -> KnowledgeDocument | None:
    """Lock and return a document whose processing was interrupted; None otherwise, or if it is locked."""
    rows = session.select(KnowledgeDocument).where(
        col(KnowledgeDocument.id) == document_id, col(KnowledgeDocument.status) == "processing"
    )
    free = or_(col(KnowledgeDocument.process_after).is_(None), col(KnowledgeDocument.process_after) <= now())
    return (await session.exec(rows.where(free).with_for_update(skip_locked=True))).one_or_none()


async def extend_processing(session: WriteSession, document_id: UUID, until: datetime) -> bool:
    """Extend the lease of the worker that processes a document; return False if the document is deleted."""
    extended = update(KnowledgeDocument).where(col(KnowledgeDocument.id) == document_id).values(process_after=until)
    return (await session.exec(extended)).rowcount > 0


async def mark_document_ready(session: WriteSession, document_id: UUID, *, chunk_count: int) -> None:
    """Make a document `ready`."""
    ready = {"status": "ready", "chunk_count": chunk_count, "error_message": None, "process_after": None}
    await session.exec(update(KnowledgeDocument).where(col(KnowledgeDocument.id) == document_id).values(ready))


async def mark_document_failed(session: WriteSession, document_id: UUID, error_message: str) -> None:
    """Make a document that is being processed `failed`; one that is `ready` stays so."""
    failed = update(KnowledgeDocument).values(status="failed", error_message=error_message, process_after=None)
    processing = (col(KnowledgeDocument.id) == document_id, col(KnowledgeDocument.status) == "processing")
    await session.exec(failed.where(*processing))


async def lock_due_deletions(session: WriteSession) -> Sequence[VectorDeletion]:
    """Lock and return the deletions of vectors that are due, the longest due first, without those that are locked."""
    rows = session.select(VectorDeletion).where(col(VectorDeletion.due_at) <= now())
    due = rows.order_by(col(VectorDeletion.due_at)).limit(MOST_DELETIONS)
    return (await session.exec(due.with_for_update(skip_locked=True))).all()


async def finish_vector_deletion(session: WriteSession, deletion_id: UUID, *, again_at: datetime | None) -> None:
    """Delete the row of a deletion of vectors, or have it run again at a moment."""
    mine = col(VectorDeletion.id) == deletion_id
    again = update(VectorDeletion).where(mine).values(due_at=again_at)
    await session.exec(again if again_at is not None else delete(VectorDeletion).where(mine))


async def delete_vector_deletions(session: WriteSession, base_id: UUID, *, model: str) -> None:
    """Delete the pending deletions of a knowledge base's vectors of a model."""
    left = (col(VectorDeletion.knowledge_base_id) == base_id, col(VectorDeletion.model) == model)
    await session.exec(delete(VectorDeletion).where(*left))


async def lock_due_maintenance(session: WriteSession) -> VectorMaintenance | None:
    """Lock and return the mark that the organization's vectors are due for maintenance; None otherwise."""
    is_due = (col(VectorMaintenance.id) == session.organization_id, col(VectorMaintenance.due_at) <= now())
    due = session.select(VectorMaintenance).where(*is_due).with_for_update(skip_locked=True)
    return (await session.exec(due)).one_or_none()


async def delete_maintenance(session: WriteSession, *, due_at: datetime) -> None:
    """Delete the mark for maintenance, unless a change meanwhile has made it due again."""
    unchanged = (col(VectorMaintenance.id) == session.organization_id, col(VectorMaintenance.due_at) == due_at)
    await session.exec(delete(VectorMaintenance).where(*unchanged))


INTERRUPTED_DOCUMENTS: Final = DueRows(
    KnowledgeDocument, "process_after", (col(KnowledgeDocument.status) == "processing",)
)
VECTORS_TO_DELETE: Final = DueRows(VectorDeletion, "due_at")
VECTORS_TO_MAINTAIN: Final = DueRows(VectorMaintenance, "due_at")
