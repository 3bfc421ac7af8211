"""The contracts of the capabilities, kept by providers that run in processes of their own."""

from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue
from switchboard.engine.providers.factory import ProviderFactory
from switchboard.plugin_sdk import (
    ChatRequest,
    EmbeddingProvider,
    LLMProvider,
    Message,
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
    SpeechToTextContract,
    TextToSpeechContract,
    VectorStoreContract,
)

from tests.fixtures.caller_voice import speak_as_caller

PROMPT = 'When the caller says "weather": call weather(city="Paris")'
PHRASES = ("can I speak to a human", "thank you", "goodbye")
REGISTRY = Registry.discover()


def create(folder: Path, capability: Capability, name: str, **settings: JsonValue) -> object:
    """Create an installed provider in a process of its own."""
    return ProviderFactory(REGISTRY, folder).create(capability, name, settings, process="own")


class TestModel(LLMContract[LLMProvider[ProviderSettings]]):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> LLMProvider[ProviderSettings]:
        return cast("LLMProvider[ProviderSettings]", create(tmp_path, Capability.LLM, "scripted"))

    @pytest.fixture
    def unknown_model(self) -> None:
        return None

    @pytest.fixture
    def tool_request(self, weather: ToolSpec) -> ChatRequest:
        return ChatRequest((Message("system", PROMPT), Message("user", "weather please")), tools=(weather,))


class TestVoice(TextToSpeechContract[TextToSpeechProvider[ProviderSettings]]):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> TextToSpeechProvider[ProviderSettings]:
        return cast("TextToSpeechProvider[ProviderSettings]", create(tmp_path, Capability.TEXT_TO_SPEECH, "espeak"))


class TestTranscriber(SpeechToTextContract[SpeechToTextProvider[ProviderSettings]]):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> SpeechToTextProvider[ProviderSettings]:
        return cast(
            "SpeechToTextProvider[ProviderSettings]", create(tmp_path, Capability.SPEECH_TO_TEXT, "pocketsphinx")
        )

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return speak_as_caller("Can I speak to a human?"), "can i speak to a human"

    @pytest.fixture
    def transcription(self) -> TranscriptionRequest:
        return TranscriptionRequest(hints=PHRASES)


class TestEmbeddings(EmbeddingContract[EmbeddingProvider[ProviderSettings]]):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> EmbeddingProvider[ProviderSettings]:
        return cast("EmbeddingProvider[ProviderSettings]", create(tmp_path, Capability.EMBEDDING, "minilm"))


class TestVectorStore(VectorStoreContract[VectorStore[ProviderSettings]]):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> VectorStore[ProviderSettings]:
        return cast("VectorStore[ProviderSettings]", create(tmp_path, Capability.VECTOR_STORE, "lancedb"))
