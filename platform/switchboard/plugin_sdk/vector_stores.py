"""Capability `vector_store`: storage and search of knowledge base passages."""

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
    """A passage found by a search. A higher `score` is better; scores of two searches cannot be compared."""

    knowledge_base_id: UUID
    document_id: UUID
    index: int
    text: str
    score: float


class VectorStore(Provider[SettingsT_co]):
    """Stores and searches chunks. Each method is bound to one organization and never touches another one's chunks."""

    @abstractmethod
    async def put(self, organization_id: UUID, model: str, chunks: Sequence[Chunk]) -> None:
        """Store chunks, replacing earlier chunks of the same documents. `search` finds them when this returns.

        `model` names the embedding model; vectors of two models are stored separately. Raises `ProviderError`.
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
        """Return the best chunks for a query, best first, by its text and its vector.

        `knowledge_base_ids` None searches all knowledge bases. Raises `ProviderError`.
        """

    @abstractmethod
    async def delete_document(self, organization_id: UUID, document_id: UUID) -> None:
        """Delete a document's chunks; no effect if there are none. Raises `ProviderError`."""

    @abstractmethod
    async def delete_knowledge_base(
        self, organization_id: UUID, knowledge_base_id: UUID, *, model: str | None = None
    ) -> None:
        """Delete a knowledge base's chunks; no effect if there are none.

        With `model`, only chunks of that embedding model are deleted. Raises `ProviderError`.
        """

    @abstractmethod
    async def maintain(self, organization_id: UUID) -> None:
        """Compact and index new data.

        Called in a worker one minute after a change, during reads and writes. Raises `ProviderError`.
        """
