"""A plugin that goes wrong in every way, where its settings say. It is loaded by name in a process of its own."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Literal
from uuid import UUID

from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    Chunk,
    ChunkMatch,
    EmbeddingProvider,
    Embeddings,
    LLMProvider,
    ModelUsage,
    PossibleTurn,
    ProviderError,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    SpeechToTextProvider,
    SpeechToTextStream,
    TextDelta,
    TextToSpeechProvider,
    Transcript,
    TranscriptionRequest,
    TurnDetector,
    TurnPrediction,
    VectorStore,
    Voice,
    hookimpl,
)

from tests.fixtures.lateness import BLOCK_SECONDS

Fault = Literal["none", "raise", "refuse", "hang", "block", "garbage", "endless", "leak", "fork", "exit", "environment"]
Place = Literal["constructor", "open", "call", "stream", "close"]
LEAK_BYTES = 8 * 1024**2
FORKED = "forked.pid"


class FaultSettings(ProviderSettings):
    """The fault, and where it happens. With `once`, it happens to the first process only."""

    fault: Fault = "none"
    place: Place = "call"
    once: bool = False


class Faulty:
    """Common part of the providers."""

    name = "faulty"
    title = "Faulty"
    data_dir: Path

    def __init__(self, settings: FaultSettings) -> None:
        self.settings = settings
        self._leaked: list[bytearray] = []
        if settings.fault != "hang":
            self._go_wrong("constructor")

    def _is_due(self, place: Place) -> bool:
        if self.settings.place != place:
            return False
        if self.settings.once:
            try:
                (self.data_dir / f"{type(self).__name__}.done").touch(exist_ok=False)
            except FileExistsError:
                return False
        return True

    def _go_wrong(self, place: Place) -> None:
        if not self._is_due(place):
            return
        match self.settings.fault:
            case "raise":
                raise KeyError("+15550100001")
            case "refuse":
                raise ProviderError("no credit left", code="402", retryable=False)
            case "block":
                # The tests' clock would stand still during a sleep.
                threading.Event().wait(BLOCK_SECONDS)
            case "leak":
                while True:
                    self._leaked.append(bytearray(os.urandom(1)) * LEAK_BYTES)
            case "fork":
                self._fork()
            case "exit":
                os._exit(7)
            case "environment":
                raise ProviderError(" ".join(sorted(os.environ)))
            case _:
                pass

    def _fork(self) -> None:
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        (self.data_dir / FORKED).write_text(str(child))
        os._exit(7)

    async def _stumble(self, place: Place) -> None:
        if self.settings.fault == "hang" and self._is_due(place):
            await asyncio.Event().wait()
        self._go_wrong(place)

    def _is_garbage(self, fault: Fault = "garbage") -> bool:
        return self.settings.fault == fault

    async def open(self) -> None:
        await self._stumble("open")

    async def close(self) -> None:
        await self._stumble("close")

    async def check(self) -> None:
        await self._stumble("call")


class FaultyModel(Faulty, LLMProvider[FaultSettings]):
    """A model."""

    Settings = FaultSettings

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        await self._stumble("call")
        if self._is_garbage():
            yield TextDelta("x" * 1_000_000)
        while self._is_garbage("endless"):
            yield TextDelta("and on " * 500)
        yield TextDelta("Hello, ")
        await self._stumble("stream")
        yield TextDelta("caller.")
        yield ModelUsage("faulty", 1, 1)


class FaultyVoice(Faulty, TextToSpeechProvider[FaultSettings]):
    """A voice of one tone."""

    Settings = FaultSettings

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        await self._stumble("call")
        if self._is_garbage():
            yield SpeechChunk(bytes(600 * 16_000))
        while self._is_garbage("endless"):
            yield SpeechChunk(bytes(16_000))
        for _ in range(4):
            yield SpeechChunk(b"\x10\x20" * 1000 + b"\x10")
            await self._stumble("stream")

    async def list_voices(self) -> Sequence[Voice]:
        await self._stumble("call")
        return [Voice("tone", "Tone", "en-US")]


class FaultyTranscription(SpeechToTextStream):
    """A transcription that hears "hello" in everything."""

    def __init__(self, provider: Faulty) -> None:
        self._provider = provider
        self._heard: asyncio.Queue[Transcript | None] = asyncio.Queue()

    async def send(self, audio: bytes) -> None:
        await self._provider._stumble("stream")

    async def finalize(self) -> None:
        if self._provider._is_garbage():
            self._heard.put_nowait(Transcript("x" * 1_000_000, is_final=True))
        self._heard.put_nowait(Transcript("hello", is_final=True, finalized=True))

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while (transcript := await self._heard.get()) is not None:
            yield transcript

    async def close(self) -> None:
        self._heard.put_nowait(None)


class FaultyTranscriber(Faulty, SpeechToTextProvider[FaultSettings]):
    """A transcriber."""

    Settings = FaultSettings

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        await self._stumble("call")
        return FaultyTranscription(self)


class FaultyEmbedding(Faulty, EmbeddingProvider[FaultSettings]):
    """Vectors of two dimensions."""

    Settings = FaultSettings

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["document", "query"], model: str | None = None
    ) -> Embeddings:
        await self._stumble("call")
        vectors = tuple((1.0, 0.0) for _ in texts)
        return Embeddings("faulty", ((1.0, 0.0, 0.0), *vectors) if self._is_garbage() else vectors)


class FaultyStore(Faulty, VectorStore[FaultSettings]):
    """A store that finds the same passage again and again."""

    Settings = FaultSettings

    async def put(self, organization_id: UUID, model: str, chunks: Sequence[Chunk]) -> None:
        await self._stumble("call")

    async def search(
        self,
        organization_id: UUID,
        model: str,
        *,
        text: str,
        vector: tuple[float, ...],
        knowledge_base_ids: Sequence[UUID] | None,
        limit: int,
    ) -> Sequence[ChunkMatch]:
        await self._stumble("call")
        base = UUID(int=1)
        score = float("nan") if self._is_garbage() else 1.0
        return [ChunkMatch(base, base, index, "a passage", score) for index in range(limit + 5)]

    async def delete_document(self, organization_id: UUID, document_id: UUID) -> None:
        await self._stumble("call")

    async def delete_knowledge_base(
        self, organization_id: UUID, knowledge_base_id: UUID, *, model: str | None = None
    ) -> None:
        await self._stumble("call")

    async def maintain(self, organization_id: UUID) -> None:
        await self._stumble("call")


class FaultyDetector(Faulty, TurnDetector[FaultSettings]):
    """A detector that takes every pause for the end of a turn."""

    Settings = FaultSettings

    async def predict(self, turn: PossibleTurn) -> TurnPrediction:
        await self._stumble("call")
        return TurnPrediction(float("nan") if self._is_garbage() else 1.0)


@hookimpl
def llm_providers() -> Sequence[type[FaultyModel]]:
    """Add the model."""
    return [FaultyModel]


@hookimpl
def text_to_speech_providers() -> Sequence[type[FaultyVoice]]:
    """Add the voice."""
    return [FaultyVoice]


@hookimpl
def speech_to_text_providers() -> Sequence[type[FaultyTranscriber]]:
    """Add the transcriber."""
    return [FaultyTranscriber]


@hookimpl
def embedding_providers() -> Sequence[type[FaultyEmbedding]]:
    """Add the embeddings."""
    return [FaultyEmbedding]


@hookimpl
def vector_stores() -> Sequence[type[FaultyStore]]:
    """Add the store."""
    return [FaultyStore]


@hookimpl
def turn_detectors() -> Sequence[type[FaultyDetector]]:
    """Add the detector."""
    return [FaultyDetector]
