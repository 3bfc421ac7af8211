"""The LanceDB store: its contract, concurrent processes, separate organizations, and indexes for large tables."""

import asyncio
import random
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from switchboard.plugin_sdk import Chunk, ProviderError
from switchboard.plugin_sdk.testing import VectorStoreContract
from switchboard_vectorstore import tables
from switchboard_vectorstore.store import LanceSettings, LanceStore

NORTH, EAST = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)
WRITER = """
import asyncio, sys
from pathlib import Path
from uuid import UUID
from switchboard.plugin_sdk import Chunk
from switchboard_vectorstore.store import LanceSettings, LanceStore

async def main(folder, organization, base, writer):
    store = LanceStore(LanceSettings(uri=folder))
    for document in range(5):
        for text in ("old", "new"):
            id = UUID(int=writer * 100 + document)
            chunks = [Chunk(UUID(base), id, index, text, (1.0, 0.0, 0.0, 0.0)) for index in range(3)]
            await store.put(UUID(organization), "model", chunks)
    await store.delete_document(UUID(organization), UUID(int=writer * 100))

asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
"""


@pytest.fixture
def store(tmp_path: Path) -> LanceStore:
    return LanceStore(LanceSettings(uri=str(tmp_path)))


async def search_texts(
    store: LanceStore, organization_id: UUID, text: str = "", *, bases: list[UUID] | None = None, limit: int = 100
) -> list[str]:
    matches = await store.search(
        organization_id, "model", text=text, vector=NORTH, knowledge_base_ids=bases, limit=limit
    )
    return [match.text for match in matches]


class TestLanceStore(VectorStoreContract[LanceStore]):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> LanceStore:
        return LanceStore(LanceSettings(uri=str(tmp_path)))


async def test_vectors_are_stored_in_the_data_directory_by_default(tmp_path: Path) -> None:
    store, organization = LanceStore(LanceSettings()), uuid4()
    store.data_dir = tmp_path
    await store.put(organization, "model", [Chunk(uuid4(), uuid4(), 0, "text", NORTH)])
    assert [path.name for path in (tmp_path / "vectors").iterdir()] == [organization.hex]


async def test_concurrent_processes_lose_and_duplicate_nothing(store: LanceStore, tmp_path: Path) -> None:
    organization, base = uuid4(), uuid4()
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(tmp_path), str(organization), str(base), str(number)
        )
        for number in range(1, 4)
    ]
    while any(writer.returncode is None for writer in writers):
        # Two processes that rewrite the same files at once: one is refused and retries.
        with suppress(ProviderError):
            await store.maintain(organization)
        await asyncio.wait([asyncio.ensure_future(writer.wait()) for writer in writers], timeout=0.05)
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    await store.maintain(organization)
    matches = await store.search(organization, "model", text="", vector=NORTH, knowledge_base_ids=[base], limit=1000)
    expected = {
        (UUID(int=writer * 100 + document), index)
        for writer in (1, 2, 3)
        for document in range(1, 5)
        for index in range(3)
    }
    assert sorted((match.document_id, match.index) for match in matches) == sorted(expected)
    assert {match.text for match in matches} == {"new"}


async def test_the_first_documents_of_an_organization_may_arrive_concurrently(tmp_path: Path) -> None:
    stores, organization = [LanceStore(LanceSettings(uri=str(tmp_path))) for _ in range(4)], uuid4()
    texts = [f"passage {number}" for number in range(40)]
    await asyncio.gather(
        *(
            stores[place % 4].put(organization, "model", [Chunk(uuid4(), uuid4(), 0, text, NORTH)])
            for place, text in enumerate(texts)
        )
    )
    assert sorted(await search_texts(stores[0], organization)) == sorted(texts)


async def test_a_table_that_is_created_over_another_one_keeps_its_passages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As LanceDB commits it for processes that have looked for the table before another process created it."""
    first, *late = [LanceStore(LanceSettings(uri=str(tmp_path))) for _ in range(4)]
    organization, opens, looked = uuid4(), tables.open_table, set[int]()
    await first.put(organization, "model", [Chunk(uuid4(), uuid4(), 0, "first", NORTH)])

    async def look(connection: object, model: str) -> tables.ModelTable | None:
        """Find no table at the first look of each process."""
        if id(connection) in looked:
            return await opens(connection, model)
        looked.add(id(connection))
        return None

    monkeypatch.setattr(tables, "open_table", look)
    for store in late:
        connection = await store._connection(organization)
        monkeypatch.setattr(connection, "create_table", partial(connection.create_table, mode="overwrite"))
    texts = [f"late {number}" for number in range(len(late))]
    await asyncio.gather(
        *(
            store.put(organization, "model", [Chunk(uuid4(), uuid4(), 0, text, NORTH)])
            for store, text in zip(late, texts, strict=True)
        )
    )
    assert sorted(await search_texts(first, organization)) == ["first", *texts]


async def test_equal_texts_of_two_organizations_stay_apart_despite_forged_ids(store: LanceStore) -> None:
    own_organization, other_organization, base, document = uuid4(), uuid4(), uuid4(), uuid4()
    await store.put(own_organization, "model", [Chunk(base, document, 0, "the same", NORTH)])
    await store.put(
        other_organization,
        "model",
        [Chunk(base, document, 0, "the same", NORTH), Chunk(base, document, 1, "theirs", NORTH)],
    )
    assert await search_texts(store, own_organization, "theirs", bases=[base]) == ["the same"]
    await store.put(own_organization, "model", [Chunk(base, document, 0, "replaced", NORTH)])
    await store.delete_document(own_organization, document)
    await store.delete_knowledge_base(own_organization, base)
    await store.maintain(own_organization)
    assert await search_texts(store, own_organization, "theirs") == []
    assert sorted(await search_texts(store, other_organization, "theirs")) == ["the same", "theirs"]


class ForgedId(UUID):
    """An id whose text is a condition that is always true."""

    def __str__(self) -> str:
        return "x') or true or ('' = '"


async def test_an_id_never_becomes_a_condition(store: LanceStore) -> None:
    organization = uuid4()
    await store.put(organization, "model", [Chunk(uuid4(), uuid4(), 0, "kept", NORTH)])
    forged = ForgedId(uuid4().hex)
    assert await search_texts(store, organization, bases=[forged]) == []
    await store.delete_document(organization, forged)
    await store.delete_knowledge_base(organization, forged)
    assert await search_texts(store, organization) == ["kept"]


async def test_a_name_or_number_finds_its_passage_despite_a_semantically_nearer_one(store: LanceStore) -> None:
    organization, base = uuid4(), uuid4()
    near = [
        Chunk(base, uuid4(), 0, f"An order was sent to somebody, case {number}.", NORTH) for number in range(100, 130)
    ]
    far = (0.9, 0.436, 0.0, 0.0)
    await store.put(organization, "model", [*near, Chunk(base, uuid4(), 0, "Order AB-77193 went to Mrs. O'Hara.", far)])
    for question in ("where is AB-77193?", "What did O'Hara get?"):
        assert (await search_texts(store, organization, question))[0].startswith("Order AB-77193"), question


async def test_vectors_of_another_length_are_refused_with_a_message(store: LanceStore) -> None:
    organization = uuid4()
    await store.put(organization, "model", [Chunk(uuid4(), uuid4(), 0, "kept", NORTH)])
    with pytest.raises(ProviderError, match="4 dimensions before, and of 2 now"):
        await store.put(organization, "model", [Chunk(uuid4(), uuid4(), 0, "flat", (1.0, 0.0))])
    assert await search_texts(store, organization) == ["kept"]


async def test_indexes_are_built_as_tables_grow_and_new_rows_are_found_at_once(
    store: LanceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "INDEXED_FROM_ROWS", 600)
    organization, base, chance = uuid4(), uuid4(), random.Random(1)

    def chunks(number: int) -> list[Chunk]:
        made = []
        for index in range(number):
            raw = [chance.gauss(0, 1) for _ in range(128)]
            length = sum(part * part for part in raw) ** 0.5
            made.append(
                Chunk(
                    base,
                    UUID(int=index // 50 + number),
                    index % 50,
                    f"passage {index}",
                    tuple(part / length for part in raw),
                )
            )
        return made

    async def indexes() -> list[str]:
        connection = await store._connection(organization)
        table = await connection.open_table(tables.format_table_name("model"))
        return sorted(index.name for index in await table.list_indices())

    async def first(chunk: Chunk) -> str:
        matches = await store.search(
            organization, "model", text="", vector=chunk.vector, knowledge_base_ids=[base], limit=1
        )
        return matches[0].text

    few, many = chunks(600), chunks(2400)
    await store.put(organization, "model", few)
    await store.maintain(organization)
    assert await indexes() == ["document_id_idx", "knowledge_base_id_idx", "text_idx", "vector_of_600"]
    await store.put(organization, "model", many)
    sample = chance.sample(few, 10) + chance.sample(many, 10)
    assert [await first(chunk) for chunk in sample] == [chunk.text for chunk in sample]
    await store.maintain(organization)
    assert "vector_of_3000" in await indexes()
    assert "vector_of_600" not in await indexes()
    assert [await first(chunk) for chunk in sample] == [chunk.text for chunk in sample]
