"""The contracts of the capabilities, kept by providers that run in processes of their own."""

from collections.abc import AsyncIterator
from typing import TypeVar, cast

import pytest
import pytest_asyncio
from pydantic import JsonValue
from switchboard.engine.providers.factory import ProviderFactory
from switchboard.plugin_sdk import (
    ChatRequest,
    EmbeddingProvider,
    LLMProvider,
    Message,
    Provider,
    ProviderSettings,
    SpeechToTextProvider,
    TextToSpeechProvider,
    ToolSpec,
    TranscriptionRequest,
    VectorStore,
)
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.plugin_sdk.testing import (
    EmbeddingContract,
    LLMContract,
    ProviderContract,
    SpeechToTextContract,
    TextToSpeechContract,
    VectorStoreContract,
)

from tests.fixtures.caller_voice import speak_as_caller

PROMPT = 'When the caller says "weather": call weather(city="Paris")'
PHRASES = ("can I speak to a human", "thank you", "goodbye")
REGISTRY = Registry.discover()
AnyProvider = TypeVar("AnyProvider", bound=Provider[ProviderSettings])


def create(folders: pytest.TempPathFactory, capability: Capability, name: str, **settings: JsonValue) -> object:
    """Create an installed provider in a process of its own."""
    return ProviderFactory(REGISTRY, folders.mktemp(name)).create(capability, name, settings, process="own")


class OneProcess(ProviderContract[AnyProvider]):
    """The tests of a contract in one process: starting one takes half a second of the processor."""

    @pytest_asyncio.fixture(scope="class")
    @classmethod
    async def open_provider(cls, provider: AnyProvider) -> AsyncIterator[AnyProvider]:
        await provider.open()
        yield provider
        await provider.close()


class TestModel(OneProcess[LLMProvider[ProviderSettings]], LLMContract[LLMProvider[ProviderSettings]]):
    @pytest.fixture(scope="class")
    @classmethod
    def provider(cls, tmp_path_factory: pytest.TempPathFactory) -> LLMProvider[ProviderSettings]:
        return cast("LLMProvider[ProviderSettings]", create(tmp_path_factory, Capability.LLM, "scripted"))

    @pytest.fixture
    def unknown_model(self) -> None:
        return None

    @pytest.fixture
    def tool_request(self, weather: ToolSpec) -> ChatRequest:
        return ChatRequest((Message("system", PROMPT), Message("user", "weather please")), tools=(weather,))


class TestVoice(
    OneProcess[TextToSpeechProvider[ProviderSettings]], TextToSpeechContract[TextToSpeechProvider[ProviderSettings]]
):
    @pytest.fixture(scope="class")
    @classmethod
    def provider(cls, tmp_path_factory: pytest.TempPathFactory) -> TextToSpeechProvider[ProviderSettings]:
        return cast(
            "TextToSpeechProvider[ProviderSettings]", create(tmp_path_factory, Capability.TEXT_TO_SPEECH, "espeak")
        )


class TestTranscriber(
    OneProcess[SpeechToTextProvider[ProviderSettings]], SpeechToTextContract[SpeechToTextProvider[ProviderSettings]]
):
    @pytest.fixture(scope="class")
    @classmethod
    def provider(cls, tmp_path_factory: pytest.TempPathFactory) -> SpeechToTextProvider[ProviderSettings]:
        return cast(
            "SpeechToTextProvider[ProviderSettings]",
            create(tmp_path_factory, Capability.SPEECH_TO_TEXT, "pocketsphinx"),
        )

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return speak_as_caller("Can I speak to a human?"), "can i speak to a human"

    @pytest.fixture
    def transcription(self) -> TranscriptionRequest:
        return TranscriptionRequest(hints=PHRASES)


class TestEmbeddings(
    OneProcess[EmbeddingProvider[ProviderSettings]], EmbeddingContract[EmbeddingProvider[ProviderSettings]]
):
    @pytest.fixture(scope="class")
    @classmethod
    def provider(cls, tmp_path_factory: pytest.TempPathFactory) -> EmbeddingProvider[ProviderSettings]:
        return cast("EmbeddingProvider[ProviderSettings]", create(tmp_path_factory, Capability.EMBEDDING, "minilm"))


class TestVectorStore(OneProcess[VectorStore[ProviderSettings]], VectorStoreContract[VectorStore[ProviderSettings]]):
    @pytest.fixture(scope="class")
    @classmethod
    def provider(cls, tmp_path_factory: pytest.TempPathFactory) -> VectorStore[ProviderSettings]:
        return cast("VectorStore[ProviderSettings]", create(tmp_path_factory, Capability.VECTOR_STORE, "lancedb"))
