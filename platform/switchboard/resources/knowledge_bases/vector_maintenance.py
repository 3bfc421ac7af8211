"""Work in the vector store that follows from the rows: deletions, compaction, indexes."""

from datetime import timedelta
from uuid import UUID

import structlog
from sqlalchemy import update
from sqlmodel import col, delete, select

from switchboard.foundation.database import now
from switchboard.plugin_sdk import ProviderError
from switchboard.resources.knowledge_bases import indexing
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.embedding import model_of
from switchboard.resources.knowledge_bases.models import KnowledgeBase, VectorDeletion, VectorUpkeep
from switchboard.runtime import Runtime

logger = structlog.get_logger()
LEASE = timedelta(minutes=2)
UPKEEP_LEASE = timedelta(hours=1)
SETTLED = 2 * indexing.LEASE
"""By then nobody is at a document any more that was deleted while it was processed."""
BATCH = 50


async def delete_due(runtime: Runtime, organization_id: UUID) -> None:
    """Delete the vectors that are due, again after a failure. Raises `ProviderError`."""
    async with runtime.database.tenant(organization_id) as session:
        ours = select(VectorDeletion).where(
            col(VectorDeletion.organization_id) == organization_id, col(VectorDeletion.due_at) < now()
        )
        due = (
            await session.exec(ours.order_by(col(VectorDeletion.due_at)).limit(BATCH).with_for_update(skip_locked=True))
        ).all()
        for deletion in due:
            deletion.due_at = now() + LEASE
        bases = (
            await session.exec(
                knowledge.list_knowledge_bases(session).where(
                    col(KnowledgeBase.id).in_([one.knowledge_base_id for one in due])
                )
            )
        ).all()
        current = {base.id: model.label for base in bases if (model := model_of(base)) is not None}
    for deletion in due:
        # A knowledge base that came back to a model keeps what it has.
        if deletion.model is None or current.get(deletion.knowledge_base_id) != deletion.model:
            await _delete(runtime, deletion)
        async with runtime.database.tenant(organization_id) as session:
            await knowledge.schedule_vector_maintenance(session)
            mine = col(VectorDeletion.id) == deletion.id
            again = deletion.created_at + SETTLED
            done = (
                delete(VectorDeletion).where(mine)
                if again < now()
                else update(VectorDeletion).where(mine).values(due_at=again)
            )
            await session.exec(done)


async def maintain_due(runtime: Runtime, organization_id: UUID) -> None:
    """Compact and index an organization's vectors, once for all changes up to now. Raises `ProviderError`."""
    ours = (col(VectorUpkeep.organization_id) == organization_id, col(VectorUpkeep.id) == organization_id)
    async with runtime.database.tenant(organization_id) as session:
        row = (
            await session.exec(
                select(VectorUpkeep).where(*ours, col(VectorUpkeep.due_at) < now()).with_for_update(skip_locked=True)
            )
        ).one_or_none()
        if row is None:
            return
        claimed = row.due_at = now() + UPKEEP_LEASE
    try:
        async with runtime.providers.vector_store(organization_id) as store:
            await store.maintain(organization_id)
    except ProviderError as error:
        logger.warning("vectors could not be compacted, tried again later", reason=error.message)
        return
    async with runtime.database.tenant(organization_id) as session:
        # A change meanwhile has made it due anew.
        await session.exec(delete(VectorUpkeep).where(*ours, col(VectorUpkeep.due_at) == claimed))


async def _delete(runtime: Runtime, deletion: VectorDeletion) -> None:
    async with runtime.providers.vector_store(deletion.organization_id) as store:
        if deletion.document_id is not None:
            await store.delete_document(deletion.organization_id, deletion.document_id)
        else:
            await store.delete_knowledge_base(
                deletion.organization_id, deletion.knowledge_base_id, model=deletion.model
            )
