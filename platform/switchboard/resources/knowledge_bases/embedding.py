"""Texts as vectors, always of one model: vectors of two models say nothing about each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from switchboard.foundation.database import new_id
from switchboard.plugin_sdk import ModelUsage, ProviderError
from switchboard.resources.billing import ledger
from switchboard.resources.billing.costs import calculate_embedding_cost
from switchboard.resources.identity.service import policy_of
from switchboard.resources.knowledge_bases.models import KnowledgeBase
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


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors in the order of their texts, what made them, and what that used."""

    model: EmbeddingModel
    vectors: list[Vector]
    usage: ModelUsage


def model_of(base: KnowledgeBase) -> EmbeddingModel | None:
    """What a knowledge base's vectors were made by, None while it has none."""
    if base.embedding_provider is None or base.embedding_model is None or base.embedding_dimension is None:
        return None
    return EmbeddingModel(base.embedding_provider, base.embedding_model, base.embedding_dimension)


async def embed(
    runtime: Runtime,
    organization_id: UUID,
    texts: Sequence[str],
    *,
    purpose: Literal["document", "query"],
    model: EmbeddingModel | None,
) -> Embedded:
    """Vectors by this model, or by the organization's first choice.

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
    return Embedded(
        made_by, list(answered.vectors), ModelUsage(answered.model, answered.input_tokens, 0, answered.cost)
    )


async def charge(runtime: Runtime, organization_id: UUID, usage: Sequence[ModelUsage]) -> None:
    """Charge the organization for embeddings that no call, text or simulation is charged for."""
    if all(used.cost == 0 for used in usage):
        return
    async with runtime.database.tenant(organization_id) as session:
        cost = calculate_embedding_cost((await policy_of(session, organization_id)).prices, usage)
        await ledger.settle_hold(session, "embedding", new_id(), cost)
