"""Acme: a vector store. Replace the requests with your vendor's."""

from collections.abc import Sequence
from uuid import UUID

from switchboard.plugin_sdk import Chunk, ChunkMatch, VectorStore, hookimpl

from switchboard_acme.client import AcmeProvider, AcmeSettings

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""


class AcmeStore(AcmeProvider, VectorStore[AcmeSettings]):
    """Chunks in a collection of the organization's own."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings

    async def put(self, organization_id: UUID, model: str, chunks: Sequence[Chunk]) -> None:
        rows = [
            {
                "base": str(chunk.knowledge_base_id),
                "document": str(chunk.document_id),
                "index": chunk.index,
                "text": chunk.text,
                "vector": chunk.vector,
                "model": model,
            }
            for chunk in chunks
        ]
        await self._client.request("PUT", f"/collections/{organization_id}", json=rows)

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
        bases = None if knowledge_base_ids is None else [str(base) for base in knowledge_base_ids]
        query = {"model": model, "text": text, "vector": vector, "bases": bases, "limit": limit}
        rows = await self._client.request("POST", f"/collections/{organization_id}/search", json=query)
        return [
            ChunkMatch(UUID(row["base"]), UUID(row["document"]), row["index"], row["text"], row["score"])
            for row in rows
        ]

    async def delete_document(self, organization_id: UUID, document_id: UUID) -> None:
        await self._delete(organization_id, {"document": str(document_id)})

    async def delete_knowledge_base(
        self, organization_id: UUID, knowledge_base_id: UUID, *, model: str | None = None
    ) -> None:
        await self._delete(organization_id, {"base": str(knowledge_base_id)} | ({"model": model} if model else {}))

    async def maintain(self, organization_id: UUID) -> None:
        """Do nothing: Acme maintains its collections itself."""

    async def _delete(self, organization_id: UUID, conditions: dict[str, str]) -> None:
        await self._client.request("DELETE", f"/collections/{organization_id}", params=conditions)


@hookimpl
def vector_stores() -> Sequence[type[AcmeStore]]:
    return [AcmeStore]
