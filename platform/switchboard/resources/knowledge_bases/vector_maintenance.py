"""Maintenance of the vector store: deletions, compaction, indexes."""

from datetime import timedelta
from uuid import UUID

import structlog
from sqlalchemy import update
from sqlmodel import col, delete

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, is_among, now
from switchboard.plugin_sdk import ProviderError, VectorStore
from switchboard.resources.knowledge_bases import indexing
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.embedding import get_embedding_model
from switchboard.resources.knowledge_bases.models import KnowledgeBase, VectorDeletion, VectorMaintenance

logger = structlog.get_logger()
LEASE = timedelta(minutes=2)
UPKEEP_LEASE = timedelta(hours=1)
SETTLED = 2 * indexing.LEASE
"""Time after which no worker can still be processing a document that was deleted meanwhile."""
BATCH = 50


async def delete_due_vectors(database: Database, providers: Providers, organization_id: UUID) -> None:
    """Delete the vectors whose deletion is due; a failure is retried. Raises `ProviderError`."""
    async with database.tenant(organization_id) as session:
        ours = session.select(VectorDeletion).where(col(VectorDeletion.due_at) <= now())
        due = (
            await session.exec(ours.order_by(col(VectorDeletion.due_at)).limit(BATCH).with_for_update(skip_locked=True))
        ).all()
        for deletion in due:
            deletion.due_at = now() + LEASE
        bases = (
            await session.exec(
                knowledge.list_knowledge_bases(session).where(
                    is_among(col(KnowledgeBase.id), [one.knowledge_base_id for one in due])
                )
            )
        ).all()
        current = {base.id: model.label for base in bases if (model := get_embedding_model(base)) is not None}
    for deletion in due:
        # A knowledge base that has returned to a model keeps its vectors.
        if deletion.model is None or current.get(deletion.knowledge_base_id) != deletion.model:
            await _delete(providers, deletion)
        async with database.tenant(organization_id) as session:
            await knowledge.schedule_vector_maintenance(session)
            mine = col(VectorDeletion.id) == deletion.id
            again = deletion.created_at + SETTLED
            done = (
                delete(VectorDeletion).where(mine)
                if again < now()
                else update(VectorDeletion).where(mine).values(due_at=again)
            )
            await session.exec(done)


async def maintain_due_vectors(database: Database, providers: Providers, organization_id: UUID) -> None:
    """Compact and index an organization's vectors, once for all changes so far. Raises `ProviderError`."""
    async with database.tenant(organization_id) as session:
        due = session.select(VectorMaintenance).where(
            col(VectorMaintenance.id) == organization_id, col(VectorMaintenance.due_at) <= now()
        )
        row = (await session.exec(due.with_for_update(skip_locked=True))).one_or_none()
        if row is None:
            return
        claimed = row.due_at = now() + UPKEEP_LEASE
    try:
        async with providers.use(organization_id, VectorStore) as store:
            await store.maintain(organization_id)
    except ProviderError as error:
        logger.warning("vectors could not be compacted, will be retried", reason=error.message)
        return
    async with database.tenant(organization_id) as session:
        # A change meanwhile has made it due again.
        unchanged = (
            session.owns(VectorMaintenance),
            col(VectorMaintenance.id) == organization_id,
            col(VectorMaintenance.due_at) == claimed,
        )
        await session.exec(delete(VectorMaintenance).where(*unchanged))


async def _delete(providers: Providers, deletion: VectorDeletion) -> None:
    async with providers.use(deletion.organization_id, VectorStore) as store:
        if deletion.document_id is not None:
            await store.delete_document(deletion.organization_id, deletion.document_id)
        else:
            await store.delete_knowledge_base(
                deletion.organization_id, deletion.knowledge_base_id, model=deletion.model
            )
