"""One ranking out of two: nearness in meaning, and words in common."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from switchboard.plugin_sdk import ChunkMatch

WORDS_WEIGHT = 0.3
"""How much of a cosine the best possible match of words is worth. This and the next were tried out in tests/knowledge_bases/test_retrieval.py."""
WORDS_HALF = 16.0
"""The BM25 score that is worth half of that. A name or number that few passages have, which counts three times, has about as much."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that a search came upon. `cosine` is to the query; `words` is its BM25 score, 0 where no word is shared."""

    knowledge_base_id: UUID
    document_id: UUID
    index: int
    generation: str
    text: str
    cosine: float
    words: float

    @property
    def score(self) -> float:
        """Both kinds of nearness in one figure."""
        return self.cosine + WORDS_WEIGHT * self.words / (self.words + WORDS_HALF)


def fuse_candidates(candidates: Iterable[Candidate], limit: int) -> list[ChunkMatch]:
    """The best, each chunk once. Of a document that is just being replaced only the newest generation counts."""
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
