"""Texts as vectors, always of one model: vectors of two models say nothing about each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from switchboard.knowledge_bases.models import KnowledgeBase
from switchboard.plugins import ProviderError
from switchboard.runtime import Runtime

Vector = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """What made vectors: the provider's name, its model's, and how long the vectors are."""

    provider: str
    name: str
    dimension: int

    @property
    def label(self) -> str:
        """What the vector store keeps its vectors under."""
        return f"{self.provider}/{self.name}/{self.dimension}"


def model_of(base: KnowledgeBase) -> EmbeddingModel | None:
    """What a knowledge base's vectors were made by, None while it has none."""
    if base.embedding_provider is None or base.embedding_model is None or base.embedding_dimension is None:
        return None
    return EmbeddingModel(base.embedding_provider, base.embedding_model, base.embedding_dimension)


async def embed(
    runtime: Runtime, organization_id: UUID, texts: Sequence[str], *, purpose: Literal["document", "query"], model: EmbeddingModel | None
) -> tuple[EmbeddingModel, list[Vector]]:
    """Vectors by this model, or by the organization's first choice, which is answered too.

    Raises `ProviderError`, also where the provider answers with vectors of another model than was asked for.
    """
    async with runtime.providers.embedding(organization_id, model.provider if model else None) as provider:
        answered = await provider.embed(texts, purpose=purpose, model=model.name if model else None)
        made_by = EmbeddingModel(provider.name, answered.model, len(answered.vectors[0]))
    if model is not None and made_by != model:
        raise ProviderError(
            f"the knowledge base's vectors are {model.label}, but the provider answers {made_by.label}: run `switchboard knowledge reindex`",
            retryable=False,
        )
    return made_by, list(answered.vectors)
