"""The contract of capability `vector_store`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID, uuid4

import pytest

from switchboard.plugin_sdk.provider import ProviderSettings
from switchboard.plugin_sdk.testing.contract import ProviderContract
from switchboard.plugin_sdk.vector_stores import Chunk, ChunkMatch, VectorStore

AnyVectorStore = TypeVar("AnyVectorStore", bound=VectorStore[ProviderSettings])
MODEL = "contract-model"
NORTH, EAST = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class OwnStore:
    """A store as one organization uses it."""

    provider: VectorStore[ProviderSettings]
    organization_id: UUID = field(default_factory=uuid4)

    async def put(self, *chunks: Chunk, model: str = MODEL) -> None:
        """Store chunks."""
        await self.provider.put(self.organization_id, model, chunks)

    async def search(
        self, *, model: str = MODEL, bases: Sequence[UUID] | None = None, limit: int = 10
    ) -> Sequence[ChunkMatch]:
        """Search for "north"."""
        return await self.provider.search(
            self.organization_id, model, text="north", vector=NORTH, knowledge_base_ids=bases, limit=limit
        )

    async def search_texts(self, *, model: str = MODEL, bases: Sequence[UUID] | None = None) -> list[str]:
        """Return the texts that a search for "north" finds."""
        return [match.text for match in await self.search(model=model, bases=bases)]


class VectorStoreContract(ProviderContract[AnyVectorStore]):
    """Rules of every vector own_store. Override `provider`."""

    @pytest.fixture
    def own_store(self, open_provider: AnyVectorStore) -> OwnStore:
        """The store of a new organization."""
        return OwnStore(open_provider)

    async def test_what_was_put_is_found_best_first(self, own_store: OwnStore) -> None:
        """If this fails, return from `put` only when the chunks can be searched."""
        base = uuid4()
        await own_store.put(Chunk(base, uuid4(), 0, "east", EAST), Chunk(base, uuid4(), 0, "north", NORTH))
        assert (await own_store.search_texts())[0] == "north"

    async def test_a_match_is_the_chunk_that_was_put(self, own_store: OwnStore) -> None:
        """Answers cite their document.

        If this fails, store the ids, the index, and the text unchanged, whatever characters it contains.
        """
        put = Chunk(uuid4(), uuid4(), 7, "north: 'quoted', \"twice\", % _ \\ \n Straße 北", NORTH)
        await own_store.put(put)
        (match,) = await own_store.search()
        assert (match.knowledge_base_id, match.document_id) == (put.knowledge_base_id, put.document_id)
        assert (match.index, match.text) == (7, put.text)

    async def test_scores_fall_from_the_best_and_the_limit_is_kept(self, own_store: OwnStore) -> None:
        """If this fails, sort by score, highest first, and cut after `limit`."""
        base, between = uuid4(), (0.8, 0.6, 0.0, 0.0)
        rows = [
            Chunk(base, uuid4(), 0, "east", EAST),
            Chunk(base, uuid4(), 0, "between", between),
            Chunk(base, uuid4(), 0, "north", NORTH),
        ]
        await own_store.put(*rows)
        found = await own_store.search(limit=2)
        assert [match.text for match in found] == ["north", "between"]
        assert found[0].score > found[1].score

    async def test_an_empty_store_finds_nothing(self, own_store: OwnStore) -> None:
        """If this fails, return nothing for an organization without chunks."""
        assert await own_store.search_texts() == []
        await own_store.put()
        assert await own_store.search_texts() == []

    async def test_vectors_of_two_models_are_kept_apart(self, own_store: OwnStore) -> None:
        """Vectors of two models may differ in length.

        If this fails, store the model with the chunk and search only within it.
        """
        await own_store.put(Chunk(uuid4(), uuid4(), 0, "north", NORTH))
        await own_store.put(Chunk(uuid4(), uuid4(), 0, "flat", (1.0, 0.0)), model="another-model")
        assert await own_store.search_texts() == ["north"]

    async def test_organizations_never_see_each_other(self, own_store: OwnStore) -> None:
        """If this fails, filter every query by the organization."""
        base = uuid4()
        await own_store.put(Chunk(base, uuid4(), 0, "north", NORTH))
        assert await OwnStore(own_store.provider).search_texts() == []
        assert await OwnStore(own_store.provider).search_texts(bases=[base]) == []

    async def test_an_organization_cannot_delete_another_ones(self, own_store: OwnStore) -> None:
        """If this fails, filter every deletion by the organization."""
        base, document = uuid4(), uuid4()
        await own_store.put(Chunk(base, document, 0, "north", NORTH))
        await own_store.provider.delete_document(uuid4(), document)
        await own_store.provider.delete_knowledge_base(uuid4(), base)
        assert await own_store.search_texts() == ["north"]

    async def test_a_search_stays_in_its_knowledge_bases(self, own_store: OwnStore) -> None:
        """If this fails, filter by `knowledge_base_ids`."""
        here, there = uuid4(), uuid4()
        await own_store.put(Chunk(here, uuid4(), 0, "north", NORTH), Chunk(there, uuid4(), 0, "north too", NORTH))
        assert await own_store.search_texts(bases=[here]) == ["north"]
        assert await own_store.search_texts(bases=[]) == []

    async def test_putting_a_document_again_replaces_it(self, own_store: OwnStore) -> None:
        """If this fails, delete the document's chunks before adding the new ones."""
        base, document = uuid4(), uuid4()
        await own_store.put(Chunk(base, document, 0, "old", NORTH), Chunk(base, document, 1, "older", NORTH))
        await own_store.put(Chunk(base, document, 0, "new", NORTH))
        assert await own_store.search_texts() == ["new"]

    async def test_deleting_forgets_and_may_be_done_twice(self, own_store: OwnStore) -> None:
        """If this fails, ignore missing chunks."""
        base, document = uuid4(), uuid4()
        await own_store.put(Chunk(base, document, 0, "north", NORTH), Chunk(base, uuid4(), 0, "stays", EAST))
        for _ in range(2):
            await own_store.provider.delete_document(own_store.organization_id, document)
        assert await own_store.search_texts() == ["stays"]
        for _ in range(2):
            await own_store.provider.delete_knowledge_base(own_store.organization_id, base)
        assert await own_store.search_texts() == []

    async def test_one_models_chunks_of_a_knowledge_base_can_be_deleted_alone(self, own_store: OwnStore) -> None:
        """Chunks of the old model are deleted after a change of the embedding model.

        If this fails, filter the deletion by `model` if it is given.
        """
        base, document = uuid4(), uuid4()
        await own_store.put(Chunk(base, document, 0, "north", NORTH))
        await own_store.put(Chunk(base, document, 0, "new", NORTH), model="another-model")
        await own_store.provider.delete_knowledge_base(own_store.organization_id, base, model=MODEL)
        assert await own_store.search_texts() == []
        assert await own_store.search_texts(model="another-model") == ["new"]

    async def test_maintenance_loses_nothing(self, own_store: OwnStore) -> None:
        """If this fails, check what compaction removes."""
        await own_store.put(Chunk(uuid4(), uuid4(), 0, "north", NORTH))
        await own_store.provider.maintain(own_store.organization_id)
        assert await own_store.search_texts() == ["north"]

    async def test_maintenance_bears_that_there_is_nothing(self, own_store: OwnStore) -> None:
        """An organization may have deleted everything. If this fails, do nothing for an organization without chunks."""
        await own_store.provider.maintain(own_store.organization_id)
        assert await own_store.search_texts() == []
