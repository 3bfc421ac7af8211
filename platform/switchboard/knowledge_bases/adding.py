"""Adding a document: its text is written down first, then its passages are made findable while the client waits."""

import hashlib
from uuid import UUID

from sqlmodel import col
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.billing import ledger
from switchboard.database import new_id, now
from switchboard.knowledge_bases import processing
from switchboard.knowledge_bases import service as knowledge
from switchboard.knowledge_bases.extraction import Extracted, InvalidDocument, extract
from switchboard.knowledge_bases.models import KnowledgeDocument, KnowledgeText
from switchboard.knowledge_bases.schemas import DocumentCreate
from switchboard.runtime import Runtime
from switchboard.web.errors import ValidationFailed
from switchboard.web.idempotency import KEPT_FOR


async def add(
    runtime: Runtime, organization_id: UUID, base_id: UUID, data: DocumentCreate, *, idempotency_key: str | None = None
) -> KnowledgeDocument:
    """A new document, `ready`, or `failed` where a provider did. The same request with the same key finds the document that it made.

    Raises `NotFound` for the knowledge base, `InsufficientBalance`, and `ValidationFailed` for a content that is not what its type says.
    """
    async with runtime.database.tenant(organization_id) as session:
        await knowledge.get(session, base_id)
        await ledger.demand_solvency(session)
    try:
        extracted = await extract(data.filename, data.content, data.content_type)
    except InvalidDocument as error:
        raise ValidationFailed.field(error.field, str(error)) from None
    async with runtime.database.tenant(organization_id) as session:
        await knowledge.get(session, base_id, lock=True)
        document = await _written(session, base_id, data, extracted, request_key=_digest(base_id, data, idempotency_key))
    if document.status == "processing":
        await processing.process(runtime, organization_id, document.id)
    async with runtime.database.tenant(organization_id) as session:
        return await knowledge.get_document(session, document.id)


async def _written(
    session: AsyncSession, base_id: UUID, data: DocumentCreate, extracted: Extracted, *, request_key: bytes | None
) -> KnowledgeDocument:
    if request_key is not None:
        rows = knowledge.documents(session).where(col(KnowledgeDocument.request_key) == request_key)
        if (known := (await session.exec(rows)).one_or_none()) is not None:
            if known.created_at > now() - KEPT_FOR:
                return known
            known.request_key = None
            await session.flush()
    document = KnowledgeDocument(
        id=new_id(),
        organization_id=session.info["organization_id"],
        knowledge_base_id=base_id,
        filename=data.filename,
        content_type=extracted.content_type,
        file_size=extracted.size,
        process_after=now() + processing.LEASE,
        attempts=1,
        request_key=request_key,
    )
    session.add(document)
    await session.flush()
    session.add(KnowledgeText(id=document.id, organization_id=document.organization_id, content=extracted.text))
    return document


def _digest(base_id: UUID, data: DocumentCreate, idempotency_key: str | None) -> bytes | None:
    if idempotency_key is None:
        return None
    return hashlib.sha256(f"{idempotency_key}\n{base_id}\n{data.model_dump_json()}".encode()).digest()
