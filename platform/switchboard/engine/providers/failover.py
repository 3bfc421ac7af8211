"""Providers composed of several: the next one is asked if one fails, or is slow, before it has produced anything.

Each is itself a provider of its capability, so callers use one type. A model or voice belongs to the provider that the
agent chose, so the other providers are asked for their defaults.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

import structlog

from switchboard.engine.conversation.media.conversion import Converter
from switchboard.engine.providers.racing import Race
from switchboard.engine.providers.request_spans import span_request, trace_request
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    LLMProvider,
    ModelUsage,
    Provider,
    ProviderError,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    SpeechToTextProvider,
    SpeechToTextStream,
    TextToSpeechProvider,
    Transcript,
    TranscriptionRequest,
    Voice,
)
from switchboard.plugin_sdk.registry import Capability

logger = structlog.get_logger()

HEDGE_AFTER_SECONDS: Final = 0.7
"""Time without a first item after which the next provider is asked as well, in a call.

Models and voices promise a first byte within 0.1 to 0.6 seconds, and a caller must wait less than a second longer than
usual.
"""
STALL_SECONDS: Final = 8.0
"""Time that the last remaining provider may produce nothing, at the start or in the middle of its response."""
FAILURES: Final = (ProviderError, TimeoutError)
"""Expected errors of a provider; any other exception is a bug in it."""

ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])
Item = TypeVar("Item")


@dataclass(slots=True)
class ServiceRecord:
    """Providers that served each capability, and characters that overtaken voices will bill without having been
    heard.
    """

    served: dict[str, str] = field(default_factory=dict)
    overtaken_characters: int = 0


@dataclass(frozen=True, slots=True)
class _Winner(Generic[ProviderT]):
    """The provider that serves, and those that were asked too and came too late."""

    provider: ProviderT
    overtaken: Sequence[ProviderT]


class _Failover(Generic[ProviderT]):
    """Ordered providers of one capability.

    `hedge_after_seconds`: time without a first item after which the next provider is asked as well.
    """

    name = "failover"
    title = "Failover"

    def __init__(self, providers: Sequence[ProviderT], record: ServiceRecord, *, hedge_after_seconds: float) -> None:
        self.settings = ProviderSettings()
        self._providers = list(providers)
        self._record = record
        self._patience = hedge_after_seconds

    async def check(self) -> None:
        """Check all of the providers."""
        for provider in self._providers:
            await provider.check()

    def _record_failure(self, capability: Capability, provider: ProviderT, error: Exception) -> ProviderError:
        metrics.provider_failures.labels(capability.value, provider.name).inc()
        logger.warning(
            "provider failed",
            capability=capability.value,
            provider=provider.name,
            error=str(error) or type(error).__name__,
        )
        if isinstance(error, ProviderError):
            return error
        return ProviderError(f"{provider.title} did not answer in time")

    async def _first(
        self, capability: Capability, order: Sequence[ProviderT], attempt: Callable[[ProviderT], AsyncIterator[Item]]
    ) -> AsyncIterator[tuple[_Winner[ProviderT], Item]]:
        """Yield the items of the provider that yields first.

        Raises `ProviderError` if no provider yields, or if the winner fails later.
        """
        race: Race[ProviderT, Item] = Race()
        try:
            provider, first = await self._fastest(capability, order, attempt, race)
            winner = _Winner(provider, [other for other in race.runners if other is not provider])
            for slow in winner.overtaken:
                metrics.provider_overtakings.labels(capability.value, slow.name).inc()
                logger.info("provider overtaken", capability=capability.value, provider=slow.name, by=provider.name)
                race.drop(slow)
            self._record.served[capability.value] = provider.name
            yield winner, first
            while (item := await self._next(capability, provider, race)) is not None:
                yield winner, item
        finally:
            await race.stop()

    async def _fastest(
        self,
        capability: Capability,
        order: Sequence[ProviderT],
        attempt: Callable[[ProviderT], AsyncIterator[Item]],
        race: Race[ProviderT, Item],
    ) -> tuple[ProviderT, Item]:
        """Return the provider that yields first, and its first item.

        When one fails or `hedge_after_seconds` pass, the next one is asked as well.
        """
        error = ProviderError(f"the organization has no {capability.value} provider", retryable=False)
        waiting = deque(order)
        while waiting or race.runners:
            if waiting:
                oldest = waiting.popleft()
                race.start(oldest, attempt(oldest))
            try:
                provider, item = await race.next(self._patience if waiting else STALL_SECONDS)
            except TimeoutError as late:
                if not waiting:
                    for provider in race.runners:
                        error = self._record_failure(capability, provider, late)
                    break
                continue
            if item is None:
                race.drop(provider)
                item = ProviderError(f"{provider.title} returned nothing")
            if not isinstance(item, Exception):
                return provider, item
            if not isinstance(item, FAILURES):
                raise item
            error = self._record_failure(capability, provider, item)
        raise error

    async def _next(self, capability: Capability, provider: ProviderT, race: Race[ProviderT, Item]) -> Item | None:
        try:
            _, item = await race.next(STALL_SECONDS)
        except TimeoutError:
            item = ProviderError(f"{provider.title} stopped in the middle of its response")
        if isinstance(item, FAILURES):
            raise self._record_failure(capability, provider, item)
        if isinstance(item, Exception):
            raise item
        return item


class FailoverLLM(_Failover[LLMProvider[ProviderSettings]], LLMProvider[ProviderSettings]):
    """Language models in order of preference."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Yield the fastest model's events, plus usage of overtaken models, which bill for reading the conversation."""

        def attempt(provider: LLMProvider[ProviderSettings]) -> AsyncIterator[ChatEvent]:
            wanted = request if provider is self._providers[0] else replace(request, model=None)
            return trace_request("chat", provider.name, wanted.model, provider.chat(wanted))

        async for winner, event in self._first(Capability.LLM, self._providers, attempt):
            yield event
            if isinstance(event, ModelUsage):
                for slow in winner.overtaken:
                    yield ModelUsage(slow.name, event.input_tokens, 0, detail={"overtaken_by": winner.provider.name})

    def list_expected_phrases(self, system_prompt: str) -> Sequence[str]:
        return self._providers[0].list_expected_phrases(system_prompt)


class FailoverTextToSpeech(_Failover[TextToSpeechProvider[ProviderSettings]], TextToSpeechProvider[ProviderSettings]):
    """Voices in order of preference, all in the first one's audio format.

    A voice that has spoken is asked first from then on, so that the caller hears at most one change of voice.
    """

    def __init__(
        self,
        providers: Sequence[TextToSpeechProvider[ProviderSettings]],
        record: ServiceRecord,
        *,
        hedge_after_seconds: float,
    ) -> None:
        super().__init__(providers, record, hedge_after_seconds=hedge_after_seconds)
        self.audio_format = providers[0].audio_format  # type: ignore[misc]
        self._order = list(self._providers)

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        def attempt(provider: TextToSpeechProvider[ProviderSettings]) -> AsyncIterator[SpeechChunk]:
            wanted = request if provider is self._providers[0] else replace(request, voice_id=None, model=None)
            return trace_request("synthesize", provider.name, wanted.model, provider.synthesize(wanted))

        converter: Converter | None = None
        async for winner, chunk in self._first(Capability.TEXT_TO_SPEECH, list(self._order), attempt):
            if converter is None:
                converter = Converter(winner.provider.audio_format, self.audio_format)
                self._record.overtaken_characters += len(request.text) * len(winner.overtaken)
                self._order.sort(key=lambda provider: provider is not winner.provider)
            yield SpeechChunk(converter.convert(chunk.audio), chunk.words)
        if converter is not None and (rest := converter.convert(b"", last=True)):
            yield SpeechChunk(rest)

    async def list_voices(self) -> Sequence[Voice]:
        return await self._providers[0].list_voices()

    async def has_voice(self, voice_id: str) -> bool:
        return await self._providers[0].has_voice(voice_id)


class FailoverSpeechToText(_Failover[SpeechToTextProvider[ProviderSettings]], SpeechToTextProvider[ProviderSettings]):
    """Transcribers in order of preference, all fed in the first one's audio format.

    A transcriber that does not open in time is skipped. The caller's audio is buffered meanwhile, so opening two at
    once would gain nothing.
    """

    def __init__(
        self,
        providers: Sequence[SpeechToTextProvider[ProviderSettings]],
        record: ServiceRecord,
        *,
        hedge_after_seconds: float,
    ) -> None:
        super().__init__(providers, record, hedge_after_seconds=hedge_after_seconds)
        self.audio_format = providers[0].audio_format  # type: ignore[misc]

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        error = ProviderError("the organization has no speech_to_text provider", retryable=False)
        for provider in self._providers:
            wanted = request if provider is self._providers[0] else replace(request, model=None)
            try:
                async with asyncio.timeout(STALL_SECONDS if provider is self._providers[-1] else self._patience):
                    with span_request("transcribe", provider.name, wanted.model):
                        stream = await provider.transcribe(wanted)
            except FAILURES as failure:
                error = self._record_failure(Capability.SPEECH_TO_TEXT, provider, failure)
                continue
            self._record.served[Capability.SPEECH_TO_TEXT.value] = provider.name
            if provider.audio_format == self.audio_format:
                return stream
            return _ConvertingStream(stream, Converter(self.audio_format, provider.audio_format))
        raise error


class _ConvertingStream(SpeechToTextStream):
    """A stream of a transcriber with a different audio format."""

    def __init__(self, stream: SpeechToTextStream, converter: Converter) -> None:
        self._stream = stream
        self._converter = converter

    async def send(self, audio: bytes) -> None:
        await self._stream.send(self._converter.convert(audio))

    async def finalize(self) -> None:
        await self._stream.finalize()

    def __aiter__(self) -> AsyncIterator[Transcript]:
        return aiter(self._stream)

    async def close(self) -> None:
        await self._stream.close()
