"""Providers of one conversation: the agent's own first, the organization's others as fallbacks."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.providers.failover import (
    HEDGE_AFTER_SECONDS,
    STALL_SECONDS,
    FailoverLLM,
    FailoverSpeechToText,
    FailoverTextToSpeech,
    RankedProvider,
)
from switchboard.engine.providers.health import ProviderHealth, ServiceRecord
from switchboard.engine.providers.instances import Providers, ProviderT
from switchboard.engine.providers.models import StoredConfiguration
from switchboard.engine.providers.turn_prediction import DeadlineTurnPredictor
from switchboard.plugin_sdk import (
    LLMProvider,
    ProviderError,
    ProviderSettings,
    SpeechToTextProvider,
    TextToSpeechProvider,
    TurnDetector,
)
from switchboard.plugin_sdk.registry import Capability, find_capability

logger = structlog.get_logger()
CAPABILITIES: Final = (
    Capability.SPEECH_TO_TEXT,
    Capability.TEXT_TO_SPEECH,
    Capability.LLM,
    Capability.TURN_DETECTOR,
)
"""Capabilities that a conversation may need."""


@dataclass(frozen=True, slots=True)
class ConversationProviders:
    """Providers of a conversation; each of them fails over by itself. Without a turn predictor words are judged."""

    speech_to_text: SpeechToTextProvider[ProviderSettings]
    text_to_speech: TextToSpeechProvider[ProviderSettings]
    llm: LLMProvider[ProviderSettings]
    turn_predictor: DeadlineTurnPredictor | None


@asynccontextmanager
async def open_conversation_providers(
    providers: Providers,
    configurations: Sequence[StoredConfiguration],
    agent: AgentSettings,
    *,
    carrier: str,
    record: ServiceRecord,
    predicts_turns: bool,
) -> AsyncIterator[ConversationProviders]:
    """Open the providers of one call over a carrier, of these configurations. `record` collects which of them served.
    Raises `ProviderError`.

    A turn predictor is opened if the call `predicts_turns`, and there is a turn detector that works: one that the
    organization has chosen, or the default one of calls with people.
    """
    async with AsyncExitStack() as stack:
        opening = _Opening(stack, providers, configurations, record)
        transcribers = await opening.open_all(SpeechToTextProvider, agent.stt_provider)
        voices = await opening.open_all(TextToSpeechProvider, agent.tts_provider)
        models = await opening.open_all(LLMProvider, agent.llm_provider)
        detectors = await opening.open_detectors(carrier, transcribers[0].health.name) if predicts_turns else []
        yield ConversationProviders(
            FailoverSpeechToText(transcribers, record, hedge_after_seconds=HEDGE_AFTER_SECONDS),
            FailoverTextToSpeech(voices, record, hedge_after_seconds=HEDGE_AFTER_SECONDS),
            FailoverLLM(models, record, hedge_after_seconds=HEDGE_AFTER_SECONDS),
            DeadlineTurnPredictor(detectors, record) if detectors else None,
        )


@asynccontextmanager
async def open_agent_model(
    providers: Providers, organization_id: UUID, agent: AgentSettings, record: ServiceRecord | None = None
) -> AsyncIterator[LLMProvider[ProviderSettings]]:
    """Open the agent's model for written replies. Raises `ProviderError`.

    Nobody waits on a line, so another model is asked only after a failure.
    """
    configurations = await providers.read_configurations(organization_id, Capability.LLM)
    async with AsyncExitStack() as stack:
        record = record or ServiceRecord()
        opening = _Opening(stack, providers, configurations, record)
        models = await opening.open_all(LLMProvider, agent.llm_provider)
        yield FailoverLLM(models, record, hedge_after_seconds=STALL_SECONDS)


@dataclass(frozen=True, slots=True)
class _Opening:
    """Opens an organization's providers until the stack is left."""

    stack: AsyncExitStack
    providers: Providers
    configurations: Sequence[StoredConfiguration]
    record: ServiceRecord

    async def open_all(self, base: type[ProviderT], first: str | None) -> list[RankedProvider[ProviderT]]:
        """Open every provider of a capability, the agent's choice first, and leave out those that cannot be opened.

        Degraded ones are left out too, unless there is no other. Raises the first `ProviderError` if none is left.
        """
        capability = find_capability(base)
        candidates = self._list_candidates(base, self.configurations)
        if first not in [row.name for row, _ in candidates]:
            logger.warning("the agent's provider is not configured", capability=capability.value, provider=first)
        # The sorts are stable, so the order of preference remains within each group.
        candidates.sort(key=lambda candidate: (candidate[1].degraded, candidate[0].name != first))
        opened: list[RankedProvider[ProviderT]] = []
        problem = ProviderError(f"the organization has no {capability.value} provider", retryable=False)
        for row, health in candidates:
            if health.degraded and opened:
                break
            result = await self._open(base, row, health, chosen=row.name == first)
            if isinstance(result, ProviderError):
                problem = result
            else:
                opened.append(result)
        if not opened:
            raise problem
        return opened

    async def open_detectors(
        self, carrier: str, transcriber: str
    ) -> list[RankedProvider[TurnDetector[ProviderSettings]]]:
        """Open the turn detectors of a call over this carrier and transcriber, as far as they are healthy."""
        serving = {(Capability.TELEPHONY, carrier), (Capability.SPEECH_TO_TEXT, transcriber)}
        rows = [
            row
            for row in self.configurations
            if row.capability == Capability.TURN_DETECTOR or (row.capability, row.name) in serving
        ]
        candidates = self._list_candidates(TurnDetector, self.providers.add_default_detector(rows))
        results = [
            await self._open(TurnDetector, row, health, chosen=True)
            for row, health in candidates
            if not health.degraded
        ]
        return [result for result in results if not isinstance(result, ProviderError)]

    def _list_candidates(
        self, base: type[ProviderT], configurations: Sequence[StoredConfiguration]
    ) -> list[tuple[StoredConfiguration, ProviderHealth]]:
        """List the configured providers of a capability, each with its health."""
        capability = find_capability(base)
        return [
            (row, self.providers.find_health(row.organization_id, base, row.name, row.updated_at))
            for row in configurations
            if row.capability == capability.value
        ]

    async def _open(
        self, base: type[ProviderT], row: StoredConfiguration, health: ProviderHealth, *, chosen: bool
    ) -> RankedProvider[ProviderT] | ProviderError:
        try:
            provider = await self.stack.enter_async_context(self.providers.use_configuration(row, base))
        except ProviderError as error:
            return self.record.record_failure(health, error)
        return RankedProvider(provider, health, chosen=chosen)
