"""Recovery from crashes, lost wake-ups, and changed models; searches work throughout."""

import asyncio
import hashlib
import math
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar, Literal
from uuid import UUID, uuid4

import pytest
from sqlalchemy import update
from sqlmodel import col, select
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.foundation.database import now
from switchboard.plugin_sdk import (
    Chunk,
    EmbeddingProvider,
    Embeddings,
    ProviderError,
    ProviderSettings,
    VectorStore,
    hookimpl,
)
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.resources.knowledge_bases import ingestion as adding
from switchboard.resources.knowledge_bases import jobs
from switchboard.resources.knowledge_bases.indexing import DocumentIndexer, reindex_knowledge_bases
from switchboard.resources.knowledge_bases.models import (
    KnowledgeBase,
    KnowledgeDocument,
    VectorDeletion,
    VectorMaintenance,
)
from switchboard.resources.knowledge_bases.schemas import DocumentCreate
from switchboard.resources.knowledge_bases.search import PassageSearch
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json

TEXT = "The bakery is open from seven to six."
LONG_AGO = timedelta(minutes=30)


class WordsEmbedding(EmbeddingProvider[ProviderSettings]):
    """Embedding by the words of a text. It can be made to wait and to fail."""

    name, title = "words", "Words"
    size: ClassVar[int] = 64
    gate: ClassVar[asyncio.Event | None] = None
    waiting: ClassVar[asyncio.Event | None] = None
    refusal: ClassVar[str | None] = None

    async def check(self) -> None:
        """Succeed always."""

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["document", "query"], model: str | None = None
    ) -> Embeddings:
        if self.refusal is not None:
            raise ProviderError(self.refusal)
        if self.gate is not None and self.waiting is not None and len(texts[0]) > 30:
            self.waiting.set()
            await self.gate.wait()
        return Embeddings(f"words-{self.size}", tuple(self._vector(text) for text in texts))

    def _vector(self, text: str) -> tuple[float, ...]:
        vector = [0.01] * self.size
        for word in text.lower().split():
            vector[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) % self.size] += 1
        length = math.hypot(*vector)
        return tuple(part / length for part in vector)


@pytest.fixture
def registry() -> Registry:
    """The installed plugins, and the embedding of this file."""
    registry = Registry.discover()
    registry.add("words", SimpleNamespace(embedding_providers=hookimpl(lambda: [WordsEmbedding])))
    return registry


@pytest.fixture(autouse=True)
def fresh_words(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Restore the settings of the embedding after each test."""
    for name in ("size", "gate", "waiting", "refusal"):
        monkeypatch.setattr(WordsEmbedding, name, getattr(WordsEmbedding, name))
    return monkeypatch


async def configure_embeddings(runtime: Runtime, caller: Caller, *embeddings: str) -> None:
    """Make these the organization's embedding models."""
    providers = [ProviderSpec(Capability.EMBEDDING, name, {}) for name in embeddings] + [
        ProviderSpec(Capability.VECTOR_STORE, "lancedb", {})
    ]
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, providers)


def create_indexer(runtime: Runtime) -> DocumentIndexer:
    return DocumentIndexer(runtime.database, runtime.providers)


async def add_document(caller: Caller, content: str = TEXT, base: object = None) -> Json:
    base = base or (await caller.post("/v1/knowledge-bases", {"name": "Base"})).json["id"]
    return (await caller.post(f"/v1/knowledge-bases/{base}/documents", {"filename": "a.txt", "content": content})).json


async def search_texts(runtime: Runtime, caller: Caller, query: str = "opening hours of the bakery") -> list[str]:
    search = PassageSearch(runtime.database, runtime.providers)
    return [passage.content for passage in await search.search_passages(caller.organization_id, query)]


async def list_stored_texts(runtime: Runtime, caller: Caller, label: str) -> list[str]:
    """Return the texts in the vector store by a model, regardless of the database."""
    vector = (1.0, *(0.0 for _ in range(int(label.rsplit("/", 1)[1]) - 1)))
    async with runtime.providers.use(caller.organization_id, VectorStore) as store:
        matches = await store.search(
            caller.organization_id, label, text="", vector=vector, knowledge_base_ids=None, limit=100
        )
    return sorted(match.text for match in matches)


async def update_document(runtime: Runtime, caller: Caller, document: Json, **values: object) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(
            update(KnowledgeDocument).where(col(KnowledgeDocument.id) == UUID(str(document["id"]))).values(values)
        )


async def get_state(caller: Caller, document: Json) -> tuple[object, object]:
    document_now = (await caller.get(f"/v1/documents/{document['id']}")).json
    return document_now["status"], document_now["error_message"]


async def wait_until_stored(runtime: Runtime, caller: Caller, *texts: str) -> None:
    """Wait for the worker to leave these texts in the vector store."""
    await eventually(
        lambda: list_stored_texts(runtime, caller, "words/words-64/64"), lambda value: value == list(texts)
    )


async def wait_until_ready(caller: Caller, document: Json) -> None:
    await eventually(lambda: get_state(caller, document), lambda value: value == ("ready", None))


async def test_the_reconciler_finishes_a_document_of_a_dead_process(
    runtime: Runtime, caller: Caller, running_worker: None
) -> None:
    await configure_embeddings(runtime, caller, "words")
    document = await add_document(caller)
    await update_document(
        runtime, caller, document, status="processing", chunk_count=0, attempts=1, process_after=now() - LONG_AGO
    )
    await wait_until_ready(caller, document)
    assert (await caller.get(f"/v1/documents/{document['id']}")).json == document
    assert await search_texts(runtime, caller) == [TEXT]


async def test_a_document_that_repeatedly_kills_its_process_fails_with_a_message(
    runtime: Runtime, caller: Caller
) -> None:
    await configure_embeddings(runtime, caller, "words")
    document = await add_document(caller)
    await update_document(runtime, caller, document, status="processing", attempts=3, process_after=now() - LONG_AGO)
    assert not await create_indexer(runtime).claim_document(caller.organization_id, UUID(str(document["id"])))
    assert await get_state(caller, document) == (
        "failed",
        "Processing was interrupted 3 times. The document may be too large.",
    )


async def test_a_claimed_document_is_left_alone(runtime: Runtime, caller: Caller) -> None:
    await configure_embeddings(runtime, caller, "words")
    document = await add_document(caller)
    await update_document(runtime, caller, document, status="processing", process_after=now() + timedelta(minutes=1))
    assert not await create_indexer(runtime).claim_document(caller.organization_id, UUID(str(document["id"])))
    await update_document(runtime, caller, document, process_after=now() - LONG_AGO)
    claims = await asyncio.gather(
        *(create_indexer(runtime).claim_document(caller.organization_id, UUID(str(document["id"]))) for _ in range(4))
    )
    assert sum(claims) == 1


async def test_a_request_repeated_after_a_crash_finds_its_document(
    runtime: Runtime, caller: Caller, fresh_words: pytest.MonkeyPatch
) -> None:
    await configure_embeddings(runtime, caller, "words")
    base = (await caller.post("/v1/knowledge-bases", {"name": "Base"})).json["id"]
    gate, waiting = asyncio.Event(), asyncio.Event()
    fresh_words.setattr(WordsEmbedding, "gate", gate)
    fresh_words.setattr(WordsEmbedding, "waiting", waiting)
    path, body = f"/v1/knowledge-bases/{base}/documents", {"filename": "a.txt", "content": TEXT}
    request = adding.add_document(
        create_indexer(runtime), caller.organization_id, UUID(str(base)), DocumentCreate(**body), idempotency_key="one"
    )
    request_task = asyncio.create_task(request)
    await waiting.wait()
    request_task.cancel()
    await asyncio.gather(request_task, return_exceptions=True)
    gate.set()
    again = await caller.send("POST", path, body, Idempotency_Key="one")
    assert (again.status, again.json["status"]) == (201, "ready")
    await update_document(runtime, caller, again.json, created_at=now() - timedelta(days=2))
    later = await adding.add_document(
        create_indexer(runtime), caller.organization_id, UUID(str(base)), DocumentCreate(**body), idempotency_key="one"
    )
    assert str(later.id) != again.json["id"]
    assert (await caller.get(path)).json["total"] == 2


async def test_a_failing_provider_leaves_a_reason_and_reindexing_repairs_it(
    runtime: Runtime, caller: Caller, fresh_words: pytest.MonkeyPatch
) -> None:
    await configure_embeddings(runtime, caller, "words")
    fresh_words.setattr(WordsEmbedding, "refusal", "quota exceeded")
    document = await add_document(caller)
    assert (document["status"], document["error_message"], document["chunk_count"]) == ("failed", "quota exceeded", 0)
    with pytest.raises(ProviderError, match="quota exceeded"):
        await reindex_knowledge_bases(create_indexer(runtime), caller.organization_id)
    fresh_words.setattr(WordsEmbedding, "refusal", None)
    await reindex_knowledge_bases(create_indexer(runtime), caller.organization_id)
    assert await get_state(caller, document) == ("ready", None)
    assert await search_texts(runtime, caller) == [TEXT]


async def test_deleted_documents_leave_the_vector_store_despite_a_lost_wake_up(
    runtime: Runtime, caller: Caller, running_worker: None
) -> None:
    await configure_embeddings(runtime, caller, "words")
    document = await add_document(caller)
    remaining = await add_document(caller, "Another text which stays.", document["knowledge_base_id"])
    assert (await caller.send("DELETE", f"/v1/documents/{document['id']}")).status == 204
    assert await search_texts(runtime, caller) == ["Another text which stays."]
    await runtime.redis.flushdb()
    await wait_until_stored(runtime, caller, "Another text which stays.")
    assert (await caller.send("DELETE", f"/v1/knowledge-bases/{remaining['knowledge_base_id']}")).status == 204
    await wait_until_stored(runtime, caller)


async def test_chunks_stored_during_a_deletion_are_deleted_in_the_second_round(
    runtime: Runtime, caller: Caller
) -> None:
    await configure_embeddings(runtime, caller, "words")
    document = await add_document(caller)
    organization_id, document_id = caller.organization_id, UUID(str(document["id"]))
    async with runtime.providers.use(organization_id, VectorStore) as store:
        await caller.send("DELETE", f"/v1/documents/{document_id}")
        await runtime.call(jobs.delete_vectors, organization_id=organization_id)
        late = Chunk(UUID(str(document["knowledge_base_id"])), document_id, 0, TEXT, (1.0, *[0.0] * 63))
        await store.put(organization_id, "words/words-64/64", [late])
    assert await search_texts(runtime, caller) == []
    async with runtime.database.write(organization_id) as session:
        (again,) = (await session.exec(select(VectorDeletion))).all()
        assert again.due_at == again.created_at + jobs.SETTLED
        again.created_at = again.due_at = now() - LONG_AGO
    await runtime.call(jobs.delete_vectors, organization_id=organization_id)
    assert await list_stored_texts(runtime, caller, "words/words-64/64") == []
    async with runtime.database.write(organization_id) as session:
        assert (await session.exec(select(VectorDeletion))).all() == []


async def test_changes_are_compacted_a_minute_later(runtime: Runtime, caller: Caller) -> None:
    await configure_embeddings(runtime, caller, "words")
    await add_document(caller)
    organization_id = caller.organization_id
    async with runtime.database.write(organization_id) as session:
        (due,) = (await session.exec(select(VectorMaintenance))).all()
        assert now() + timedelta(seconds=50) < due.due_at < now() + timedelta(seconds=70)
        due.due_at = now() - LONG_AGO
    await runtime.call(jobs.maintain_vectors, organization_id=organization_id)
    async with runtime.database.write(organization_id) as session:
        assert (await session.exec(select(VectorMaintenance))).all() == []
    assert await search_texts(runtime, caller) == [TEXT]


async def test_a_changed_model_reindexes_while_searches_continue(
    runtime: Runtime, caller: Caller, fresh_words: pytest.MonkeyPatch
) -> None:
    await configure_embeddings(runtime, caller, "minilm", "words")
    first = await add_document(caller)
    await configure_embeddings(runtime, caller, "words", "minilm")
    second = await add_document(caller, "You may park your car behind the church.", first["knowledge_base_id"])
    assert second["status"] == "ready"
    gate, waiting = asyncio.Event(), asyncio.Event()
    fresh_words.setattr(WordsEmbedding, "gate", gate)
    fresh_words.setattr(WordsEmbedding, "waiting", waiting)
    changing = asyncio.create_task(reindex_knowledge_bases(create_indexer(runtime), caller.organization_id))
    await waiting.wait()
    third = await add_document(caller, "Rye bread costs four dollars.", first["knowledge_base_id"])
    assert len(await search_texts(runtime, caller)) == 3
    gate.set()
    (result,) = await changing
    assert (result.model, result.documents, result.passages, result.error) == ("words/words-64/64", 3, 3, None)
    assert len(await search_texts(runtime, caller)) == 3
    assert third["status"] == "ready"
    async with runtime.database.write(caller.organization_id) as session:
        (base,) = (await session.exec(select(KnowledgeBase))).all()
    assert (base.embedding_provider, base.embedding_model, base.embedding_dimension) == ("words", "words-64", 64)
    await runtime.call(jobs.delete_vectors, organization_id=caller.organization_id)
    assert await list_stored_texts(runtime, caller, "minilm/all-MiniLM-L6-v2/384") == []
    assert len(await list_stored_texts(runtime, caller, "words/words-64/64")) == 3
    await configure_embeddings(runtime, caller, "minilm", "words")
    await reindex_knowledge_bases(create_indexer(runtime), caller.organization_id)
    async with runtime.database.write(caller.organization_id) as session:
        assert [deletion.model for deletion in (await session.exec(select(VectorDeletion))).all()] == [
            "words/words-64/64"
        ]
    assert len(await search_texts(runtime, caller)) == 3


async def test_a_document_embedded_by_the_old_model_is_embedded_again(
    runtime: Runtime, caller: Caller, fresh_words: pytest.MonkeyPatch
) -> None:
    await configure_embeddings(runtime, caller, "words", "minilm")
    first = await add_document(caller)
    gate, waiting = asyncio.Event(), asyncio.Event()
    fresh_words.setattr(WordsEmbedding, "gate", gate)
    fresh_words.setattr(WordsEmbedding, "waiting", waiting)
    adding = asyncio.create_task(
        add_document(caller, "You may park your car behind the church.", first["knowledge_base_id"])
    )
    await waiting.wait()
    await configure_embeddings(runtime, caller, "minilm", "words")
    await reindex_knowledge_bases(create_indexer(runtime), caller.organization_id)
    gate.set()
    assert (await adding)["status"] == "ready"
    assert len(await search_texts(runtime, caller)) == 2
    assert len(await list_stored_texts(runtime, caller, "minilm/all-MiniLM-L6-v2/384")) == 2


async def test_a_model_that_changes_under_one_name_is_refused_and_never_mixed(
    runtime: Runtime, caller: Caller, fresh_words: pytest.MonkeyPatch
) -> None:
    await configure_embeddings(runtime, caller, "words")
    first = await add_document(caller)
    fresh_words.setattr(WordsEmbedding, "size", 32)
    second = await add_document(caller, "You may park behind the church.", first["knowledge_base_id"])
    assert second["status"] == "failed"
    assert "words-64/64, but the provider returns words/words-32/32: run `switchboard knowledge reindex`" in str(
        second["error_message"]
    )
    refused = await caller.post("/v1/knowledge-bases/search", {"query": "bakery"})
    assert (refused.status, refused.json["code"]) == (502, "provider_error")
    await reindex_knowledge_bases(create_indexer(runtime), caller.organization_id)
    assert len(await search_texts(runtime, caller)) == 2


async def test_a_lost_vector_store_is_rebuilt_from_the_texts(runtime: Runtime, caller: Caller, tmp_path: Path) -> None:
    await configure_embeddings(runtime, caller, "words")
    await add_document(caller)
    await runtime.providers.close()
    (runtime.settings.data_dir / "vectors").rename(tmp_path / uuid4().hex)
    assert await search_texts(runtime, caller) == []
    await reindex_knowledge_bases(create_indexer(runtime), caller.organization_id)
    assert await search_texts(runtime, caller) == [TEXT]
