"""Warnings of models that end, for the organizations whose agents, knowledge bases, or settings use them."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from switchboard.engine.providers.editing import find_provider
from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.model_ends import ModelEnd, list_known_ends, list_used_models, select_due_ends
from switchboard.engine.providers.models import ProviderConfiguration
from switchboard.foundation.database import Database, ReadSession
from switchboard.plugin_sdk import Provider
from switchboard.plugin_sdk.registry import CAPABILITIES, AnyCapability, Capability, Registry
from switchboard.resources.agents.queries import list_agents_using_provider
from switchboard.resources.knowledge_bases.queries import list_oldest_knowledge_bases

MODEL_FIELDS: Final = {
    Capability.SPEECH_TO_TEXT: "stt_model",
    Capability.TEXT_TO_SPEECH: "tts_model",
    Capability.LLM: "llm_model",
}
"""Settings of agents that name a model."""


@dataclass(frozen=True, slots=True)
class ModelEndCheck:
    """Finds the ends of the models that an organization uses."""

    providers: Providers
    registry: Registry
    database: Database

    async def find(self, organization_id: UUID, capability: AnyCapability, name: str) -> list[ModelEnd]:
        """Ask a provider that has been checked for the ends that are due. Raises `ProviderError`."""
        if not isinstance(capability, Capability):
            return []
        async with self.database.read(organization_id) as session:
            row = await find_provider(session, capability, name)
            models = [] if row is None else await _list_models_in_use(session, self.registry, row)
        if not models:
            return []
        async with self.providers.use(organization_id, capability.base_class, name) as provider:
            return select_due_ends(await provider.find_model_ends(models))


async def list_ends_without_asking(
    session: ReadSession, registry: Registry, row: ProviderConfiguration
) -> list[ModelEnd]:
    """List the due ends of models that the organization uses at a provider, as far as its plugin knows them."""
    kind = registry.find_class(CAPABILITIES[row.capability], row.name)
    if kind is None or not issubclass(kind, Provider) or not kind.model_ends:
        return []
    return list_known_ends(kind, await _list_models_in_use(session, registry, row))


async def _list_models_in_use(session: ReadSession, registry: Registry, row: ProviderConfiguration) -> list[str]:
    capability = Capability(row.capability)
    kind = registry.find_class(capability, row.name)
    if kind is None or not issubclass(kind, Provider):
        return []
    chosen: list[str | None] = []
    if capability is Capability.EMBEDDING:
        bases = await list_oldest_knowledge_bases(session, row.name)
        chosen = [base.embedding_model for base in bases]
    elif capability in MODEL_FIELDS:
        users = await list_agents_using_provider(session, capability, row.name)
        chosen = [getattr(agent.settings, MODEL_FIELDS[capability]) for agent in users]
    return list_used_models(kind, row.settings, chosen)
