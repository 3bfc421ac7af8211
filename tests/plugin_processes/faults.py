"""Use of the faulty plugin's providers, whatever their capability."""

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from pydantic import JsonValue
from switchboard.engine.providers.factory import ProviderFactory
from switchboard.engine.providers.plugin_processes.plugin_process import PluginProcesses, ProcessLimits
from switchboard.plugin_sdk import (
    ChatRequest,
    EmbeddingProvider,
    LLMProvider,
    Message,
    PossibleTurn,
    Provider,
    ProviderSettings,
    SpeechRequest,
    SpeechToTextProvider,
    TextToSpeechProvider,
    TranscriptionRequest,
    TurnDetector,
    VectorStore,
)
from switchboard.plugin_sdk.registry import Capability, Registry

from tests.plugin_processes import faulty_plugin

AnyProvider = Provider[ProviderSettings]
CAPABILITIES = (
    Capability.LLM,
    Capability.TEXT_TO_SPEECH,
    Capability.SPEECH_TO_TEXT,
    Capability.EMBEDDING,
    Capability.VECTOR_STORE,
    Capability.TURN_DETECTOR,
)
LIMITS = ProcessLimits(count=2, memory_bytes=300 * 1024**2, silence_seconds=1.0)
SOME_ID = UUID(int=1)


def create_factory(folder: Path, limits: ProcessLimits = LIMITS) -> ProviderFactory:
    """Create a factory of the faulty plugin's providers."""
    registry = Registry()
    plugin = registry.add("faulty", faulty_plugin)
    assert plugin.faults == []
    return ProviderFactory(registry, folder, PluginProcesses(limits))


def create_faulty(
    factory: ProviderFactory, capability: Capability, settings: Mapping[str, JsonValue], *, process: str = "own"
) -> AnyProvider:
    """Create a faulty provider."""
    return factory.create(capability, "faulty", settings, process=process)


async def use(provider: AnyProvider) -> object:
    """Let a provider do its work once, and return the result."""
    match provider:
        case LLMProvider():
            return [event async for event in provider.chat(ChatRequest((Message("user", "Hello"),)))]
        case TextToSpeechProvider():
            return [chunk async for chunk in provider.synthesize(SpeechRequest("Hello, caller."))]
        case SpeechToTextProvider():
            return await _transcribe(provider)
        case EmbeddingProvider():
            return await provider.embed(["one", "two"], purpose="document")
        case VectorStore():
            return await provider.search(SOME_ID, "m", text="x", vector=(1.0, 0.0), knowledge_base_ids=None, limit=3)
        case TurnDetector():
            return await provider.predict(PossibleTurn(bytes(320)))
        case _:
            raise AssertionError(provider)


async def _transcribe(provider: SpeechToTextProvider[ProviderSettings]) -> list[str]:
    stream = await provider.transcribe(TranscriptionRequest())
    try:
        await stream.send(bytes(320))
        await stream.finalize()
        heard = []
        async for transcript in stream:
            heard.append(transcript.text)
            if transcript.finalized:
                break
        return heard
    finally:
        await stream.close()
