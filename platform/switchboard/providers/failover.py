"""Providers that are several: the next one is tried where one fails before it has produced anything.

Each is itself a provider of its capability, so whoever uses it knows one type. A model or voice belongs to the provider that the agent chose,
so the others are asked for their defaults.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Generic, TypeAlias, TypeVar

import structlog

from switchboard.conversation.conversion import Converter
from switchboard.observability import metrics
from switchboard.plugins import (
    ChatEvent,
    ChatRequest,
    LLMProvider,
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
from switchboard.plugins.registry import Capability

logger = structlog.get_logger()

Served: TypeAlias = dict[str, str]
"""Filled with the name of the provider that served each capability."""

FIRST_SECONDS = 8.0
"""How long a first token, a first piece of audio or an open stream may take before the next provider is tried."""

ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])
Item = TypeVar("Item")


class _Failover(Generic[ProviderT]):
    """An organization's providers of a capability, in order."""

    name = "failover"
    title = "Failover"

    def __init__(self, providers: Sequence[ProviderT], served: Served) -> None:
        self.settings = ProviderSettings()
        self._providers = list(providers)
        self._served = served

    async def check(self) -> None:
        """Whether all of them work."""
        for provider in self._providers:
            await provider.check()

    def _failed(self, capability: Capability, provider: ProviderT, error: Exception) -> ProviderError:
        metrics.provider_failures.labels(capability.value, provider.name).inc()
        logger.warning("provider failed", capability=capability.value, provider=provider.name, error=str(error) or type(error).__name__)
        if isinstance(error, ProviderError):
            return error
        return ProviderError(f"{provider.title} did not answer within {FIRST_SECONDS:.0f} seconds")

    async def _first(
        self, capability: Capability, attempt: Callable[[ProviderT, bool], AsyncIterator[Item]]
    ) -> AsyncIterator[tuple[ProviderT, Item]]:
        """Items of the first provider that yields any. `attempt` is told whether the provider is the agent's own choice."""
        error = ProviderError(f"the organization has no {capability.value} provider", retryable=False)
        for index, provider in enumerate(self._providers):
            stream = attempt(provider, index == 0)
            async with aclosing(stream):  # type: ignore[type-var]
                try:
                    async with asyncio.timeout(FIRST_SECONDS):
                        first = await anext(stream)
                except StopAsyncIteration:
                    return
                except (ProviderError, TimeoutError) as failure:
                    error = self._failed(capability, provider, failure)
                    continue
                self._served[capability.value] = provider.name
                yield provider, first
                async for item in stream:
                    yield provider, item
                return
        raise error


class FailoverLLM(_Failover[LLMProvider[ProviderSettings]], LLMProvider[ProviderSettings]):
    """Language models in order."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        def attempt(provider: LLMProvider[ProviderSettings], chosen: bool) -> AsyncIterator[ChatEvent]:
            return provider.chat(request if chosen else replace(request, model=None))

        async for _, event in self._first(Capability.LLM, attempt):
            yield event

    def expected_phrases(self, system_prompt: str) -> Sequence[str]:
        return self._providers[0].expected_phrases(system_prompt)


class FailoverTextToSpeech(_Failover[TextToSpeechProvider[ProviderSettings]], TextToSpeechProvider[ProviderSettings]):
    """Voices in order, all in the first one's audio format."""

    def __init__(self, providers: Sequence[TextToSpeechProvider[ProviderSettings]], served: Served) -> None:
        super().__init__(providers, served)
        self.audio_format = providers[0].audio_format  # type: ignore[misc]

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        def attempt(provider: TextToSpeechProvider[ProviderSettings], chosen: bool) -> AsyncIterator[SpeechChunk]:
            return provider.synthesize(request if chosen else replace(request, voice_id=None, model=None))

        converter: Converter | None = None
        async for provider, chunk in self._first(Capability.TEXT_TO_SPEECH, attempt):
            converter = converter or Converter(provider.audio_format, self.audio_format)
            yield SpeechChunk(converter.convert(chunk.audio), chunk.words)
        if converter is not None and (rest := converter.convert(b"", last=True)):
            yield SpeechChunk(rest)

    async def voices(self) -> Sequence[Voice]:
        return await self._providers[0].voices()

    async def has_voice(self, voice_id: str) -> bool:
        return await self._providers[0].has_voice(voice_id)


class FailoverSpeechToText(_Failover[SpeechToTextProvider[ProviderSettings]], SpeechToTextProvider[ProviderSettings]):
    """Transcribers in order, all fed in the first one's audio format. A stream that is lost is reopened with the next one."""

    def __init__(self, providers: Sequence[SpeechToTextProvider[ProviderSettings]], served: Served) -> None:
        super().__init__(providers, served)
        self.audio_format = providers[0].audio_format  # type: ignore[misc]

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        error = ProviderError("the organization has no speech_to_text provider", retryable=False)
        for index, provider in enumerate(self._providers):
            wanted = request if index == 0 else replace(request, model=None)
            try:
                async with asyncio.timeout(FIRST_SECONDS):
                    stream = await provider.transcribe(wanted)
            except (ProviderError, TimeoutError) as failure:
                error = self._failed(Capability.SPEECH_TO_TEXT, provider, failure)
                continue
            self._served[Capability.SPEECH_TO_TEXT.value] = provider.name
            if provider.audio_format == self.audio_format:
                return stream
            return _Converted(stream, Converter(self.audio_format, provider.audio_format))
        raise error


class _Converted(SpeechToTextStream):
    """A stream that takes another audio format than it is given."""

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
