"""Indexing: split a document into passages, embed them, store them. It can restart at any point, so a crash costs
only time.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, now
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.plugin_sdk import Chunk, ProviderError, VectorStore
from switchboard.resources.knowledge_bases import queries
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.chunking import split_passages
from switchboard.resources.knowledge_bases.embedding import (
    EmbeddingModel,
    charge_embedding,
    embed_texts,
    get_embedding_model,
    set_embedding_model,
)
from switchboard.resources.knowledge_bases.models import KnowledgeBase, KnowledgeDocument

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
        """Index a document that this process claimed: it becomes `ready`, or `failed` with the provider's message."""
        try:
            is_ready = False
            while not is_ready:
                async with self.database.read(organization_id) as session:
                    document = await get_row(session, KnowledgeDocument, document_id)
                    base = await get_row(session, KnowledgeBase, document.knowledge_base_id)
                indexed = await self.index_document(organization_id, document_id, get_embedding_model(base))
                is_ready = await self.mark_ready(organization_id, document_id, indexed)
        except ProviderError as error:
            async with self.database.write(organization_id) as session:
                await queries.mark_document_failed(session, document_id, error.message)
        except (NotFound, DocumentDeleted):
            logger.info("a document was deleted while it was processed", document_id=str(document_id))

    async def claim_document(self, organization_id: UUID, document_id: UUID) -> bool:
        """Claim a document whose processing was interrupted; return False if there is nothing to do. After three
        attempts it is `failed`.
        """
        async with self.database.write(organization_id) as session:
            document = await queries.lock_interrupted_document(session, document_id)
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

    async def index_document(
        self, organization_id: UUID, document_id: UUID, model: EmbeddingModel | None
    ) -> IndexedDocument:
        """Store a document's passages in the vector store, embedded by this model or by the organization's first
        choice.

        No transaction is open meanwhile. Raises `ProviderError`, and `DocumentDeleted` if the document is gone.
        """
        async with self.database.read(organization_id) as session:
            found = await queries.find_document_content(session, document_id)
        if found is None:
            raise DocumentDeleted
        base_id, text = found
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
            async with self.database.write(organization_id) as session:
                if not await queries.extend_processing(session, document_id, now() + LEASE):
                    raise DocumentDeleted
        if model is None:
            raise ProviderError("the document has no text", retryable=False)
        async with self.providers.use(organization_id, VectorStore) as store:
            await store.put(organization_id, model.label, chunks)
        return IndexedDocument(base_id, model, len(chunks))

    async def mark_ready(self, organization_id: UUID, document_id: UUID, indexed: IndexedDocument) -> bool:
        """Make an indexed document `ready`; return False if its knowledge base has vectors of another model, so that it
        must be indexed again.
        """
        async with self.database.write(organization_id) as session:
            try:
                document = await get_row(session, KnowledgeDocument, document_id)
                base = await lock_row(session, KnowledgeBase, document.knowledge_base_id)
            except NotFound:
                knowledge.schedule_vector_deletion(session, indexed.knowledge_base_id, document_id=document_id)
                return True
            if get_embedding_model(base) is None:
                set_embedding_model(base, indexed.model)
            elif get_embedding_model(base) != indexed.model:
                knowledge.schedule_vector_deletion(session, base.id, model=indexed.model.label)
                return False
            await queries.mark_document_ready(session, document_id, chunk_count=indexed.chunk_count)
            await queries.schedule_vector_maintenance(session)
            return True


# Rebuilding of all vectors from the stored text, after a change of the embedding model or the loss of the vector store.
#
# Searches continue meanwhile. Vectors of another model are built beside the old ones, and the knowledge base switches
# when all are there; vectors of the same model are replaced document by document.

PROBE = "Which model is this?"


@dataclass(frozen=True, slots=True)
class ReindexResult:
    """Result for one knowledge base: `model` made its vectors; `error` is the reason why it stayed unchanged."""

    knowledge_base_id: UUID
    model: str
    documents: int
    passages: int
    error: str | None = None


async def reindex_knowledge_bases(indexer: DocumentIndexer, organization_id: UUID) -> list[ReindexResult]:
    """Rebuild the vectors of each of the organization's knowledge bases with its first embedding model.

    Raises `ProviderError` if there are some and the model does not answer.
    """
    async with indexer.database.read(organization_id) as session:
        bases = await queries.list_oldest_knowledge_bases(session)
    if not bases:
        return []
    probed = await embed_texts(indexer.providers, organization_id, [PROBE], purpose="document", model=None)
    await charge_embedding(indexer.database, organization_id, [probed.usage])
    return [await _reindex_base(indexer, organization_id, base.id, probed.model) for base in bases]


async def _reindex_base(
    indexer: DocumentIndexer, organization_id: UUID, base_id: UUID, model: EmbeddingModel
) -> ReindexResult:
    done: dict[UUID, IndexedDocument] = {}
    fault = None
    async with indexer.database.write(organization_id) as session:
        # A knowledge base may return to this model soon after leaving it: cancel the pending deletion of these vectors.
        await queries.delete_vector_deletions(session, base_id, model=model.label)
    try:
        while rest := await _find_rest_or_switch(indexer.database, organization_id, base_id, model, done):
            for document_id in rest:
                with suppress(DocumentDeleted):
                    done[document_id] = await indexer.index_document(organization_id, document_id, model)
    except ProviderError as error:
        fault = error.message
    passages = sum(indexed.chunk_count for indexed in done.values())
    return ReindexResult(base_id, model.label, len(done), passages, fault)


async def _find_rest_or_switch(
    database: Database,
    organization_id: UUID,
    base_id: UUID,
    model: EmbeddingModel,
    done: dict[UUID, IndexedDocument],
) -> Sequence[UUID]:
    """Return the documents that remain; without any, switch the knowledge base to vectors of this model.

    A document that is being processed sees the switch when it finishes, and is processed again.
    """
    async with database.write(organization_id) as session:
        base = await session.lock(KnowledgeBase, base_id)
        if base is None:
            return []
        documents = await queries.list_processed_documents(session, base_id)
        rest = [document.id for document in documents if document.id not in done]
        if not rest:
            old = get_embedding_model(base)
            if old is not None and old.label != model.label:
                knowledge.schedule_vector_deletion(session, base.id, model=old.label)
            set_embedding_model(base, model)
            base.updated_at = now()
            await queries.schedule_vector_maintenance(session)
            for document in documents:
                document.status, document.error_message, document.process_after = "ready", None, None
                document.chunk_count = done[document.id].chunk_count
    return rest
