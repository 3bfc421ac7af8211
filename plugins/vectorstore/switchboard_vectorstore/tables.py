"""Tables of one organization: one per embedding model, in the organization's own folder.

A search fuses two rankings: similarity of meaning, and common words.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
from switchboard.plugin_sdk import Chunk, ChunkMatch, ProviderError

from switchboard_vectorstore.library import LanceConflict, translate_lancedb_errors

WORDS_WEIGHT = 0.3
"""Worth of the best possible word match, as a cosine.

This and the next value were tuned in tests/knowledge_bases/test_retrieval.py.
"""
WORDS_HALF = 16.0
"""BM25 score that is worth half of `WORDS_WEIGHT`.

A rare name or number, which counts three times, scores about as much.
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk found by a search. `cosine` is its similarity to the query; `words` its BM25 score, 0 without common
    words.
    """

    knowledge_base_id: UUID
    document_id: UUID
    index: int
    generation: str
    text: str
    cosine: float
    words: float

    @property
    def score(self) -> float:
        """Combined score of both rankings."""
        return self.cosine + WORDS_WEIGHT * self.words / (self.words + WORDS_HALF)


def fuse_candidates(candidates: Iterable[Candidate], limit: int) -> list[ChunkMatch]:
    """Return the best candidates, each chunk once.

    Of a document that is being replaced, only the newest generation counts.
    """
    found = list(candidates)
    newest: dict[UUID, str] = {}
    for candidate in found:
        newest[candidate.document_id] = max(newest.get(candidate.document_id, ""), candidate.generation)
    best: dict[tuple[UUID, int], Candidate] = {}
    for candidate in sorted(found, key=lambda candidate: candidate.score, reverse=True):
        if candidate.generation == newest[candidate.document_id]:
            best.setdefault((candidate.document_id, candidate.index), candidate)
    return [
        ChunkMatch(candidate.knowledge_base_id, candidate.document_id, candidate.index, candidate.text, candidate.score)
        for candidate in list(best.values())[:limit]
    ]


INDEXED_FROM_ROWS = 10_000
"""Below this, comparing every vector takes a few milliseconds and misses nothing."""
REBUILT_AFTER_GROWTH = 4
"""Growth factor after which the vector index is rebuilt, because an index keeps its original partitions."""
VERSIONS_KEPT = timedelta(minutes=10)
"""Age at which files of older versions are deleted; longer than any search or write takes."""
PROBES, REFINED = 20, 5
"""Partitions searched, and the multiple of `limit` whose vectors are compared exactly."""
NAMES = re.compile(r"(?<=\s)[^\W\d_a-z][\w'’-]*|[\w'’-]*\d[\w.,:'’-]*")
NAMES_COUNT = 3
"""Weight of words that distinguish records: words with a digit, and capitalized words inside a sentence."""
RESTORE_ATTEMPTS = 10
SCALARS = ("knowledge_base_id", "document_id")
COLUMNS = ("knowledge_base_id", "document_id", "generation", "chunk_index", "text")


def format_table_name(model: str) -> str:
    """Return a model's table name. A model's name may have any characters, a table's may not."""
    return "model_" + hashlib.sha256(model.encode()).hexdigest()[:24]


def build_id_condition(column: str, ids: Iterable[UUID]) -> str:
    """Return a filter condition. Conditions are strings, so only UUIDs are allowed in one."""
    return f"{column} in ({', '.join(repr(str(UUID(int=one.int))) for one in ids)})"


class ModelTable:
    """Chunks of one organization and one embedding model. Methods raise `ProviderError`."""

    def __init__(self, table: Any) -> None:
        self._table = table

    async def dimension(self) -> int:
        """Return the length of the table's vectors."""
        with translate_lancedb_errors():
            return int((await self._table.schema()).field("vector").type.list_size)

    async def replace(self, chunks: Sequence[Chunk], generation: str) -> None:
        """Add chunks, then delete older ones of the same documents, so that a document can be found at any time."""
        import pyarrow as pa

        values = pa.array([part for chunk in chunks for part in chunk.vector], pa.float32())
        dimension = len(chunks[0].vector)
        with translate_lancedb_errors():
            rows = pa.table(
                {
                    "knowledge_base_id": [str(chunk.knowledge_base_id) for chunk in chunks],
                    "document_id": [str(chunk.document_id) for chunk in chunks],
                    "generation": [generation] * len(chunks),
                    "chunk_index": pa.array([chunk.index for chunk in chunks], pa.int32()),
                    "text": [chunk.text for chunk in chunks],
                    "vector": pa.FixedSizeListArray.from_arrays(values, dimension),
                },
                schema=_schema(dimension),
            )
            await self._table.add(rows)
        same_documents = build_id_condition("document_id", {chunk.document_id for chunk in chunks})
        await self.delete(f"{same_documents} and generation < '{generation}'")

    async def delete(self, condition: str) -> None:
        """Delete the rows that match a condition."""
        with translate_lancedb_errors():
            await self._table.delete(condition)

    async def find_nearest(self, vector: tuple[float, ...], condition: str | None, limit: int) -> list[Candidate]:
        """Return the candidates nearest in meaning."""
        query = self._table.query().nearest_to(list(vector)).distance_type("dot").nprobes(PROBES).refine_factor(REFINED)
        with translate_lancedb_errors():
            rows = await _limit(query.select([*COLUMNS, "_distance"]), condition, limit).to_list()
        return [_candidate(row, cosine=1.0 - row["_distance"]) for row in rows]

    async def find_by_words(
        self, text: str, vector: tuple[float, ...], condition: str | None, limit: int
    ) -> list[Candidate]:
        """Return the candidates with the rarest common words, and their cosine."""
        from lancedb.query import MatchQuery

        # Words are repeated instead of boosted: a boost splits the query in two, which takes twenty times as long
        # among a million passages.
        weighted = " ".join([text, *NAMES.findall(text) * (NAMES_COUNT - 1)])
        query = self._table.query().nearest_to_text(MatchQuery(weighted, "text"))
        with translate_lancedb_errors():
            found = await _limit(query.select([*COLUMNS, "vector", "_score"]), condition, limit).to_arrow()
        cosines = found["vector"].combine_chunks().flatten().to_numpy().reshape(-1, len(vector)) @ np.array(
            vector, np.float32
        )
        rows = found.drop_columns("vector").to_pylist()
        return [
            _candidate(row, cosine=float(cosine), words=row["_score"])
            for row, cosine in zip(rows, cosines, strict=True)
        ]

    async def maintain(self) -> None:
        """Compact the files, add new rows to the indexes, and build the vector index if there are enough rows."""
        with translate_lancedb_errors():
            await self._build_indexes()
            await self._table.optimize(cleanup_older_than=VERSIONS_KEPT)

    async def _build_indexes(self) -> None:
        from lancedb.index import FTS, BTree, IvfFlat, IvfRq

        indexes = {column: index for index in await self._table.list_indices() for column in index.columns}
        rows = await self._table.count_rows()
        for column in SCALARS:
            if column not in indexes and rows:
                await self._table.create_index(column, config=BTree())
        if "text" not in indexes and rows:
            await self._table.create_index("text", config=FTS())
        old = indexes.get("vector")
        # The number of rows that an index was built with is part of its name.
        built_with = 0 if old is None else int(old.name.rpartition("_")[2])
        if rows < max(INDEXED_FROM_ROWS, REBUILT_AFTER_GROWTH * built_with):
            return
        # One bit per dimension selects the vectors to compare exactly. It requires a dimension that is a multiple of 8.
        kind = IvfRq if await self.dimension() % 8 == 0 else IvfFlat
        await self._table.create_index("vector", config=kind(distance_type="dot"), name=f"vector_of_{rows}")
        if old is not None:
            await self._table.drop_index(old.name)


async def open_table(connection: Any, model: str) -> ModelTable | None:
    """Open a model's table at its latest version; None if it does not exist."""
    with translate_lancedb_errors():
        try:
            return ModelTable(await connection.open_table(format_table_name(model)))
        except ValueError as error:
            if "was not found" in str(error):
                return None
            raise


async def open_or_create_table(connection: Any, model: str, dimension: int) -> ModelTable:
    """Open a model's table, or create it. Raises `ProviderError` if it holds vectors of another length."""
    table = await open_table(connection, model) or await _create_table(connection, model, dimension)
    kept = await table.dimension()
    if kept != dimension:
        raise ProviderError(
            f"{model} returned vectors of {kept} dimensions before, and of {dimension} now", retryable=False
        )
    return table


async def _create_table(connection: Any, model: str, dimension: int) -> ModelTable:
    """Create a model's table. Raises `LanceConflict` if another process has created it meanwhile.

    LanceDB looks for the table, and later commits an empty one, even over a table that another process has created in
    between (https://github.com/lance-format/lance/issues/4451). Such a commit is not the first version: what it has
    replaced is added again from the version before it.
    """
    name = format_table_name(model)
    with translate_lancedb_errors():
        created = await connection.create_table(name, schema=_schema(dimension))
        if (version := await created.version()) == 1:
            return ModelTable(created)
        replaced = await connection.open_table(name)
        await replaced.checkout(version - 1)
        rows = await replaced.to_arrow()
    for attempt in range(RESTORE_ATTEMPTS if rows.num_rows else 0):
        try:
            with translate_lancedb_errors():
                await created.checkout_latest()
                await created.add(rows)
            break
        except LanceConflict:  # a third process has replaced the table again
            if attempt == RESTORE_ATTEMPTS - 1:
                raise
    return ModelTable(created)


async def open_all_tables(connection: Any) -> list[ModelTable]:
    """Open the tables of all models."""
    with translate_lancedb_errors():
        listed = await connection.list_tables()
        return [ModelTable(await connection.open_table(name)) for name in listed.tables]


def _schema(dimension: int) -> Any:
    import pyarrow as pa

    texts = [pa.field(name, pa.int32() if name == "chunk_index" else pa.string()) for name in COLUMNS]
    return pa.schema([*texts, pa.field("vector", pa.list_(pa.float32(), dimension))])


def _limit(query: Any, condition: str | None, limit: int) -> Any:
    return (query if condition is None else query.where(condition)).limit(limit)


def _candidate(row: dict[str, Any], *, cosine: float, words: float = 0.0) -> Candidate:
    base, document = UUID(row["knowledge_base_id"]), UUID(row["document_id"])
    return Candidate(base, document, row["chunk_index"], row["generation"], row["text"], cosine, words)
