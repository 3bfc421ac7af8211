"""Embeddings: vectors of one model only, because vectors of two models cannot be compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.request_spans import span_request
from switchboard.foundation.database import Database, new_id
from switchboard.plugin_sdk import EmbeddingProvider, ModelUsage, ProviderError
from switchboard.resources.billing import ledger
from switchboard.resources.billing.ledger import calculate_embedding_cost
from switchboard.resources.identity.service import get_policy
from switchboard.resources.knowledge_bases.models import KnowledgeBase

Vector = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """The model that made vectors: provider, model, and number of dimensions."""

    provider: str
    name: str
    dimension: int

    @property
    def label(self) -> str:
        """Key of the model's vectors in the vector store."""
        return f"{self.provider}/{self.name}/{self.dimension}"


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """Vectors in the order of their texts, the model that made them, and the usage."""

    model: EmbeddingModel
    vectors: list[Vector]
    usage: ModelUsage


def get_embedding_model(base: KnowledgeBase) -> EmbeddingModel | None:
    """Return the model of a knowledge base's vectors; None while it has none."""
    if base.embedding_provider is None or base.embedding_model is None or base.embedding_dimension is None:
        return None
    return EmbeddingModel(base.embedding_provider, base.embedding_model, base.embedding_dimension)


def set_embedding_model(base: KnowledgeBase, model: EmbeddingModel) -> None:
    """Set the model of a knowledge base's vectors."""
    base.embedding_provider, base.embedding_model, base.embedding_dimension = (
        model.provider,
        model.name,
        model.dimension,
    )


async def embed_texts(
    providers: Providers,
    organization_id: UUID,
    texts: Sequence[str],
    *,
    purpose: Literal["document", "query"],
    model: EmbeddingModel | None,
) -> EmbeddedTexts:
    """Embed texts with this model, or with the organization's first choice.

    Raises `ProviderError`, also if the provider returns vectors of another model.
    """
    async with providers.use(organization_id, EmbeddingProvider, model.provider if model else None) as provider:
        with span_request("embeddings", provider.name, model.name if model else None):
            answered = await provider.embed(texts, purpose=purpose, model=model.name if model else None)
        made_by = EmbeddingModel(provider.name, answered.model, len(answered.vectors[0]))
    if model is not None and made_by != model:
        raise ProviderError(
            (
                f"the knowledge base has vectors of {model.label}, but the provider returns {made_by.label}: run "
                "`switchboard knowledge reindex`"
            ),
            retryable=False,
        )
    return EmbeddedTexts(
        made_by, list(answered.vectors), ModelUsage(answered.model, answered.input_tokens, 0, answered.cost)
    )


async def charge_embedding(database: Database, organization_id: UUID, usage: Sequence[ModelUsage]) -> None:
    """Charge the organization for embeddings that belong to no call, text message, or simulation."""
    if all(used.cost == 0 for used in usage):
        return
    async with database.write(organization_id) as session:
        cost = calculate_embedding_cost((await get_policy(session, organization_id)).prices, usage)
        await ledger.settle_hold(session, "embedding", new_id(), cost)
