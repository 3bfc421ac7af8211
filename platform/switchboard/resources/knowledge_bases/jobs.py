"""What workers do for knowledge bases."""

from uuid import UUID

import structlog

from switchboard.plugin_sdk import ProviderError
from switchboard.resources.knowledge_bases import indexing, system_queries, vector_maintenance
from switchboard.resources.knowledge_bases.service import LONG_SECONDS
from switchboard.runtime import Runtime

logger = structlog.get_logger()


async def process_document(runtime: Runtime, *, organization_id: str, document_id: str) -> None:
    """Go on with a document whose processing was broken off."""
    if await indexing.claim(runtime, UUID(organization_id), UUID(document_id)):
        await indexing.process(runtime, UUID(organization_id), UUID(document_id))


async def delete_vectors(runtime: Runtime, *, organization_id: str) -> None:
    """Delete the vectors of what was deleted."""
    try:
        await vector_maintenance.delete_due(runtime, UUID(organization_id))
    except ProviderError as error:
        logger.warning(
            "vectors could not be deleted, tried again later", organization_id=organization_id, reason=error.message
        )


async def maintain_vectors(runtime: Runtime, *, organization_id: str) -> None:
    """Compact and index an organization's vectors."""
    await vector_maintenance.maintain_due(runtime, UUID(organization_id))


async def reconcile_knowledge(runtime: Runtime) -> None:
    """Find what is due; each is a job of its own, because providers take their time."""
    async with runtime.database.system() as session:
        documents = await system_queries.broken_off(session)
        deletions = await system_queries.with_deletions(session)
        changed = await system_queries.with_upkeep(session)
    for organization_id, document_id in documents:
        await runtime.queue.enqueue(
            "process_document",
            timeout_seconds=LONG_SECONDS,
            organization_id=str(organization_id),
            document_id=str(document_id),
        )
    for organization_id in deletions:
        await runtime.queue.enqueue("delete_vectors", organization_id=str(organization_id))
    for organization_id in changed:
        await runtime.queue.enqueue(
            "maintain_vectors", timeout_seconds=LONG_SECONDS, organization_id=str(organization_id)
        )
