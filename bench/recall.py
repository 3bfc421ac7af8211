"""Latency that retrieval adds to a turn of a call: 10 thousand passages in an agent's 20 knowledge bases, searched as
in a call.

`recall` is the model's wait, including the offline embedding and the vector store; `ours` is the rest without these two
providers.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import numpy as np
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.conversation.knowledge import retrieve_context, warm_up
from switchboard.engine.providers.configuration import configure_providers
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.plugin_sdk import Chunk, VectorStore
from switchboard.resources.identity import service as identity
from switchboard.resources.knowledge_bases.models import KnowledgeBase, KnowledgeDocument
from switchboard.resources.knowledge_bases.search import AgentKnowledge, PassageSearch
from switchboard.runtime import Runtime
from switchboard_offline.minilm import MODEL, MiniLMEmbedding
from switchboard_vectorstore.store import LanceStore

from bench.embedded_server import run_with_servers
from bench.knowledge import DOCUMENT, SMALL, load_material, locate_row

QUERIES, PAUSE_SECONDS = 200, 0.05
Answer = TypeVar("Answer")


class Stopwatch:
    """Milliseconds spent in providers since the last reading."""

    def __init__(self) -> None:
        self._spent = 0.0

    def measure(self, work: Callable[..., Awaitable[Answer]]) -> Callable[..., Awaitable[Answer]]:
        async def run_timed(*given: object, **named: object) -> Answer:
            started_at = time.perf_counter()
            try:
                return await work(*given, **named)
            finally:
                self._spent += (time.perf_counter() - started_at) * 1000

        return run_timed

    def read(self) -> float:
        elapsed, self._spent = self._spent, 0.0
        return elapsed


@asynccontextmanager
async def create_knowledge(parts: Runtime) -> AsyncIterator[tuple[AgentKnowledge, list[str]]]:
    """Create an agent's knowledge, and questions about it."""
    async with parts.database.system() as session:
        organization = identity.create_organization(session, name="Bench")
    source, chance = await load_material(), np.random.default_rng(1)
    texts, vectors = source.build_rows(chance, SMALL, 0)
    chunks = [
        Chunk(*locate_row(row), text, tuple(vector))
        for row, (text, vector) in enumerate(zip(texts, vectors.tolist(), strict=True))
    ]
    own_fields = {"organization_id": organization.id}
    model = {"embedding_provider": "minilm", "embedding_model": MODEL, "embedding_dimension": len(chunks[0].vector)}
    bases = {chunk.knowledge_base_id for chunk in chunks}
    file = {
        "filename": "a.txt",
        "content_type": "text/plain",
        "file_size": 1,
        "status": "ready",
        "chunk_count": DOCUMENT,
    }
    async with parts.database.write(organization.id) as session:
        await configure_providers(session, parts.registry, parts.keyring, list_embedded_providers(parts.registry))
        session.add_all([KnowledgeBase(id=base, name="Base", **model, **own_fields) for base in bases])
        await session.flush()
        documents = {chunk.document_id: chunk.knowledge_base_id for chunk in chunks}
        session.add_all(
            [
                KnowledgeDocument(id=document, knowledge_base_id=base, **file, **own_fields)
                for document, base in documents.items()
            ]
        )
    async with parts.providers.use(organization.id, VectorStore) as store:
        await store.put(organization.id, f"minilm/{MODEL}/{len(chunks[0].vector)}", chunks)
        await store.maintain(organization.id)
    questions = [" ".join(chance.permutation(texts[row * DOCUMENT].split())[:8]) for row in range(QUERIES)]
    search = PassageSearch(parts.database, parts.providers)
    yield AgentKnowledge(search, organization.id, [str(base) for base in bases], []), questions


async def measure(directory: DataDirectory) -> None:
    await upgrade(directory.database_url)
    watch = Stopwatch()
    settings = Settings(data_dir=directory.path)
    async with (
        open_process_runtime(settings, database_url=directory.database_url, redis_url=directory.redis_url) as parts,
        create_knowledge(parts) as (knowledge, questions),
    ):
        await warm_up(knowledge)
        MiniLMEmbedding.embed = watch.measure(MiniLMEmbedding.embed)  # type: ignore[method-assign]
        LanceStore.search = watch.measure(LanceStore.search)  # type: ignore[method-assign]
        whole, own_times = [], []
        for question in questions:
            await asyncio.sleep(PAUSE_SECONDS)
            started_at = time.perf_counter()
            if not await retrieve_context(knowledge, question):
                raise SystemExit("nothing was recalled")
            whole.append((time.perf_counter() - started_at) * 1000)
            own_times.append(whole[-1] - watch.read())
    for label, took in (("recall", whole), ("ours", own_times)):
        print(f"{label:8} p50 {np.percentile(took, 50):5.1f} ms, p99 {np.percentile(took, 99):5.1f} ms")


def run() -> None:
    """Print both tables."""
    logs.configure_logging("ERROR")
    run_with_servers(measure)
