"""Fusion of two rankings: similarity of meaning, and common words."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from switchboard.plugin_sdk import ChunkMatch

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
