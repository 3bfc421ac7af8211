"""Add documents: the text is saved first, then indexed while the client waits or by a worker."""

import hashlib
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.idempotency import KEPT_FOR
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.resources.billing import ledger
from switchboard.resources.knowledge_bases.extraction import Extracted, extract_file, extract_text
from switchboard.resources.knowledge_bases.indexing import LEASE, DocumentIndexer
from switchboard.resources.knowledge_bases.models import KnowledgeBase, KnowledgeDocument, KnowledgeText
from switchboard.resources.knowledge_bases.queries import find_document_of_request, find_document_with_text
from switchboard.resources.knowledge_bases.schemas import DocumentCreate


async def add_document(
    indexer: DocumentIndexer,
    organization_id: UUID,
    base_id: UUID,
    data: DocumentCreate,
    *,
    idempotency_key: str | None = None,
    actor: str | None = None,
) -> KnowledgeDocument:
    """Add a document and index it; it is `ready`, or `failed` if a provider failed. A repeated request with the same
    key returns its document.

    Raises `NotFound` for the knowledge base, `InsufficientBalance`, and `ValidationFailed` for content that does not
    match its type.
    """
    extracted = await _extract_document(indexer.database, organization_id, base_id, data)
    request_key = None
    if idempotency_key is not None:
        request = f"{idempotency_key}\n{base_id}\n{data.model_dump_json()}"
        request_key = hashlib.sha256(request.encode()).digest()
    async with indexer.database.write(organization_id, actor=actor) as session:
        await lock_row(session, KnowledgeBase, base_id)
        document = await _find_or_save(session, base_id, data.filename, extracted, request_key=request_key)
    if document.status == "processing":
        await indexer.index_claimed_document(organization_id, document.id)
    async with indexer.database.read(organization_id) as session:
        return await get_row(session, KnowledgeDocument, document.id)


async def add_file(
    database: Database, organization_id: UUID, base_id: UUID, filename: str, data: bytes, *, actor: str | None = None
) -> KnowledgeDocument:
    """Add a document from a file of at most 5 MiB; it is `processing`, and a worker indexes it.

    Raises `NotFound` for the knowledge base, `InsufficientBalance`, and `ValidationFailed` for a file that cannot be
    read, or whose text the knowledge base has already.
    """
    await _require_place(database, organization_id, base_id)
    extracted = await extract_file(organization_id, filename, data)
    return await _save_for_worker(database, organization_id, base_id, filename, extracted, actor=actor)


async def add_text(
    database: Database, organization_id: UUID, base_id: UUID, data: DocumentCreate, *, actor: str | None = None
) -> KnowledgeDocument:
    """Add a document that a worker indexes. Raises what `add_document` raises, and `ValidationFailed` for a text that
    the knowledge base has already.
    """
    extracted = await _extract_document(database, organization_id, base_id, data)
    return await _save_for_worker(database, organization_id, base_id, data.filename, extracted, actor=actor)


async def _extract_document(
    database: Database, organization_id: UUID, base_id: UUID, data: DocumentCreate
) -> Extracted:
    await _require_place(database, organization_id, base_id)
    return await extract_text(organization_id, data.filename, data.content, data.content_type)


async def _require_place(database: Database, organization_id: UUID, base_id: UUID) -> None:
    """Raise `NotFound` or `InsufficientBalance` before a document is read, which takes time."""
    async with database.read(organization_id) as session:
        await get_row(session, KnowledgeBase, base_id)
        await ledger.require_solvency(session)


async def _save_for_worker(
    database: Database, organization_id: UUID, base_id: UUID, filename: str, extracted: Extracted, *, actor: str | None
) -> KnowledgeDocument:
    async with database.write(organization_id, actor=actor) as session:
        await lock_row(session, KnowledgeBase, base_id)
        if (known := await find_document_with_text(session, base_id, extracted.text, size=extracted.size)) is not None:
            raise ValidationFailed.field("content", f"has the same text as {known}, which is in this knowledge base")
        document = await _save_document(session, base_id, filename, extracted)
        session.wake("process_document")
        return document


async def _find_or_save(
    session: WriteSession, base_id: UUID, filename: str, extracted: Extracted, *, request_key: bytes | None
) -> KnowledgeDocument:
    if request_key and (known := await find_document_of_request(session, request_key)) is not None:
        if known.created_at > now() - KEPT_FOR:
            return known
        known.request_key = None
    document = await _save_document(session, base_id, filename, extracted)
    document.process_after, document.attempts, document.request_key = now() + LEASE, 1, request_key
    return document


async def _save_document(
    session: WriteSession, base_id: UUID, filename: str, extracted: Extracted
) -> KnowledgeDocument:
    """Save a document that any worker may index."""
    document = KnowledgeDocument(
        organization_id=session.organization_id,
        knowledge_base_id=base_id,
        filename=filename,
        content_type=extracted.content_type,
        file_size=extracted.size,
        process_after=now(),
    )
    session.add(document)
    await session.flush()  # The text refers to the document.
    session.add(KnowledgeText(id=document.id, organization_id=document.organization_id, content=extracted.text))
    record_audit(session, AuditAction.KNOWLEDGE_DOCUMENT_CREATED, document.id)
    return document
