"""The contract of capability `vector_store`."""

from typing import TypeVar
from uuid import UUID, uuid4

import pytest

from switchboard.plugins.provider import ProviderSettings
from switchboard.plugins.testing.contract import ProviderContract
from switchboard.plugins.vector_stores import Chunk, VectorStore

AnyVectorStore = TypeVar("AnyVectorStore", bound=VectorStore[ProviderSettings])
MODEL = "contract-model"
NORTH, EAST = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)


def chunk(base: UUID, document: UUID, text: str, vector: tuple[float, ...], index: int = 0) -> Chunk:
    """A passage."""
    return Chunk(base, document, index, text, vector)


class VectorStoreContract(ProviderContract[AnyVectorStore]):
    """Rules of every vector store. Override `provider`."""

    @pytest.fixture
    def organization_id(self) -> UUID:
        """A fresh organization."""
        return uuid4()

    async def _texts(self, store: AnyVectorStore, organization_id: UUID, **options: object) -> list[str]:
        bases = options.get("bases")
        found = await store.search(
            organization_id, MODEL, text="north", vector=NORTH, knowledge_base_ids=bases if isinstance(bases, list) else None, limit=10
        )
        return [match.text for match in found]

    async def test_what_was_put_is_found_best_first(self, opened: AnyVectorStore, organization_id: UUID) -> None:
        """If this fails, make `put` return once the chunks can be searched."""
        base = uuid4()
        await opened.put(organization_id, MODEL, [chunk(base, uuid4(), "east", EAST), chunk(base, uuid4(), "north", NORTH)])
        assert (await self._texts(opened, organization_id))[0] == "north"

    async def test_organizations_never_see_each_other(self, opened: AnyVectorStore, organization_id: UUID) -> None:
        """If this fails, filter every query by the organization."""
        base = uuid4()
        await opened.put(organization_id, MODEL, [chunk(base, uuid4(), "north", NORTH)])
        assert await self._texts(opened, uuid4()) == []
        assert await self._texts(opened, uuid4(), bases=[base]) == []

    async def test_a_search_stays_in_its_knowledge_bases(self, opened: AnyVectorStore, organization_id: UUID) -> None:
        """If this fails, filter by `knowledge_base_ids`."""
        here, there = uuid4(), uuid4()
        await opened.put(organization_id, MODEL, [chunk(here, uuid4(), "north", NORTH), chunk(there, uuid4(), "north too", NORTH)])
        assert await self._texts(opened, organization_id, bases=[here]) == ["north"]

    async def test_putting_a_document_again_replaces_it(self, opened: AnyVectorStore, organization_id: UUID) -> None:
        """If this fails, delete the document's chunks before adding the new ones."""
        base, document = uuid4(), uuid4()
        await opened.put(organization_id, MODEL, [chunk(base, document, "old", NORTH), chunk(base, document, "older", NORTH, 1)])
        await opened.put(organization_id, MODEL, [chunk(base, document, "new", NORTH)])
        assert await self._texts(opened, organization_id) == ["new"]

    async def test_deleting_forgets_and_may_be_done_twice(self, opened: AnyVectorStore, organization_id: UUID) -> None:
        """If this fails, ignore what is not there."""
        base, document = uuid4(), uuid4()
        await opened.put(organization_id, MODEL, [chunk(base, document, "north", NORTH), chunk(base, uuid4(), "stays", EAST)])
        for _ in range(2):
            await opened.delete_document(organization_id, document)
        assert await self._texts(opened, organization_id) == ["stays"]
        for _ in range(2):
            await opened.delete_knowledge_base(organization_id, base)
        assert await self._texts(opened, organization_id) == []

    async def test_maintenance_loses_nothing(self, opened: AnyVectorStore, organization_id: UUID) -> None:
        """If this fails, look at what compaction removes."""
        await opened.put(organization_id, MODEL, [chunk(uuid4(), uuid4(), "north", NORTH)])
        await opened.maintain()
        assert await self._texts(opened, organization_id) == ["north"]
