"""Endpoints of knowledge bases and their documents."""

from uuid import UUID

from quart import request

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import InsufficientBalance, ProviderFailed
from switchboard.foundation.web.paging import get_row, get_row_answer, paginate, paginate_table
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.plugin_sdk import ProviderError
from switchboard.resources.knowledge_bases import ingestion
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.indexing import DocumentIndexer
from switchboard.resources.knowledge_bases.models import KnowledgeBase, KnowledgeDocument
from switchboard.resources.knowledge_bases.queries import select_documents
from switchboard.resources.knowledge_bases.schemas import (
    DocumentCreate,
    DocumentOut,
    KnowledgeBaseCreate,
    KnowledgeBaseOut,
    KnowledgeSearch,
    PassagesOut,
)
from switchboard.resources.knowledge_bases.search import PassageSearch

blueprint = ApiBlueprint(
    "knowledge_bases",
    __name__,
    tags={
        "knowledge-bases": "Documents that agents answer from, and the search in them.",
        "documents": "The documents of knowledge bases, by their own ids.",
    },
)


@blueprint.get("/v1/knowledge-bases")
@endpoint(scope="agents:read")
async def list_knowledge_bases(session: ReadSession, query: PageQuery) -> Page[KnowledgeBaseOut]:
    """List knowledge bases."""
    return await paginate_table(session, KnowledgeBase, KnowledgeBaseOut, query)


@blueprint.post("/v1/knowledge-bases")
@endpoint(scope="agents:write", status=201)
async def create_knowledge_base(session: WriteSession, data: KnowledgeBaseCreate) -> KnowledgeBaseOut:
    """Create a knowledge base."""
    return KnowledgeBaseOut.model_validate(await knowledge.create_knowledge_base(session, data))


@blueprint.post("/v1/knowledge-bases/search")
@endpoint(scope="agents:read", errors=[InsufficientBalance, ProviderFailed])
async def search_knowledge_bases(principal: Principal, data: KnowledgeSearch, search: PassageSearch) -> PassagesOut:
    """Search knowledge bases.

    The search combines meaning and words: it finds paraphrases as well as names and numbers.
    """
    try:
        found = await search.search_passages(
            principal.organization_id, data.query, knowledge_base_ids=data.knowledge_base_ids, limit=data.top_k
        )
    except ProviderError as error:
        raise ProviderFailed(error.message) from error
    return PassagesOut(items=found)


@blueprint.get("/v1/knowledge-bases/<uuid:kb_id>")
@endpoint(scope="agents:read")
async def get_knowledge_base(session: ReadSession, kb_id: UUID) -> KnowledgeBaseOut:
    """Get a knowledge base."""
    return await get_row_answer(session, KnowledgeBase, KnowledgeBaseOut, kb_id)


@blueprint.delete("/v1/knowledge-bases/<uuid:kb_id>")
@endpoint(scope="agents:write", status=204)
async def delete_knowledge_base(session: WriteSession, kb_id: UUID) -> None:
    """Delete a knowledge base with its documents.

    This cannot be undone.
    """
    await knowledge.delete_knowledge_base(session, kb_id)


@blueprint.get("/v1/knowledge-bases/<uuid:kb_id>/documents")
@endpoint(scope="agents:read")
async def list_documents(session: ReadSession, kb_id: UUID, query: PageQuery) -> Page[DocumentOut]:
    """List a knowledge base's documents."""
    base = await get_row(session, KnowledgeBase, kb_id)
    return await paginate(session, select_documents(session, base.id), DocumentOut.model_validate, query)


@blueprint.post("/v1/knowledge-bases/<uuid:kb_id>/documents")
@endpoint(scope="agents:write", status=201, errors=[InsufficientBalance])
async def create_document(
    principal: Principal, kb_id: UUID, data: DocumentCreate, indexer: DocumentIndexer
) -> DocumentOut:
    """Add a document.

    The document is chunked and embedded before the response, so a large one takes seconds. If the embedding model or
    the vector store fails, the document is kept as `failed`, with an `error_message`.
    """
    key = request.headers.get("Idempotency-Key")
    document = await ingestion.add_document(
        indexer, principal.organization_id, kb_id, data, idempotency_key=key, actor=principal.actor
    )
    return DocumentOut.model_validate(document)


@blueprint.get("/v1/documents/<doc_id>")
@endpoint(scope="agents:read")
async def get_document(session: ReadSession, doc_id: UUID) -> DocumentOut:
    """Get a document."""
    return DocumentOut.model_validate(await get_row(session, KnowledgeDocument, doc_id))


@blueprint.delete("/v1/documents/<doc_id>")
@endpoint(scope="agents:write", status=204)
async def delete_document(session: WriteSession, doc_id: UUID) -> None:
    """Delete a document.

    Searches no longer find it; its vectors are deleted right after.
    """
    await knowledge.delete_document(session, doc_id)
