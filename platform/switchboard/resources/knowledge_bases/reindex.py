"""Rebuild all vectors from the stored text, after a change of the embedding model or the loss of the vector store.

Searches continue meanwhile. Vectors of another model are built beside the old ones, and the knowledge base switches
when all are there; vectors of the same model are replaced document by document.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from sqlmodel import col, delete

from switchboard.foundation.database import Database, TenantSession, now
from switchboard.plugin_sdk import ProviderError
from switchboard.resources.knowledge_bases import indexing
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.embedding import (
    EmbeddingModel,
    charge_embedding,
    embed_texts,
    get_embedding_model,
)
from switchboard.resources.knowledge_bases.models import KnowledgeBase, KnowledgeDocument, VectorDeletion

PROBE = "Which model is this?"


@dataclass(frozen=True, slots=True)
class ReindexResult:
    """Result for one knowledge base: `model` made its vectors; `error` is the reason why it stayed unchanged."""

    knowledge_base_id: UUID
    model: str
    documents: int
    passages: int
    error: str | None = None


async def reindex_knowledge_bases(indexer: indexing.DocumentIndexer, organization_id: UUID) -> list[ReindexResult]:
    """Rebuild the vectors of each of the organization's knowledge bases with its first embedding model.

    Raises `ProviderError` if there are some and the model does not answer.
    """
    async with indexer.database.tenant(organization_id) as session:
        bases = (
            await session.exec(knowledge.list_knowledge_bases(session).order_by(col(KnowledgeBase.created_at)))
        ).all()
    if not bases:
        return []
    probed = await embed_texts(indexer.providers, organization_id, [PROBE], purpose="document", model=None)
    await charge_embedding(indexer.database, organization_id, [probed.usage])
    return [await _reindex_base(indexer, organization_id, base.id, probed.model) for base in bases]


async def _reindex_base(
    indexer: indexing.DocumentIndexer, organization_id: UUID, base_id: UUID, model: EmbeddingModel
) -> ReindexResult:
    done: dict[UUID, indexing.IndexedDocument] = {}
    async with indexer.database.tenant(organization_id) as session:
        # A knowledge base may return to this model soon after leaving it: cancel the pending deletion of these vectors.
        left = (col(VectorDeletion.knowledge_base_id) == base_id, col(VectorDeletion.model) == model.label)
        await session.exec(delete(VectorDeletion).where(*left))
    try:
        while rest := await _find_rest_or_switch(indexer.database, organization_id, base_id, model, done):
            for document_id in rest:
                with suppress(indexing.DocumentDeleted):
                    done[document_id] = await indexer.index_document(organization_id, document_id, model)
    except ProviderError as error:
        return ReindexResult(base_id, model.label, len(done), _count_passages(done), error.message)
    return ReindexResult(base_id, model.label, len(done), _count_passages(done))


async def _find_rest_or_switch(
    database: Database,
    organization_id: UUID,
    base_id: UUID,
    model: EmbeddingModel,
    done: dict[UUID, indexing.IndexedDocument],
) -> Sequence[UUID]:
    """Return the documents that remain; without any, switch the knowledge base to vectors of this model.

    A document that is being processed sees the switch when it finishes, and is processed again.
    """
    async with database.tenant(organization_id) as session:
        base = (
            await session.exec(
                knowledge.list_knowledge_bases(session).where(col(KnowledgeBase.id) == base_id).with_for_update()
            )
        ).one_or_none()
        if base is None:
            return []
        whole = knowledge.list_documents(session, base_id).where(col(KnowledgeDocument.status) != "processing")
        documents = (await session.exec(whole.order_by(col(KnowledgeDocument.created_at)))).all()
        rest = [document.id for document in documents if document.id not in done]
        if not rest:
            await _switch_model(session, base, model)
            for document in documents:
                document.status, document.error_message, document.process_after = "ready", None, None
                document.chunk_count = done[document.id].chunk_count
    return rest


async def _switch_model(session: TenantSession, base: KnowledgeBase, model: EmbeddingModel) -> None:
    old = get_embedding_model(base)
    base.embedding_provider, base.embedding_model, base.embedding_dimension = (
        model.provider,
        model.name,
        model.dimension,
    )
    base.updated_at = now()
    if old is not None and old.label != model.label:
        knowledge.schedule_vector_deletion(session, base.id, model=old.label)
    await knowledge.schedule_vector_maintenance(session)


def _count_passages(done: dict[UUID, indexing.IndexedDocument]) -> int:
    return sum(indexed.chunk_count for indexed in done.values())
