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
from switchboard.resources.knowledge_bases import jobs, vector_maintenance
from switchboard.resources.knowledge_bases.indexing import DocumentIndexer
from switchboard.resources.knowledge_bases.models import (
    KnowledgeBase,
    KnowledgeDocument,
    VectorDeletion,
    VectorMaintenance,
)
from switchboard.resources.knowledge_bases.reindex import reindex_knowledge_bases
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


async def use(runtime: Runtime, caller: Caller, *embeddings: str) -> None:
    """Make these the organization's embedding models."""
    wanted = [ProviderSpec(Capability.EMBEDDING, name, {}) for name in embeddings] + [
        ProviderSpec(Capability.VECTOR_STORE, "lancedb", {})
    ]
    async with runtime.database.tenant(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, wanted)


def indexer(runtime: Runtime) -> DocumentIndexer:
    return DocumentIndexer(runtime.database, runtime.providers)


async def add(caller: Caller, content: str = TEXT, base: object = None) -> Json:
    base = base or (await caller.post("/v1/knowledge-bases", {"name": "Base"})).json["id"]
    return (await caller.post(f"/v1/knowledge-bases/{base}/documents", {"filename": "a.txt", "content": content})).json


async def found(runtime: Runtime, caller: Caller, query: str = "opening hours of the bakery") -> list[str]:
    search = PassageSearch(runtime.database, runtime.providers)
    return [passage.content for passage in await search.search_passages(caller.organization_id, query)]


async def in_store(runtime: Runtime, caller: Caller, label: str) -> list[str]:
    """Return the texts in the vector store by a model, regardless of the database."""
    vector = (1.0, *(0.0 for _ in range(int(label.rsplit("/", 1)[1]) - 1)))
    async with runtime.providers.use(caller.organization_id, VectorStore) as store:
        matches = await store.search(
            caller.organization_id, label, text="", vector=vector, knowledge_base_ids=None, limit=100
        )
    return sorted(match.text for match in matches)


async def change(runtime: Runtime, caller: Caller, document: Json, **values: object) -> None:
    async with runtime.database.tenant(caller.organization_id) as session:
        await session.exec(
            update(KnowledgeDocument).where(col(KnowledgeDocument.id) == UUID(str(document["id"]))).values(values)
        )


async def state(caller: Caller, document: Json) -> tuple[object, object]:
    shown = (await caller.get(f"/v1/documents/{document['id']}")).json
    return shown["status"], shown["error_message"]


async def until_stored(runtime: Runtime, caller: Caller, *texts: str) -> None:
    """Wait for the worker to leave these texts in the vector store."""
    await eventually(lambda: in_store(runtime, caller, "words/words-64/64"), lambda found: found == list(texts))


async def until_ready(caller: Caller, document: Json) -> None:
    await eventually(lambda: state(caller, document), lambda found: found == ("ready", None))


async def test_a_document_whose_process_died_is_made_ready_by_the_sweep(
    runtime: Runtime, caller: Caller, working: None
) -> None:
    await use(runtime, caller, "words")
    document = await add(caller)
    await change(
        runtime, caller, document, status="processing", chunk_count=0, attempts=1, process_after=now() - LONG_AGO
    )
    await jobs.reconcile_knowledge(runtime)
    await until_ready(caller, document)
    assert (await caller.get(f"/v1/documents/{document['id']}")).json == document
    assert await found(runtime, caller) == [TEXT]


async def test_one_that_kills_its_processes_is_given_up_with_a_message(runtime: Runtime, caller: Caller) -> None:
    await use(runtime, caller, "words")
    document = await add(caller)
    await change(runtime, caller, document, status="processing", attempts=3, process_after=now() - LONG_AGO)
    assert not await indexer(runtime).claim_document(caller.organization_id, UUID(str(document["id"])))
    assert await state(caller, document) == (
        "failed",
        "Processing was interrupted 3 times. The document may be too large.",
    )


async def test_a_document_that_somebody_is_at_is_left_alone(runtime: Runtime, caller: Caller) -> None:
    await use(runtime, caller, "words")
    document = await add(caller)
    await change(runtime, caller, document, status="processing", process_after=now() + timedelta(minutes=1))
    assert not await indexer(runtime).claim_document(caller.organization_id, UUID(str(document["id"])))
    await change(runtime, caller, document, process_after=now() - LONG_AGO)
    claims = await asyncio.gather(
        *(indexer(runtime).claim_document(caller.organization_id, UUID(str(document["id"]))) for _ in range(4))
    )
    assert sum(claims) == 1


async def test_the_same_request_after_a_crash_finds_its_document(
    runtime: Runtime, caller: Caller, fresh_words: pytest.MonkeyPatch
) -> None:
    await use(runtime, caller, "words")
    base = (await caller.post("/v1/knowledge-bases", {"name": "Base"})).json["id"]
    gate, waiting = asyncio.Event(), asyncio.Event()
    fresh_words.setattr(WordsEmbedding, "gate", gate)
    fresh_words.setattr(WordsEmbedding, "waiting", waiting)
    path, body = f"/v1/knowledge-bases/{base}/documents", {"filename": "a.txt", "content": TEXT}
    request = adding.add_document(
        indexer(runtime), caller.organization_id, UUID(str(base)), DocumentCreate(**body), idempotency_key="one"
    )
    dying = asyncio.create_task(request)
    await waiting.wait()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    gate.set()
    again = await caller.send("POST", path, body, Idempotency_Key="one")
    assert (again.status, again.json["status"]) == (201, "ready")
    await change(runtime, caller, again.json, created_at=now() - timedelta(days=2))
    later = await adding.add_document(
        indexer(runtime), caller.organization_id, UUID(str(base)), DocumentCreate(**body), idempotency_key="one"
    )
    assert str(later.id) != again.json["id"]
    assert (await caller.get(path)).json["total"] == 2


async def test_a_provider_that_fails_leaves_the_reason_and_reindex_repairs_it(
    runtime: Runtime, caller: Caller, fresh_words: pytest.MonkeyPatch
) -> None:
    await use(runtime, caller, "words")
    fresh_words.setattr(WordsEmbedding, "refusal", "quota exceeded")
    document = await add(caller)
    assert (document["status"], document["error_message"], document["chunk_count"]) == ("failed", "quota exceeded", 0)
    with pytest.raises(ProviderError, match="quota exceeded"):
        await reindex_knowledge_bases(indexer(runtime), caller.organization_id)
    fresh_words.setattr(WordsEmbedding, "refusal", None)
    await reindex_knowledge_bases(indexer(runtime), caller.organization_id)
    assert await state(caller, document) == ("ready", None)
    assert await found(runtime, caller) == [TEXT]


async def test_deleted_documents_leave_the_vector_store_even_where_the_wake_up_was_lost(
    runtime: Runtime, caller: Caller, working: None
) -> None:
    await use(runtime, caller, "words")
    document = await add(caller)
    kept = await add(caller, "Another text which stays.", document["knowledge_base_id"])
    assert (await caller.send("DELETE", f"/v1/documents/{document['id']}")).status == 204
    assert await found(runtime, caller) == ["Another text which stays."]
    await runtime.redis.flushdb()
    await until_stored(runtime, caller, "Another text which stays.")
    assert (await caller.send("DELETE", f"/v1/knowledge-bases/{kept['knowledge_base_id']}")).status == 204
    await until_stored(runtime, caller)


async def test_what_was_put_by_one_who_did_not_know_of_the_deletion_goes_with_the_second_round(
    runtime: Runtime, caller: Caller
) -> None:
    await use(runtime, caller, "words")
    document = await add(caller)
    organization_id, document_id = caller.organization_id, UUID(str(document["id"]))
    async with runtime.providers.use(organization_id, VectorStore) as store:
        await caller.send("DELETE", f"/v1/documents/{document_id}")
        await vector_maintenance.delete_due_vectors(runtime.database, runtime.providers, organization_id)
        late = Chunk(UUID(str(document["knowledge_base_id"])), document_id, 0, TEXT, (1.0, *[0.0] * 63))
        await store.put(organization_id, "words/words-64/64", [late])
    assert await found(runtime, caller) == []
    async with runtime.database.tenant(organization_id) as session:
        (again,) = (await session.exec(select(VectorDeletion))).all()
        assert again.due_at == again.created_at + vector_maintenance.SETTLED
        again.created_at = again.due_at = now() - LONG_AGO
    await vector_maintenance.delete_due_vectors(runtime.database, runtime.providers, organization_id)
    assert await in_store(runtime, caller, "words/words-64/64") == []
    async with runtime.database.tenant(organization_id) as session:
        assert (await session.exec(select(VectorDeletion))).all() == []


async def test_changes_are_compacted_a_minute_later(runtime: Runtime, caller: Caller) -> None:
    await use(runtime, caller, "words")
    await add(caller)
    organization_id = caller.organization_id
    async with runtime.database.tenant(organization_id) as session:
        (due,) = (await session.exec(select(VectorMaintenance))).all()
        assert now() + timedelta(seconds=50) < due.due_at < now() + timedelta(seconds=70)
        due.due_at = now() - LONG_AGO
    await jobs.maintain_vectors(runtime, organization_id=str(organization_id))
    async with runtime.database.tenant(organization_id) as session:
        assert (await session.exec(select(VectorMaintenance))).all() == []
    assert await found(runtime, caller) == [TEXT]


async def test_a_change_of_the_model_is_a_reindex_during_which_searches_go_on(
    runtime: Runtime, caller: Caller, fresh_words: pytest.MonkeyPatch
) -> None:
    await use(runtime, caller, "minilm", "words")
    first = await add(caller)
    await use(runtime, caller, "words", "minilm")
    second = await add(caller, "You may park your car behind the church.", first["knowledge_base_id"])
    assert second["status"] == "ready"
    gate, waiting = asyncio.Event(), asyncio.Event()
    fresh_words.setattr(WordsEmbedding, "gate", gate)
    fresh_words.setattr(WordsEmbedding, "waiting", waiting)
    changing = asyncio.create_task(reindex_knowledge_bases(indexer(runtime), caller.organization_id))
    await waiting.wait()
    third = await add(caller, "Rye bread costs four dollars.", first["knowledge_base_id"])
    assert len(await found(runtime, caller)) == 3
    gate.set()
    (result,) = await changing
    assert (result.model, result.documents, result.passages, result.error) == ("words/words-64/64", 3, 3, None)
    assert len(await found(runtime, caller)) == 3
    assert third["status"] == "ready"
    async with runtime.database.tenant(caller.organization_id) as session:
        (base,) = (await session.exec(select(KnowledgeBase))).all()
    assert (base.embedding_provider, base.embedding_model, base.embedding_dimension) == ("words", "words-64", 64)
    await vector_maintenance.delete_due_vectors(runtime.database, runtime.providers, caller.organization_id)
    assert await in_store(runtime, caller, "minilm/all-MiniLM-L6-v2/384") == []
    assert len(await in_store(runtime, caller, "words/words-64/64")) == 3
    await use(runtime, caller, "minilm", "words")
    await reindex_knowledge_bases(indexer(runtime), caller.organization_id)
    async with runtime.database.tenant(caller.organization_id) as session:
        assert [deletion.model for deletion in (await session.exec(select(VectorDeletion))).all()] == [
            "words/words-64/64"
        ]
    assert len(await found(runtime, caller)) == 3


async def test_a_document_that_was_embedded_by_the_old_model_meanwhile_is_done_again(
    runtime: Runtime, caller: Caller, fresh_words: pytest.MonkeyPatch
) -> None:
    await use(runtime, caller, "words", "minilm")
    first = await add(caller)
    gate, waiting = asyncio.Event(), asyncio.Event()
    fresh_words.setattr(WordsEmbedding, "gate", gate)
    fresh_words.setattr(WordsEmbedding, "waiting", waiting)
    adding = asyncio.create_task(add(caller, "You may park your car behind the church.", first["knowledge_base_id"]))
    await waiting.wait()
    await use(runtime, caller, "minilm", "words")
    await reindex_knowledge_bases(indexer(runtime), caller.organization_id)
    gate.set()
    assert (await adding)["status"] == "ready"
    assert len(await found(runtime, caller)) == 2
    assert len(await in_store(runtime, caller, "minilm/all-MiniLM-L6-v2/384")) == 2


async def test_a_model_that_changes_behind_its_name_is_refused_and_never_mixed(
    runtime: Runtime, caller: Caller, fresh_words: pytest.MonkeyPatch
) -> None:
    await use(runtime, caller, "words")
    first = await add(caller)
    fresh_words.setattr(WordsEmbedding, "size", 32)
    second = await add(caller, "You may park behind the church.", first["knowledge_base_id"])
    assert second["status"] == "failed"
    assert "words-64/64, but the provider returns words/words-32/32: run `switchboard knowledge reindex`" in str(
        second["error_message"]
    )
    refused = await caller.post("/v1/knowledge-bases/search", {"query": "bakery"})
    assert (refused.status, refused.json["code"]) == (502, "provider_error")
    await reindex_knowledge_bases(indexer(runtime), caller.organization_id)
    assert len(await found(runtime, caller)) == 2


async def test_a_lost_vector_store_is_rebuilt_from_the_texts(runtime: Runtime, caller: Caller, tmp_path: Path) -> None:
    await use(runtime, caller, "words")
    await add(caller)
    await runtime.providers.close()
    (runtime.settings.data_dir / "vectors").rename(tmp_path / uuid4().hex)
    assert await found(runtime, caller) == []
    await reindex_knowledge_bases(indexer(runtime), caller.organization_id)
    assert await found(runtime, caller) == [TEXT]
