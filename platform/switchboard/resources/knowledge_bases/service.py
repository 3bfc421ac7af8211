"""Business rules of knowledge bases and documents: the rows. The vector store follows them."""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, is_among, new_id, now
from switchboard.foundation.web.errors import InvalidState, ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import NO_ID, parse_id
from switchboard.resources.knowledge_bases.models import (
    KnowledgeBase,
    KnowledgeDocument,
    KnowledgeText,
    VectorDeletion,
    VectorMaintenance,
)
from switchboard.resources.knowledge_bases.schemas import KnowledgeBaseCreate

UPKEEP_AFTER = timedelta(minutes=1)
LONG_SECONDS = 3600
"""Seconds that indexing a million passages or embedding a book may take."""


async def list_knowledge_bases_using(session: ReadSession, embedding_provider: str) -> list[KnowledgeBase]:
    """List the organization's knowledge bases with vectors of an embedding provider."""
    rows = session.select(KnowledgeBase).where(col(KnowledgeBase.embedding_provider) == embedding_provider)
    return list(await session.exec(rows.order_by(col(KnowledgeBase.created_at))))


async def get_knowledge_base(session: ReadSession, base_id: UUID, *, lock: bool = False) -> KnowledgeBase:
    """Return a knowledge base. Raises `NotFound`."""
    return await get_row(session, KnowledgeBase, base_id, lock=lock)


async def resolve_knowledge_bases(session: ReadSession, ids: Iterable[str] | None) -> list[KnowledgeBase]:
    """Return the knowledge bases of a request, or all by name. Raises `ValidationFailed` for an id that is not one
    of the organization's knowledge bases.
    """
    rows = session.select(KnowledgeBase).order_by(func.lower(KnowledgeBase.name), col(KnowledgeBase.id))
    bases = list(await session.exec(rows))
    if ids is None:
        return bases
    known = {base.id: base for base in bases}
    wanted = {}
    for given in ids:
        base = known.get(parse_id(given) or NO_ID)
        if base is None:
            raise ValidationFailed.field("knowledge_base_ids", f"there is no knowledge base {given}")
        wanted[base.id] = base
    return list(wanted.values())


async def create_knowledge_base(session: WriteSession, data: KnowledgeBaseCreate) -> KnowledgeBase:
    """Create a knowledge base. Its first document determines the embedding model."""
    base = KnowledgeBase(id=new_id(), organization_id=session.organization_id, **data.model_dump())
    session.add(base)
    record_audit(session, AuditAction.KNOWLEDGE_BASE_CREATED, base.id, fields=data.model_fields_set)
    return base


async def rename_knowledge_base(session: WriteSession, base_id: UUID, data: KnowledgeBaseCreate) -> KnowledgeBase:
    """Change a knowledge base's name and description. Raises `NotFound`."""
    base = await get_knowledge_base(session, base_id, lock=True)
    base.name, base.description, base.updated_at = data.name, data.description, now()
    record_audit(session, AuditAction.KNOWLEDGE_BASE_UPDATED, base.id, fields=data.model_fields_set)
    return base


async def delete_knowledge_base(session: WriteSession, base_id: UUID) -> None:
    """Delete a knowledge base with its documents, and schedule the deletion of their vectors. Raises `NotFound`."""
    base = await get_knowledge_base(session, base_id, lock=True)
    await session.delete(base)
    schedule_vector_deletion(session, base_id)
    record_audit(session, AuditAction.KNOWLEDGE_BASE_DELETED, base_id)


def list_documents(session: ReadSession, base_id: UUID | None = None) -> SelectOfScalar[KnowledgeDocument]:
    """Select the organization's documents, or those of one knowledge base."""
    rows = session.select(KnowledgeDocument)
    return rows if base_id is None else rows.where(col(KnowledgeDocument.knowledge_base_id) == base_id)


async def get_document(session: ReadSession, document_id: UUID, *, lock: bool = False) -> KnowledgeDocument:
    """Return a document. Raises `NotFound`."""
    return await get_row(session, KnowledgeDocument, document_id, lock=lock)


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


async def get_document_text(session: ReadSession, document_id: UUID) -> str:
    """Return a document's extracted text. Raises `NotFound`."""
    document = await get_document(session, document_id)
    return (await session.get_one(KnowledgeText, document.id)).content


async def retry_document(session: WriteSession, document_id: UUID) -> KnowledgeDocument:
    """Queue a failed document for another attempt. Raises `NotFound`, `InvalidState`."""
    document = await get_document(session, document_id, lock=True)
    if document.status != "failed":
        raise InvalidState(f"The document is {document.status}. Only a failed document can be retried.")
    document.status, document.error_message, document.attempts, document.process_after = "processing", None, 0, now()
    wake_document_job(session, document)
    record_audit(session, AuditAction.KNOWLEDGE_DOCUMENT_RETRIED, document.id)
    return document


async def reindex_documents(session: WriteSession, ids: Collection[UUID]) -> None:
    """Queue documents whose text has changed: their vectors are replaced."""
    rows = list_documents(session).where(is_among(col(KnowledgeDocument.id), ids))
    for document in (await session.exec(rows.with_for_update())).all():
        document.status, document.error_message, document.attempts = "processing", None, 0
        document.process_after = now()
        wake_document_job(session, document)


def wake_document_job(session: WriteSession, document: KnowledgeDocument) -> None:
    """Wake a worker for a document once the transaction commits."""
    session.wake(
        "process_document",
        timeout_seconds=LONG_SECONDS,
        organization_id=document.organization_id,
        document_id=document.id,
    )


async def delete_document(session: WriteSession, document_id: UUID) -> None:
    """Delete a document, and schedule the deletion of its vectors. Raises `NotFound`."""
    document = await get_document(session, document_id, lock=True)
    await session.delete(document)
    schedule_vector_deletion(session, document.knowledge_base_id, document_id=document_id)
    record_audit(session, AuditAction.KNOWLEDGE_DOCUMENT_DELETED, document_id)


def schedule_vector_deletion(
    session: WriteSession, base_id: UUID, *, document_id: UUID | None = None, model: str | None = None
) -> None:
    """Schedule the deletion of vectors once the transaction commits."""
    organization_id = session.organization_id
    session.add(
        VectorDeletion(organization_id=organization_id, knowledge_base_id=base_id, document_id=document_id, model=model)
    )
    session.wake("delete_vectors", organization_id=organization_id)


async def schedule_vector_maintenance(session: WriteSession) -> None:
    """Schedule the compaction and indexing of the organization's vectors."""
    organization_id, due_at = session.organization_id, now() + UPKEEP_AFTER
    fresh = VectorMaintenance(id=organization_id, organization_id=organization_id, due_at=due_at)
    scheduled = insert(VectorMaintenance).values(fresh.model_dump())
    await session.exec(scheduled.on_conflict_do_update(index_elements=["id"], set_={"due_at": due_at}))
