"""Queries about knowledge bases that cross organizations."""

from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.knowledge_bases.models import KnowledgeDocument, VectorDeletion, VectorMaintenance

BATCH = 100


async def list_interrupted_documents(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """List the organization and id of documents whose processing was interrupted."""
    rows = select(KnowledgeDocument.organization_id, KnowledgeDocument.id)
    due = rows.where(col(KnowledgeDocument.status) == "processing", col(KnowledgeDocument.process_after) <= now())
    return list((await session.exec(due.order_by(col(KnowledgeDocument.process_after)).limit(BATCH))).all())


async def list_organizations_with_deletions(session: SystemSession) -> list[UUID]:
    """List the organizations with vectors to delete."""
    rows = select(VectorDeletion.organization_id).where(col(VectorDeletion.due_at) <= now()).distinct()
    return list((await session.exec(rows.limit(BATCH))).all())


async def list_organizations_with_changed_vectors(session: SystemSession) -> list[UUID]:
    """List the organizations whose vectors must be compacted and indexed."""
    rows = select(VectorMaintenance.organization_id).where(col(VectorMaintenance.due_at) <= now())
    return list((await session.exec(rows.order_by(col(VectorMaintenance.due_at)).limit(BATCH))).all())
