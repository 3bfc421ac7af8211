"""Jobs of knowledge bases."""

from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.foundation.jobs import Queue
from switchboard.plugin_sdk import ProviderError
from switchboard.resources.knowledge_bases import system_queries, vector_maintenance
from switchboard.resources.knowledge_bases.indexing import DocumentIndexer
from switchboard.resources.knowledge_bases.service import LONG_SECONDS

logger = structlog.get_logger()


async def process_document(indexer: DocumentIndexer, *, organization_id: str, document_id: str) -> None:
    """Resume a document whose processing was interrupted."""
    if await indexer.claim_document(UUID(organization_id), UUID(document_id)):
        await indexer.index_claimed_document(UUID(organization_id), UUID(document_id))


async def delete_vectors(database: Database, providers: Providers, *, organization_id: str) -> None:
    """Delete the vectors of deleted documents and knowledge bases."""
    try:
        await vector_maintenance.delete_due_vectors(database, providers, UUID(organization_id))
    except ProviderError as error:
        logger.warning(
            "vectors could not be deleted, will be retried", organization_id=organization_id, reason=error.message
        )


async def maintain_vectors(database: Database, providers: Providers, *, organization_id: str) -> None:
    """Compact and index an organization's vectors."""
    await vector_maintenance.maintain_due_vectors(database, providers, UUID(organization_id))


async def reconcile_knowledge(database: Database, queue: Queue) -> int:
    """Wake the jobs that are due, and return how many; each is a job of its own, because providers take time."""
    async with database.system() as session:
        documents = await system_queries.list_interrupted_documents(session)
        deletions = await system_queries.list_organizations_with_deletions(session)
        changed = await system_queries.list_organizations_with_changed_vectors(session)
    for organization_id, document_id in documents:
        await queue.enqueue(
            "process_document",
            timeout_seconds=LONG_SECONDS,
            organization_id=str(organization_id),
            document_id=str(document_id),
        )
    for organization_id in deletions:
        await queue.enqueue("delete_vectors", organization_id=str(organization_id))
    for organization_id in changed:
        await queue.enqueue("maintain_vectors", timeout_seconds=LONG_SECONDS, organization_id=str(organization_id))
    return len(documents) + len(deletions) + len(changed)
