"""Providers of one conversation: the agent's own first, the organization's others as fallbacks."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

import structlog

from switchboard.engine.providers.failover import (
    HEDGE_AFTER_SECONDS,
    STALL_SECONDS,
    FailoverLLM,
    FailoverSpeechToText,
    FailoverTextToSpeech,
    RankedProvider,
)
from switchboard.engine.providers.health import ProviderHealth
from switchboard.engine.providers.instances import OUTAGE_SECONDS, Providers, ProviderT
from switchboard.engine.providers.service import list_provider_versions
from switchboard.engine.providers.service_record import ServiceRecord
from switchboard.engine.providers.turn_prediction import DeadlineTurnPredictor
from switchboard.foundation.database import Database, retry_while_away
from switchboard.plugin_sdk import (
    LLMProvider,
    ProviderError,
    ProviderSettings,
    SpeechToTextProvider,
    TextToSpeechProvider,
    TurnDetector,
)
from switchboard.plugin_sdk.registry import find_capability

logger = structlog.get_logger()


class ProviderChoice(Protocol):
    """The providers that an agent names."""

    stt_provider: str
    tts_provider: str
    llm_provider: str


@dataclass(frozen=True, slots=True)
class ConversationProviders:
    """Providers of a conversation; each of them fails over by itself. Without a turn predictor words are judged."""

    speech_to_text: SpeechToTextProvider[ProviderSettings]
    text_to_speech: TextToSpeechProvider[ProviderSettings]
    llm: LLMProvider[ProviderSettings]
    turn_predictor: DeadlineTurnPredictor | None


@asynccontextmanager
async def open_conversation_providers(
    database: Database,
    providers: Providers,
    organization_id: UUID,
    agent: ProviderChoice,
    *,
    record: ServiceRecord,
    predicts_turns: bool,
) -> AsyncIterator[ConversationProviders]:
    """Open the providers of one call. `record` collects which of them served. Raises `ProviderError`.

    A turn predictor is opened if the call `predicts_turns`, and the organization has a turn detector that works.
    """
    async with AsyncExitStack() as stack:
        opening = _Opening(stack, database, providers, organization_id, record)
        transcribers = await opening.open_all(SpeechToTextProvider, agent.stt_provider)
        voices = await opening.open_all(TextToSpeechProvider, agent.tts_provider)
        models = await opening.open_all(LLMProvider, agent.llm_provider)
        detectors = await opening.open_available(TurnDetector) if predicts_turns else []
        yield ConversationProviders(
            FailoverSpeechToText(transcribers, record, hedge_after_seconds=HEDGE_AFTER_SECONDS),
            FailoverTextToSpeech(voices, record, hedge_after_seconds=HEDGE_AFTER_SECONDS),
            FailoverLLM(models, record, hedge_after_seconds=HEDGE_AFTER_SECONDS),
            DeadlineTurnPredictor(detectors, record) if detectors else None,
        )


@asynccontextmanager
async def open_agent_model(
    database: Database,
    providers: Providers,
    organization_id: UUID,
    agent: ProviderChoice,
    record: ServiceRecord | None = None,
) -> AsyncIterator[LLMProvider[ProviderSettings]]:
    """Open the agent's model for written replies. Raises `ProviderError`.

    Nobody waits on a line, so another model is asked only after a failure.
    """
    async with AsyncExitStack() as stack:
        record = record or ServiceRecord()
        opening = _Opening(stack, database, providers, organization_id, record)
        models = await opening.open_all(LLMProvider, agent.llm_provider)
        yield FailoverLLM(models, record, hedge_after_seconds=STALL_SECONDS)


@dataclass(frozen=True, slots=True)
class _Opening:
    """Opens an organization's providers until the stack is left."""

    stack: AsyncExitStack
    database: Database
    providers: Providers
    organization_id: UUID
    record: ServiceRecord

    async def open_all(self, base: type[ProviderT], first: str) -> list[RankedProvider[ProviderT]]:
        """Open every provider of a capability, the agent's choice first, and leave out those that cannot be opened.

        Degraded ones are left out too, unless there is no other. Raises the first `ProviderError` if none is left.
        """
        capability = find_capability(base)
        healths = await self._list_healths(base)
        if first not in (health.name for health in healths):
            logger.warning("the agent's provider is not configured", capability=capability.value, provider=first)
        # The sorts are stable, so the order of preference remains within each group.
        healths.sort(key=lambda health: (health.degraded, health.name != first))
        opened: list[RankedProvider[ProviderT]] = []
        problem = ProviderError(f"the organization has no {capability.value} provider", retryable=False)
        for health in healths:
            if health.degraded and opened:
                break
            result = await self._open(base, health, chosen=health.name == first)
            if isinstance(result, ProviderError):
                problem = result
            else:
                opened.append(result)
        if not opened:
            raise problem
        return opened

    async def open_available(self, base: type[ProviderT]) -> list[RankedProvider[ProviderT]]:
        """Open the providers of a capability that a call can do without, as far as they are healthy."""
        healthy = [health for health in await self._list_healths(base) if not health.degraded]
        results = [await self._open(base, health, chosen=True) for health in healthy]
        return [result for result in results if not isinstance(result, ProviderError)]

    async def _list_healths(self, base: type[ProviderT]) -> list[ProviderHealth]:
        async def read_versions() -> dict[str, datetime]:
            async with self.database.tenant(self.organization_id) as session:
                return await list_provider_versions(session, find_capability(base))

        versions = await retry_while_away(read_versions, seconds=OUTAGE_SECONDS)
        return [
            self.providers.find_health(self.organization_id, base, name, version) for name, version in versions.items()
        ]

    async def _open(
        self, base: type[ProviderT], health: ProviderHealth, *, chosen: bool
    ) -> RankedProvider[ProviderT] | ProviderError:
        try:
            provider = await self.stack.enter_async_context(self.providers.use(self.organization_id, base, health.name))
        except ProviderError as error:
            return self.record.record_failure(health, error)
        return RankedProvider(provider, health, chosen=chosen)
