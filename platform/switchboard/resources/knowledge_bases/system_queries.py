"""Knowledge across organizations: what has become due. Run under the system role."""

from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.knowledge_bases.models import KnowledgeDocument, VectorDeletion, VectorUpkeep

BATCH = 100


async def broken_off(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """Organization and id of each document whose processing nobody is at any more."""
    rows = select(KnowledgeDocument.organization_id, KnowledgeDocument.id)
    due = rows.where(col(KnowledgeDocument.status) == "processing", col(KnowledgeDocument.process_after) < now())
    return list((await session.exec(due.order_by(col(KnowledgeDocument.process_after)).limit(BATCH))).all())


async def with_deletions(session: SystemSession) -> list[UUID]:
    """Organizations with vectors to delete."""
    rows = select(VectorDeletion.organization_id).where(col(VectorDeletion.due_at) < now()).distinct()
    return list((await session.exec(rows.limit(BATCH))).all())


async def with_upkeep(session: SystemSession) -> list[UUID]:
    """Organizations whose vectors are to be compacted and indexed."""
    rows = select(VectorUpkeep.organization_id).where(col(VectorUpkeep.due_at) < now())
    return list((await session.exec(rows.order_by(col(VectorUpkeep.due_at)).limit(BATCH))).all())
