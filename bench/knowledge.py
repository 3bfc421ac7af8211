"""Adding to and searching an organization's knowledge: 10 thousand and 1 million passages in LanceDB, compared with
pgvector in the embedded PostgreSQL.

The vectors are mixtures of real ones (sentences of the prose of the retrieval test, by the offline embedding) with
noise, so that their distribution is realistic. Each text is three of the sentences and a unique number. Only the first
line's figures include embedding.
"""

import asyncio
import json
import random
import re
import struct
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid5

import asyncpg
import numpy as np
import numpy.typing as npt
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.plugin_sdk import Chunk, ProviderSettings
from switchboard_offline.minilm import MiniLMEmbedding
from switchboard_vectorstore.store import LanceSettings, LanceStore
from switchboard_vectorstore.tables import format_table_name

PROSE = Path(__file__).parent.parent / "tests" / "knowledge_bases" / "prose"
SMALL, LARGE, STEP = 10_000, 1_000_000, 20_000
DOCUMENT, BASES = 50, 20
QUERIES, EXACT, LIMIT = 200, 30, 10
PROBES = 20
ORGANIZATION = UUID(int=1)
MODEL = "bench"
SEARCHER = """
import asyncio, json, sys
from bench.knowledge import ORGANIZATION, read_memory
from switchboard_vectorstore.store import LanceSettings, LanceStore

async def main():
    before, store = read_memory("VmRSS"), LanceStore(LanceSettings(uri=sys.argv[1]))
    for text, vector in json.load(sys.stdin):
        await store.search(
            ORGANIZATION, sys.argv[2], text=text, vector=tuple(vector), knowledge_base_ids=None, limit=10
        )
    print(f"memory of a fresh process that only searches: {before} before, {read_memory('VmRSS')} after 50 searches")

asyncio.run(main())
"""
Floats = npt.NDArray[np.float32]
Find = Callable[[str, Floats], Awaitable[Sequence[tuple[UUID, int]]]]


@dataclass(frozen=True, slots=True)
class Material:
    """Sentences and their vectors."""

    sentences: list[str]
    vectors: Floats

    def build_rows(self, chance: np.random.Generator, number: int, first: int) -> tuple[list[str], Floats]:
        """Build texts with their vectors, numbered from `first`."""
        parts = chance.integers(0, len(self.sentences), (number, 3))
        weights = chance.dirichlet((1, 1, 1), number).astype(np.float32)
        vectors = (self.vectors[parts] * weights[:, :, None]).sum(axis=1)
        vectors += chance.normal(0, 0.3 / np.sqrt(vectors.shape[1]), vectors.shape).astype(np.float32)
        texts = [
            f"Ref {first + row}. {' '.join(self.sentences[part] for part in three)}" for row, three in enumerate(parts)
        ]
        return texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


async def load_material() -> Material:
    sentences = sorted(
        {
            part.strip()
            for path in PROSE.glob("*.txt")
            for part in re.split(r"(?<=[.;!?])\s", path.read_text())
            if len(part) > 25
        }
    )
    model = MiniLMEmbedding(ProviderSettings())
    started_at = time.perf_counter()
    vectors = [
        row
        for start in range(0, len(sentences), 100)
        for row in (await model.embed(sentences[start : start + 100], purpose="document")).vectors
    ]
    took = time.perf_counter() - started_at
    single = []
    for sentence in sentences[:50]:
        started_at = time.perf_counter()
        await model.embed([sentence[:60]], purpose="query")
        single.append((time.perf_counter() - started_at) * 1000)
    print(
        f"offline embedding: {len(sentences) / took:.0f} sentences a second, a query p50 "
        f"{np.percentile(single, 50):.1f} ms\n"
    )
    return Material(sentences, np.array(vectors, dtype=np.float32))


def locate_row(row: int) -> tuple[UUID, UUID, int]:
    """Return knowledge base, document, and index of a row."""
    document = row // DOCUMENT
    return UUID(int=1000 + document % BASES), uuid5(ORGANIZATION, str(document)), row % DOCUMENT


def read_memory(label: str) -> str:
    """Read `VmRSS` or `VmHWM` of this process."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(label))
    return f"{int(line.split()[1]) // 1024} MB"


class Lance:
    """The store as the platform uses it."""

    def __init__(self, folder: str) -> None:
        self.store = LanceStore(LanceSettings(uri=folder))

    async def add(self, texts: list[str], vectors: Floats, first: int, *, at_once: int) -> float:
        """Add chunks; return chunks per second."""
        chunks = [
            Chunk(*locate_row(first + row), text, tuple(vector))
            for row, (text, vector) in enumerate(zip(texts, vectors.tolist(), strict=True))
        ]
        started_at = time.perf_counter()
        for start in range(0, len(chunks), at_once):
            await self.store.put(ORGANIZATION, MODEL, chunks[start : start + at_once])
        return len(chunks) / (time.perf_counter() - started_at)

    async def build_index(self) -> float:
        """Build the index; return the seconds."""
        started_at = time.perf_counter()
        await self.store.maintain(ORGANIZATION)
        return time.perf_counter() - started_at

    def find(self, *, words: bool, bases: list[UUID] | None = None) -> Find:
        async def run(text: str, vector: Floats) -> Sequence[tuple[UUID, int]]:
            asked = text if words else ""
            matches = await self.store.search(
                ORGANIZATION, MODEL, text=asked, vector=tuple(vector.tolist()), knowledge_base_ids=bases, limit=LIMIT
            )
            return [(match.document_id, match.index) for match in matches]

        return run

    async def find_exact(self, vector: Floats) -> set[tuple[UUID, int]]:
        """Find the nearest by comparing all of them."""
        table = await (await self.store._connection(ORGANIZATION)).open_table(format_table_name(MODEL))  # noqa: SLF001
        query = (
            table.query()
            .nearest_to(vector)
            .distance_type("dot")
            .bypass_vector_index()
            .select(["document_id", "chunk_index"])
            .limit(LIMIT)
        )
        return {(UUID(row["document_id"]), row["chunk_index"]) for row in await query.to_list()}


class Pgvector:
    """The same rows in the embedded PostgreSQL: HNSW at the small size, IVFFlat at the large, where HNSW takes many
    times as long to build.
    """

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def prepare(self) -> None:
        await self._connection.execute("create extension if not exists vector")
        await self._connection.execute(
            "create table chunk (organization_id uuid, base_id uuid, document_id uuid, chunk_index int, content "
            "text, embedding vector(384))"
        )

    async def add(self, texts: list[str], vectors: Floats, first: int) -> float:
        """Add chunks by COPY; return chunks per second."""
        started_at = time.perf_counter()
        await self._connection.copy_to_table("chunk", source=_encode_copy(texts, vectors, first), format="binary")
        return len(texts) / (time.perf_counter() - started_at)

    async def build_index(self, kind: str) -> float:
        """Build the index; return the seconds."""
        started_at = time.perf_counter()
        await self._connection.execute(f"set maintenance_work_mem = '2GB'; set ivfflat.probes = {PROBES}")
        await self._connection.execute(f"create index chunk_embedding on chunk using {kind}", timeout=3600)
        await self._connection.execute("analyze chunk", timeout=600)
        return time.perf_counter() - started_at

    async def drop_index(self) -> None:
        await self._connection.execute("drop index chunk_embedding")

    async def find(self, _text: str, vector: Floats) -> Sequence[tuple[UUID, int]]:
        rows = await self._connection.fetch(
            (
                "select document_id, chunk_index, content from chunk where organization_id = $1 order by embedding "
                "<#> $2::text::vector limit $3"
            ),
            ORGANIZATION, str(vector.tolist()), LIMIT,
        )  # fmt: skip
        return [(UUID(str(row["document_id"])), row["chunk_index"]) for row in rows]


async def _encode_copy(texts: list[str], vectors: Floats, first: int) -> AsyncIterator[bytes]:
    """Encode rows in PostgreSQL's binary COPY format."""
    yield b"PGCOPY\n\xff\r\n\0" + bytes(8)
    for row, (text, vector) in enumerate(zip(texts, vectors.astype(">f4"), strict=True)):
        base, document, index = locate_row(first + row)
        values = (
            ORGANIZATION.bytes,
            base.bytes,
            document.bytes,
            struct.pack(">i", index),
            text.encode(),
            struct.pack(">hh", 384, 0) + vector.tobytes(),
        )
        yield struct.pack(">h", 6) + b"".join(struct.pack(">i", len(value)) + value for value in values)
    yield struct.pack(">h", -1)


async def time_queries(
    label: str, find: Find, queries: tuple[list[str], Floats], truth: list[set[tuple[UUID, int]]] | None
) -> None:
    took, hits = [], 0
    for text, vector in zip(queries[0][:10], queries[1], strict=False):
        await find(text, vector)
    for place_of, (text, vector) in enumerate(zip(*queries, strict=True)):
        started_at = time.perf_counter()
        matches = await find(text, vector)
        took.append((time.perf_counter() - started_at) * 1000)
        if truth is not None and place_of < len(truth):
            hits += len(truth[place_of] & set(matches))
    p50, p99 = np.percentile(took, [50, 99])
    recall = f"{hits / (LIMIT * len(truth)):10.3f}" if truth else f"{'':10}"
    print(f"{label:52} | {p50:6.1f} | {p99:6.1f} | {recall}", flush=True)


async def compare(lance: Lance, pgvector: Pgvector, queries: tuple[list[str], Floats], size: int) -> None:
    print(f"\n{size:,} passages".ljust(53) + " | p50 ms | p99 ms | recall@10", flush=True)
    truth = [await lance.find_exact(vector) for vector in queries[1][:EXACT]]
    await time_queries("LanceDB, vectors and words: what a search does", lance.find(words=True), queries, None)
    await time_queries(
        "LanceDB, one of 20 knowledge bases", lance.find(words=True, bases=[locate_row(0)[0]]), queries, None
    )
    await time_queries("LanceDB, vectors alone", lance.find(words=False), queries, truth)
    await time_queries("pgvector, vectors alone", pgvector.find, queries, truth)


async def measure(lance: Lance, pgvector: Pgvector) -> None:
    source, chance = await load_material(), np.random.default_rng(1)
    texts, vectors = source.build_rows(chance, QUERIES, 0)
    questions = [f"{' '.join(random.Random(row).sample(text.split(), 8))} {row * 37}" for row, text in enumerate(texts)]
    print(f"memory before LanceDB is imported: {read_memory('VmRSS')}")
    rows = source.build_rows(chance, SMALL, 0)
    print(
        f"adding {SMALL:,} passages, {DOCUMENT} a document: {await lance.add(*rows, 0, at_once=DOCUMENT):,.0f} a second"
    )
    print(f"the same by COPY into PostgreSQL: {await pgvector.add(*rows, 0):,.0f} a second")
    built, other = await lance.build_index(), await pgvector.build_index("hnsw (embedding vector_ip_ops)")
    print(f"indexes: {built:.1f} s; pgvector's HNSW: {other:.1f} s; memory {read_memory('VmRSS')}")
    await compare(lance, pgvector, (questions, vectors), SMALL)
    await pgvector.drop_index()
    for first in range(SMALL, LARGE, STEP):
        rows = source.build_rows(chance, min(STEP, LARGE - first), first)
        await lance.add(*rows, first, at_once=STEP)
        await pgvector.add(*rows, first)
    built, other = (
        await lance.build_index(),
        await pgvector.build_index("ivfflat (embedding vector_ip_ops) with (lists = 1000)"),
    )
    print(f"\nindexes of {LARGE:,}: {built:.1f} s; pgvector's IVFFlat: {other:.1f} s")
    await compare(lance, pgvector, (questions, vectors), LARGE)
    print(f"\nmemory of this process, which added and indexed all of them: at most {read_memory('VmHWM')}", flush=True)
    asked = json.dumps([[text, vector.tolist()] for text, vector in zip(questions[:50], vectors, strict=False)])
    fresh = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SEARCHER, lance.store.settings.uri, MODEL, stdin=asyncio.subprocess.PIPE
    )
    await fresh.communicate(asked.encode())


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = DataDirectory(Path(folder))
        directory.claim()
        async with EmbeddedServers(directory):
            connection = await asyncpg.connect(directory.database_url)
            pgvector = Pgvector(connection)
            await pgvector.prepare()
            await measure(Lance(f"{folder}/vectors"), pgvector)
            await connection.close()
        directory.release()


def run() -> None:
    """Print the tables."""
    asyncio.run(main())
