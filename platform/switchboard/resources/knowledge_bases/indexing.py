"""Indexing: split a document into passages, embed them, store them. It can restart at any point, so a crash costs
only time.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from sqlalchemy import or_, update
from sqlmodel import col, select

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, now
from switchboard.foundation.web.errors import NotFound
from switchboard.plugin_sdk import Chunk, ProviderError, VectorStore
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.chunking import split_passages
from switchboard.resources.knowledge_bases.embedding import (
    EmbeddingModel,
    charge_embedding,
    embed_texts,
    get_embedding_model,
)
from switchboard.resources.knowledge_bases.models import KnowledgeDocument, KnowledgeText

logger = structlog.get_logger()
LEASE = timedelta(minutes=2)
"""Seconds that a worker may take for one batch of passages."""
MOST_ATTEMPTS = 3
BATCH = 32


class DocumentDeleted(Exception):
    """The document was deleted while it was being processed."""


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """Content added to the vector store: the knowledge base, the model, and the number of passages."""

    knowledge_base_id: UUID
    model: EmbeddingModel
    chunk_count: int


@dataclass(frozen=True, slots=True)
class DocumentIndexer:
    """Puts the passages of documents into the vector store."""

    database: Database
    providers: Providers

    async def index_claimed_document(self, organization_id: UUID, document_id: UUID) -> None:
        """Index a document that this process has claimed: it becomes `ready`, or `failed` with the provider's
        message.
        """
        try:
            done = False
            while not done:
                done = await self._attempt(organization_id, document_id)
        except ProviderError as error:
            await self.record_failure(organization_id, document_id, error.message)
        except DocumentDeleted:
            logger.info("a document was deleted while it was processed", document_id=str(document_id))

    async def claim_document(self, organization_id: UUID, document_id: UUID) -> bool:
        """Claim a document whose processing was interrupted; return False if there is nothing to do. After three
        attempts it is `failed`.
        """
        async with self.database.tenant(organization_id) as session:
            rows = knowledge.list_documents(session).where(
                col(KnowledgeDocument.id) == document_id, col(KnowledgeDocument.status) == "processing"
            )
            free = or_(col(KnowledgeDocument.process_after).is_(None), col(KnowledgeDocument.process_after) <= now())
            document = (await session.exec(rows.where(free).with_for_update(skip_locked=True))).one_or_none()
            if document is None:
                return False
            if document.attempts >= MOST_ATTEMPTS:
                document.status, document.error_message = (
                    "failed",
                    f"Processing was interrupted {MOST_ATTEMPTS} times. The document may be too large.",
                )
                return False
            document.attempts += 1
            document.process_after = now() + LEASE
            return True

    async def record_failure(self, organization_id: UUID, document_id: UUID, message: str) -> None:
        """Record why a document could not be processed. A document that is `ready` stays so."""
        async with self.database.tenant(organization_id) as session:
            processing = (col(KnowledgeDocument.id) == document_id, col(KnowledgeDocument.status) == "processing")
            await session.exec(
                update(KnowledgeDocument)
                .where(*processing)
                .values(status="failed", error_message=message, process_after=None)
            )

    async def index_document(
        self, organization_id: UUID, document_id: UUID, model: EmbeddingModel | None
    ) -> IndexedDocument:
        """Store a document's passages in the vector store, embedded by this model or by the organization's first
        choice.

        No transaction is open meanwhile. Raises `ProviderError`, and `DocumentDeleted` if the document is gone.
        """
        base_id, text = await self._load_content(organization_id, document_id)
        cut = await asyncio.to_thread(split_passages, text)
        chunks: list[Chunk] = []
        for start in range(0, len(cut), BATCH):
            part = cut[start : start + BATCH]
            embedded = await embed_texts(self.providers, organization_id, part, purpose="document", model=model)
            await charge_embedding(self.database, organization_id, [embedded.usage])
            model = embedded.model
            chunks += [
                Chunk(base_id, document_id, start + place, *both)
                for place, both in enumerate(zip(part, embedded.vectors, strict=True))
            ]
            await self._renew_claim(organization_id, document_id)
        if model is None:
            raise ProviderError("the document has no text", retryable=False)
        async with self.providers.use(organization_id, VectorStore) as store:
            await store.put(organization_id, model.label, chunks)
        return IndexedDocument(base_id, model, len(chunks))

    async def mark_ready(self, organization_id: UUID, document_id: UUID, indexed: IndexedDocument) -> bool:
        """Make an indexed document `ready`; return False if its knowledge base has vectors of another model, so that it
        must be indexed again.
        """
        async with self.database.tenant(organization_id) as session:
            try:
                document = await knowledge.get_document(session, document_id)
                base = await knowledge.get_knowledge_base(session, document.knowledge_base_id, lock=True)
            except NotFound:
                knowledge.schedule_vector_deletion(session, indexed.knowledge_base_id, document_id=document_id)
                return True
            if get_embedding_model(base) is None:
                base.embedding_provider, base.embedding_model = indexed.model.provider, indexed.model.name
                base.embedding_dimension = indexed.model.dimension
            elif get_embedding_model(base) != indexed.model:
                knowledge.schedule_vector_deletion(session, base.id, model=indexed.model.label)
                return False
            ready = {
                "status": "ready",
                "chunk_count": indexed.chunk_count,
                "error_message": None,
                "process_after": None,
            }
            await session.exec(update(KnowledgeDocument).where(col(KnowledgeDocument.id) == document_id).values(ready))
            await knowledge.schedule_vector_maintenance(session)
            return True

    async def _attempt(self, organization_id: UUID, document_id: UUID) -> bool:
        async with self.database.tenant(organization_id) as session:
            try:
                document = await knowledge.get_document(session, document_id)
                base = await knowledge.get_knowledge_base(session, document.knowledge_base_id)
            except NotFound:
                raise DocumentDeleted from None
        indexed = await self.index_document(organization_id, document_id, get_embedding_model(base))
        return await self.mark_ready(organization_id, document_id, indexed)

    async def _load_content(self, organization_id: UUID, document_id: UUID) -> tuple[UUID, str]:
        async with self.database.tenant(organization_id) as session:
            both = select(KnowledgeDocument.knowledge_base_id, KnowledgeText.content).join(
                KnowledgeText, col(KnowledgeText.id) == col(KnowledgeDocument.id)
            )
            row = (await session.exec(both.where(col(KnowledgeDocument.id) == document_id))).one_or_none()
        if row is None:
            raise DocumentDeleted
        return row

    async def _renew_claim(self, organization_id: UUID, document_id: UUID) -> None:
        """Renew the claim of a document. Raises `DocumentDeleted`."""
        async with self.database.tenant(organization_id) as session:
            kept = (
                update(KnowledgeDocument)
                .where(col(KnowledgeDocument.id) == document_id)
                .values(process_after=now() + LEASE)
            )
            if (await session.exec(kept)).rowcount == 0:
                raise DocumentDeleted
