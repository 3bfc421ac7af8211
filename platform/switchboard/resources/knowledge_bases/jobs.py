"""Jobs of knowledge bases: index documents whose processing was interrupted, and maintain the vector store."""

from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, now
from switchboard.foundation.work import Work
from switchboard.plugin_sdk import ProviderError, VectorStore
from switchboard.resources.knowledge_bases import indexing, queries
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.embedding import get_embedding_model
from switchboard.resources.knowledge_bases.models import VectorDeletion

logger = structlog.get_logger()
DELETION_LEASE: Final = timedelta(minutes=2)
MAINTENANCE_LEASE: Final = timedelta(hours=1)
SETTLED: Final = 2 * indexing.LEASE
"""Time after which no worker can still be processing a document that was deleted meanwhile."""


async def process_document(indexer: indexing.DocumentIndexer, *, organization_id: UUID, document_id: UUID) -> None:
    """Resume a document whose processing was interrupted."""
    if await indexer.claim_document(organization_id, document_id):
        await indexer.index_claimed_document(organization_id, document_id)


async def delete_vectors(database: Database, providers: Providers, *, organization_id: UUID) -> None:
    """Delete the vectors of deleted documents and knowledge bases. A failure is logged, and retried later."""
    async with database.write(organization_id) as session:
        due = await queries.lock_due_deletions(session)
        for deletion in due:
            deletion.due_at = now() + DELETION_LEASE
        bases = await queries.list_knowledge_bases_by_id(session, [deletion.knowledge_base_id for deletion in due])
        current = {base.id: model.label for base in bases if (model := get_embedding_model(base)) is not None}
    for deletion in due:
        # A knowledge base that has returned to a model keeps its vectors.
        if deletion.model is None or current.get(deletion.knowledge_base_id) != deletion.model:
            try:
                await _delete(providers, deletion)
            except ProviderError as error:
                logger.warning(
                    "vectors could not be deleted, will be retried",
                    organization_id=str(organization_id),
                    reason=error.message,
                )
                return
        async with database.write(deletion.organization_id) as session:
            await queries.schedule_vector_maintenance(session)
            again = deletion.created_at + SETTLED
            await queries.finish_vector_deletion(session, deletion.id, again_at=again if again >= now() else None)


async def _delete(providers: Providers, deletion: VectorDeletion) -> None:
    async with providers.use(deletion.organization_id, VectorStore) as store:
        if deletion.document_id is not None:
            await store.delete_document(deletion.organization_id, deletion.document_id)
        else:
            await store.delete_knowledge_base(
                deletion.organization_id, deletion.knowledge_base_id, model=deletion.model
            )


async def maintain_vectors(database: Database, providers: Providers, *, organization_id: UUID) -> None:
    """Compact and index an organization's vectors, once for all changes so far. A failure is logged, and retried
    later.
    """
    async with database.write(organization_id) as session:
        row = await queries.lock_due_maintenance(session)
        if row is None:
            return
        claimed = row.due_at = now() + MAINTENANCE_LEASE
    try:
        async with providers.use(organization_id, VectorStore) as store:
            await store.maintain(organization_id)
    except ProviderError as error:
        logger.warning("vectors could not be compacted, will be retried", reason=error.message)
        return
    async with database.write(organization_id) as session:
        await queries.delete_maintenance(session, due_at=claimed)


WORK: Final = (
    Work(process_document, queries.INTERRUPTED_DOCUMENTS, seconds=5, at_once=4, job_seconds=knowledge.LONG_SECONDS),
    Work(delete_vectors, queries.VECTORS_TO_DELETE, seconds=5, at_once=4),
    Work(maintain_vectors, queries.VECTORS_TO_MAINTAIN, seconds=5, at_once=2, job_seconds=knowledge.LONG_SECONDS),
)
