"""Jobs of knowledge bases: index documents whose processing was interrupted, and maintain the vector store."""

from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy import update
from sqlmodel import col, delete, select

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, is_among, now
from switchboard.foundation.jobs import MOST_DUE, Queue, list_due
from switchboard.plugin_sdk import ProviderError, VectorStore
from switchboard.resources.knowledge_bases import indexing
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.embedding import get_embedding_model
from switchboard.resources.knowledge_bases.models import (
    KnowledgeBase,
    KnowledgeDocument,
    VectorDeletion,
    VectorMaintenance,
)

logger = structlog.get_logger()
DELETION_LEASE: Final = timedelta(minutes=2)
MAINTENANCE_LEASE: Final = timedelta(hours=1)
SETTLED: Final = 2 * indexing.LEASE
"""Time after which no worker can still be processing a document that was deleted meanwhile."""
DELETIONS: Final = 50


async def process_document(indexer: indexing.DocumentIndexer, *, organization_id: UUID, document_id: UUID) -> None:
    """Resume a document whose processing was interrupted."""
    if await indexer.claim_document(organization_id, document_id):
        await indexer.index_claimed_document(organization_id, document_id)


async def delete_vectors(database: Database, providers: Providers, *, organization_id: UUID) -> None:
    """Delete the vectors of deleted documents and knowledge bases. A failure is logged, and retried later."""
    async with database.write(organization_id) as session:
        rows = session.select(VectorDeletion).where(col(VectorDeletion.due_at) <= now())
        rows = rows.order_by(col(VectorDeletion.due_at)).limit(DELETIONS).with_for_update(skip_locked=True)
        due = (await session.exec(rows)).all()
        for deletion in due:
            deletion.due_at = now() + DELETION_LEASE
        named = is_among(col(KnowledgeBase.id), [deletion.knowledge_base_id for deletion in due])
        bases = (await session.exec(session.select(KnowledgeBase).where(named))).all()
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
            await knowledge.schedule_vector_maintenance(session)
            mine = col(VectorDeletion.id) == deletion.id
            again = deletion.created_at + SETTLED
            done = (
                delete(VectorDeletion).where(mine)
                if again < now()
                else update(VectorDeletion).where(mine).values(due_at=again)
            )
            await session.exec(done)


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
        is_due = (col(VectorMaintenance.id) == organization_id, col(VectorMaintenance.due_at) <= now())
        due = session.select(VectorMaintenance).where(*is_due).with_for_update(skip_locked=True)
        row = (await session.exec(due)).one_or_none()
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
        # A change meanwhile has made it due again.
        unchanged = (col(VectorMaintenance.id) == organization_id, col(VectorMaintenance.due_at) == claimed)
        await session.exec(delete(VectorMaintenance).where(*unchanged))


async def reconcile_knowledge(database: Database, queue: Queue) -> int:
    """Wake the jobs that are due, and return how many; each is a job of its own, because providers take time."""
    is_processing = col(KnowledgeDocument.status) == "processing"
    deletable = select(VectorDeletion.organization_id).where(col(VectorDeletion.due_at) <= now()).distinct()
    async with database.system() as session:
        documents = await list_due(session, KnowledgeDocument, col(KnowledgeDocument.process_after), is_processing)
        deletions = (await session.exec(deletable.limit(MOST_DUE))).all()
        maintained = await list_due(session, VectorMaintenance, col(VectorMaintenance.due_at))
    for organization_id, document_id in documents:
        await queue.enqueue(
            "process_document",
            timeout_seconds=knowledge.LONG_SECONDS,
            organization_id=organization_id,
            document_id=document_id,
        )
    for organization_id in deletions:
        await queue.enqueue("delete_vectors", organization_id=organization_id)
    for organization_id, _ in maintained:
        await queue.enqueue("maintain_vectors", timeout_seconds=knowledge.LONG_SECONDS, organization_id=organization_id)
    return len(documents) + len(deletions) + len(maintained)
