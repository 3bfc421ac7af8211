"""Search passages in one, several, or all knowledge bases of an organization, for the API and for conversations."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from uuid import UUID

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import ChunkMatch, ModelUsage, VectorStore
from switchboard.resources.billing import ledger
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.embedding import (
    EmbeddingModel,
    charge_embedding,
    embed_texts,
    get_embedding_model,
)
from switchboard.resources.knowledge_bases.models import KnowledgeBase
from switchboard.resources.knowledge_bases.queries import list_ready_documents
from switchboard.resources.knowledge_bases.schemas import PassageOut

SPARE = 10
"""Factor of extra hits, because some may belong to documents that were just deleted."""


@dataclass(frozen=True, slots=True)
class PassageSearch:
    database: Database
    providers: Providers

    async def search_passages(
        self,
        organization_id: UUID,
        query: str,
        *,
        knowledge_base_ids: Sequence[str] | None = None,
        limit: int = 5,
    ) -> list[PassageOut]:
        """Return the best passages of these knowledge bases, or of all, best first, and charge the organization.
        Deleted documents never match.

        Raises `ValidationFailed` for an id that is not one of the organization's knowledge bases,
        `InsufficientBalance`, and `ProviderError`.
        """
        async with self.database.read(organization_id) as session:
            bases = await knowledge.resolve_knowledge_bases(session, knowledge_base_ids)
            await ledger.require_solvency(session)
        usage, everywhere = list[ModelUsage](), knowledge_base_ids is None
        found = await self.search_knowledge_bases(
            organization_id, query, bases, everywhere=everywhere, limit=limit, usage=usage
        )
        await charge_embedding(self.database, organization_id, usage)
        return found

    async def search_knowledge_bases(
        self,
        organization_id: UUID,
        query: str,
        bases: Sequence[KnowledgeBase],
        *,
        everywhere: bool = False,
        limit: int,
        usage: list[ModelUsage],
    ) -> list[PassageOut]:
        """Return the best passages of these knowledge bases (`everywhere`: they are all of the organization's), best
        first, and add the usage of embedding the query to `usage`. Raises `ProviderError`.
        """
        ids_by_model: dict[EmbeddingModel, list[UUID]] = defaultdict(list)
        for base in bases:
            if (model := get_embedding_model(base)) is not None:
                ids_by_model[model].append(base.id)
        rankings: list[list[ChunkMatch]] = []
        for model, ids in ids_by_model.items():
            embedded = await embed_texts(self.providers, organization_id, [query], purpose="query", model=model)
            usage.append(embedded.usage)
            async with self.providers.use(organization_id, VectorStore) as store:
                found = await store.search(
                    organization_id,
                    model.label,
                    text=query,
                    vector=embedded.vectors[0],
                    knowledge_base_ids=None if everywhere else ids,
                    limit=2 * limit + SPARE,
                )
            # A knowledge base that is switching to this model already has some of its vectors here.
            rankings.append([match for match in found if match.knowledge_base_id in ids])
        # Scores of two models cannot be compared, so their rankings are interleaved.
        matches = [match for row in zip_longest(*rankings) for match in row if match is not None]
        return (await self._keep_existing(organization_id, matches, {base.id for base in bases}))[:limit]

    async def _keep_existing(
        self, organization_id: UUID, matches: Sequence[ChunkMatch], bases: set[UUID]
    ) -> list[PassageOut]:
        """Keep the hits of existing documents: the database decides what exists, whatever the vector store holds."""
        async with self.database.read(organization_id) as session:
            ready = await list_ready_documents(session, {match.document_id for match in matches})
        known = {document.id: document for document in ready}
        return [
            PassageOut(
                document_id=match.document_id,
                knowledge_base_id=match.knowledge_base_id,
                filename=document.filename,
                chunk_index=match.index,
                content=match.text,
                score=match.score,
            )
            for match in matches
            if (document := known.get(match.document_id)) is not None
            and document.knowledge_base_id == match.knowledge_base_id in bases
        ]


@dataclass(frozen=True, slots=True)
class AgentKnowledge:
    """Searches an agent's knowledge bases (implements `conversation.knowledge.Knowledge`); deleted ones are skipped.

    The usage of each search is added to `usage`, to bill the conversation.
    """

    search: PassageSearch
    organization_id: UUID
    knowledge_base_ids: Sequence[str]
    usage: list[ModelUsage]

    async def find_passages(self, question: str, *, limit: int) -> Sequence[str]:
        async with self.search.database.read(self.organization_id) as session:
            bases = [
                base
                for base in await knowledge.resolve_knowledge_bases(session, None)
                if str(base.id) in self.knowledge_base_ids
            ]
        found = await self.search.search_knowledge_bases(
            self.organization_id, question, bases, limit=limit, usage=self.usage
        )
        return [passage.content for passage in found]
