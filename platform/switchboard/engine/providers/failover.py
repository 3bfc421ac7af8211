"""Providers composed of several: the next one is asked if one fails, or is slow, before it has produced anything.

Each is itself a provider of its capability, so callers use one type. A model or voice belongs to the provider that the
agent chose, so the other providers are asked for their defaults.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Generic, TypeVar

import structlog
from pydantic import JsonValue

from switchboard.engine.conversation.media.conversion import Converter
from switchboard.engine.providers.health import ProviderHealth, ServiceRecord
from switchboard.engine.providers.request_spans import span_request, trace_request
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import (
    AudioFormat,
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

# Concurrent streams of several providers, of which the fastest is taken.

Item = TypeVar("Item")
RunnerT = TypeVar("RunnerT")


class Race(Generic[RunnerT, Item]):
    """Reads several streams, each in its own task from start to end, because a stream may rely on that
    (`asyncio.timeout` does).
    """

    def __init__(self) -> None:
        self._news: asyncio.Queue[tuple[RunnerT, Item | BaseException | None]] = asyncio.Queue()
        self._reading: dict[RunnerT, asyncio.Task[None]] = {}
        self._stopped: list[asyncio.Task[None]] = []

    @property
    def runners(self) -> list[RunnerT]:
        """Runners whose streams are being read, in the order of their start."""
        return list(self._reading)

    def start(self, runner: RunnerT, stream: AsyncIterator[Item]) -> None:
        """Read another stream."""
        task = asyncio.create_task(self._read(runner, stream))
        task.add_done_callback(partial(self._over, runner))
        self._reading[runner] = task

    def drop(self, runner: RunnerT) -> None:
        """Stop reading a stream at once and ignore its items."""
        task = self._reading.pop(runner)
        task.cancel()
        self._stopped.append(task)

    async def next(self, seconds: float) -> tuple[RunnerT, Item | Exception | None]:
        """Return the next item of any stream, the error of a failed stream, or None for a finished one. Raises
        `TimeoutError`.
        """
        async with asyncio.timeout(seconds):
            while True:
                runner, news = await self._news.get()
                if runner not in self._reading:
                    continue
                if isinstance(news, BaseException):
                    del self._reading[runner]
                    if not isinstance(news, Exception):
                        raise news
                return runner, news

    async def stop(self) -> None:
        """Stop reading, and wait until every stream is closed."""
        for runner in self.runners:
            self.drop(runner)
        await asyncio.gather(*self._stopped, return_exceptions=True)

    async def _read(self, runner: RunnerT, stream: AsyncIterator[Item]) -> None:
        async with aclosing(stream):  # type: ignore[type-var] # providers' streams are generators, which can be closed
            async for item in stream:
                self._news.put_nowait((runner, item))
                # A stream with buffered items never yields to the event loop, and the consumer must get the first
                # item early.
                await asyncio.sleep(0)

    def _over(self, runner: RunnerT, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._news.put_nowait((runner, task.exception()))


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
ProviderT_co = TypeVar("ProviderT_co", bound=Provider[ProviderSettings], covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class RankedProvider(Generic[ProviderT_co]):
    """A provider that may serve. `chosen` is True if the agent names it: the agent's model and voice are then this
    provider's.
    """

    provider: ProviderT_co
    health: ProviderHealth
    chosen: bool


class _Failover(Generic[ProviderT]):
    """Ordered providers of one capability, at least one. Those that are degraded are asked last.

    `hedge_after_seconds`: time without a first item after which the next provider is asked as well. `_in_use` is the
    one that is asked first.
    """

    name = "failover"
    title = "Failover"
    _in_use: RankedProvider[ProviderT] | None = None

    def __init__(
        self, candidates: Sequence[RankedProvider[ProviderT]], record: ServiceRecord, *, hedge_after_seconds: float
    ) -> None:
        self.settings = ProviderSettings()
        self._candidates = list(candidates)
        self._record = record
        self._patience = hedge_after_seconds

    async def check(self) -> None:
        """Check all of the providers."""
        for candidate in self._candidates:
            await candidate.provider.check()

    @property
    def _preferred(self) -> ProviderT:
        return self._candidates[0].provider

    def _list_in_order(self) -> list[RankedProvider[ProviderT]]:
        return sorted(self._candidates, key=lambda each: (each.health.degraded, each is not self._in_use))

    async def _first(
        self, attempt: Callable[[RankedProvider[ProviderT]], AsyncIterator[Item]]
    ) -> AsyncIterator[tuple[RankedProvider[ProviderT], Sequence[RankedProvider[ProviderT]], Item]]:
        """Yield the provider that yields first, those that were asked too and overtaken by it, and each of its items.

        Raises `ProviderError` if no provider yields, or if the winner fails later.
        """
        race: Race[RankedProvider[ProviderT], Item] = Race()
        try:
            candidate, first = await self._fastest(attempt, race)
            overtaken = [other for other in race.runners if other is not candidate]
            for slow in overtaken:
                capability = slow.health.capability.value
                metrics.provider_overtakings.labels(capability, slow.health.name).inc()
                logger.info(
                    "provider overtaken", capability=capability, provider=slow.health.name, by=candidate.health.name
                )
                race.drop(slow)
            self._record.record_success(candidate.health)
            yield candidate, overtaken, first
            while (item := await self._next(candidate, race)) is not None:
                yield candidate, overtaken, item
        finally:
            await race.stop()

    async def _fastest(
        self,
        attempt: Callable[[RankedProvider[ProviderT]], AsyncIterator[Item]],
        race: Race[RankedProvider[ProviderT], Item],
    ) -> tuple[RankedProvider[ProviderT], Item]:
        """Return the candidate that yields first, and its first item.

        When one fails or `hedge_after_seconds` pass, the next one is asked as well.
        """
        waiting = deque(self._list_in_order())
        while True:
            if waiting:
                oldest = waiting.popleft()
                race.start(oldest, attempt(oldest))
            try:
                candidate, item = await race.next(self._patience if waiting else STALL_SECONDS)
            except TimeoutError as late:
                if waiting:
                    continue
                raise [self._record.record_failure(silent.health, late) for silent in race.runners][-1] from late
            if item is None:
                race.drop(candidate)
                item = ProviderError(f"{candidate.provider.title} returned nothing")
            if not isinstance(item, Exception):
                return candidate, item
            if not isinstance(item, FAILURES):
                raise item
            error = self._record.record_failure(candidate.health, item)
            if not waiting and not race.runners:
                raise error

    async def _next(
        self, candidate: RankedProvider[ProviderT], race: Race[RankedProvider[ProviderT], Item]
    ) -> Item | None:
        try:
            _, item = await race.next(STALL_SECONDS)
        except TimeoutError:
            item = ProviderError(f"{candidate.provider.title} stopped in the middle of its response")
        if isinstance(item, FAILURES):
            raise self._record.record_failure(candidate.health, item)
        if isinstance(item, Exception):
            raise item
        return item


class FailoverLLM(_Failover[LLMProvider[ProviderSettings]], LLMProvider[ProviderSettings]):
    """Language models in order of preference."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Yield the fastest model's events, plus usage of overtaken models, which bill for reading the conversation."""

        def attempt(candidate: RankedProvider[LLMProvider[ProviderSettings]]) -> AsyncIterator[ChatEvent]:
            wanted = request if candidate.chosen else replace(request, model=None)
            return trace_request("chat", candidate.health.name, wanted.model, candidate.provider.chat(wanted))

        async for winner, overtaken, event in self._first(attempt):
            yield event
            if isinstance(event, ModelUsage):
                for slow in overtaken:
                    detail: dict[str, JsonValue] = {"overtaken_by": winner.health.name}
                    yield ModelUsage(slow.health.name, event.input_tokens, 0, detail=detail)

    def list_expected_phrases(self, system_prompt: str) -> Sequence[str]:
        return self._preferred.list_expected_phrases(system_prompt)


class FailoverTextToSpeech(_Failover[TextToSpeechProvider[ProviderSettings]], TextToSpeechProvider[ProviderSettings]):
    """Voices in order of preference, all in the first one's audio format.

    A voice that has spoken is asked first from then on, so that the caller hears at most one change of voice.
    """

    @property
    def audio_format(self) -> AudioFormat:  # type: ignore[override]
        return self._preferred.audio_format

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        def attempt(candidate: RankedProvider[TextToSpeechProvider[ProviderSettings]]) -> AsyncIterator[SpeechChunk]:
            wanted = request if candidate.chosen else replace(request, voice_id=None, model=None)
            speech = candidate.provider.synthesize(wanted)
            return trace_request("synthesize", candidate.health.name, wanted.model, speech)

        converter: Converter | None = None
        async for winner, overtaken, chunk in self._first(attempt):
            if converter is None:
                converter = Converter(winner.provider.audio_format, self.audio_format)
                self._record.overtaken_characters += len(request.text) * len(overtaken)
                self._in_use = winner
            yield SpeechChunk(converter.convert(chunk.audio), chunk.words)
        if converter is not None and (rest := converter.convert(b"", last=True)):
            yield SpeechChunk(rest)

    async def list_voices(self) -> Sequence[Voice]:
        return await self._preferred.list_voices()


class FailoverSpeechToText(_Failover[SpeechToTextProvider[ProviderSettings]], SpeechToTextProvider[ProviderSettings]):
    """Transcribers in order of preference, all fed in the first one's audio format.

    A transcriber that does not open in time is skipped. The caller's audio is buffered meanwhile, so opening two at
    once would gain nothing. One whose streams fail again and again is degraded, and the next stream is another's.
    """

    @property
    def audio_format(self) -> AudioFormat:  # type: ignore[override]
        return self._preferred.audio_format

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        order = self._list_in_order()
        for candidate in order:
            wanted = request if candidate.chosen else replace(request, model=None)
            try:
                async with asyncio.timeout(STALL_SECONDS if candidate is order[-1] else self._patience):
                    with span_request("transcribe", candidate.health.name, wanted.model):
                        stream = await candidate.provider.transcribe(wanted)
            except FAILURES as failure:
                error = self._record.record_failure(candidate.health, failure)
                continue
            self._record.served[Capability.SPEECH_TO_TEXT.value] = candidate.health.name
            converter = Converter(self.audio_format, candidate.provider.audio_format)
            return _RecordedStream(stream, candidate.health, self._record, converter)
        raise error


class _RecordedStream(SpeechToTextStream):
    """A transcriber's stream, in the first one's audio format, whose failures and first success are recorded."""

    def __init__(
        self, stream: SpeechToTextStream, health: ProviderHealth, record: ServiceRecord, converter: Converter
    ) -> None:
        self._stream = stream
        self._health = health
        self._record = record
        self._converter = converter
        self._failed = False

    async def send(self, audio: bytes) -> None:
        with self._record_failures():
            await self._stream.send(self._converter.convert(audio))

    async def finalize(self) -> None:
        with self._record_failures():
            await self._stream.finalize()

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        useful = False
        with self._record_failures():
            async for transcript in self._stream:
                if not useful:
                    useful = True
                    self._record.record_success(self._health)
                turn = transcript.turn and replace(transcript.turn, detector=self._health.name)
                yield replace(transcript, turn=turn)

    async def close(self) -> None:
        await self._stream.close()

    @contextmanager
    def _record_failures(self) -> Iterator[None]:
        try:
            yield
        except FAILURES as failure:
            # A lost connection fails sending and reading at once, and is one failure.
            if not self._failed:
                self._failed = True
                self._record.record_failure(self._health, failure)
            raise
