"""Capability `vector_store`: where knowledge bases keep their vectors."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from switchboard.plugin_sdk.provider import Provider, SettingsT_co


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document with its vector."""

    knowledge_base_id: UUID
    document_id: UUID
    index: int
    text: str
    vector: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ChunkMatch:
    """A passage that answers a query. `score` is higher for better; scores of two queries do not compare."""

    knowledge_base_id: UUID
    document_id: UUID
    index: int
    text: str
    score: float


class VectorStore(Provider[SettingsT_co]):
    """Keeps chunks and finds them again. Every method is bound to one organization: another's chunks are never read or touched."""

    @abstractmethod
    async def put(self, organization_id: UUID, model: str, chunks: Sequence[Chunk]) -> None:
        """Keep these chunks; those of the same documents that were kept before are replaced. Visible to `search` when it returns.

        `model` names the embedding model; vectors of two models are kept apart. Raises `ProviderError`.
        """

    @abstractmethod
    async def search(
        self,
        organization_id: UUID,
        model: str,
        *,
        text: str,
        vector: tuple[float, ...],
        knowledge_base_ids: Sequence[UUID] | None,
        limit: int,
    ) -> Sequence[ChunkMatch]:
        """Find the best chunks for a query (its text and its vector), best first. None for `knowledge_base_ids` is all. Raises `ProviderError`."""

    @abstractmethod
    async def delete_document(self, organization_id: UUID, document_id: UUID) -> None:
        """Forget a document's chunks; harmless where there are none. Raises `ProviderError`."""

    @abstractmethod
    async def delete_knowledge_base(
        self, organization_id: UUID, knowledge_base_id: UUID, *, model: str | None = None
    ) -> None:
        """Forget a knowledge base's chunks, those of one model only where it is named; harmless where there are none. Raises `ProviderError`."""

    @abstractmethod
    async def maintain(self, organization_id: UUID) -> None:
        """Compact and index what has grown. Called in a worker a minute after a change, while others read and write. Raises `ProviderError`."""
