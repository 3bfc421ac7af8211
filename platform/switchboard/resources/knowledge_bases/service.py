"""Business rules of knowledge bases and documents: the rows. The vector store follows them."""

from collections.abc import Collection, Iterable
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.web.errors import InvalidState, ValidationFailed
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.foundation.web.schemas import NO_ID, parse_id
from switchboard.resources.knowledge_bases.models import KnowledgeBase, KnowledgeDocument, KnowledgeText, VectorDeletion
from switchboard.resources.knowledge_bases.queries import list_knowledge_bases, lock_documents
from switchboard.resources.knowledge_bases.schemas import KnowledgeBaseCreate

LONG_SECONDS = 3600
"""Seconds that indexing a million passages or embedding a book may take."""


async def resolve_knowledge_bases(session: ReadSession, ids: Iterable[str] | None) -> list[KnowledgeBase]:
    """Return the knowledge bases of a request, or all by name. Raises `ValidationFailed` for an id that is not one
    of the organization's knowledge bases.
    """
    bases = await list_knowledge_bases(session)
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
    base = KnowledgeBase(organization_id=session.organization_id, **data.model_dump())
    session.add(base)
    record_audit(session, AuditAction.KNOWLEDGE_BASE_CREATED, base.id, fields=data.model_fields_set)
    return base


async def rename_knowledge_base(session: WriteSession, base_id: UUID, data: KnowledgeBaseCreate) -> KnowledgeBase:
    """Change a knowledge base's name and description. Raises `NotFound`."""
    base = await lock_row(session, KnowledgeBase, base_id)
    base.name, base.description, base.updated_at = data.name, data.description, now()
    record_audit(session, AuditAction.KNOWLEDGE_BASE_UPDATED, base.id, fields=data.model_fields_set)
    return base


async def delete_knowledge_base(session: WriteSession, base_id: UUID) -> None:
    """Delete a knowledge base with its documents, and schedule the deletion of their vectors. Raises `NotFound`."""
    base = await lock_row(session, KnowledgeBase, base_id)
    await session.delete(base)
    schedule_vector_deletion(session, base_id)
    record_audit(session, AuditAction.KNOWLEDGE_BASE_DELETED, base_id)


async def get_document_text(session: ReadSession, document_id: UUID) -> str:
    """Return a document's extracted text. Raises `NotFound`."""
    document = await get_row(session, KnowledgeDocument, document_id)
    return (await session.get_one(KnowledgeText, document.id)).content


async def retry_document(session: WriteSession, document_id: UUID) -> KnowledgeDocument:
    """Queue a failed document for another attempt. Raises `NotFound`, `InvalidState`."""
    document = await lock_row(session, KnowledgeDocument, document_id)
    if document.status != "failed":
        raise InvalidState(f"The document is {document.status}. Only a failed document can be retried.")
    document.status, document.error_message, document.attempts, document.process_after = "processing", None, 0, now()
    session.wake("process_document")
    record_audit(session, AuditAction.KNOWLEDGE_DOCUMENT_RETRIED, document.id)
    return document


async def reindex_documents(session: WriteSession, ids: Collection[UUID]) -> None:
    """Queue documents whose text has changed: their vectors are replaced."""
    for document in await lock_documents(session, ids):
        document.status, document.error_message, document.attempts = "processing", None, 0
        document.process_after = now()
        session.wake("process_document")


async def delete_document(session: WriteSession, document_id: UUID) -> None:
    """Delete a document, and schedule the deletion of its vectors. Raises `NotFound`."""
    document = await lock_row(session, KnowledgeDocument, document_id)
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
    session.wake("delete_vectors")
