"""Plugin of the benchmark of processes: a model and a voice that need no time of their own."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    LLMProvider,
    ModelUsage,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    TextDelta,
    TextToSpeechProvider,
    Voice,
    hookimpl,
)

TOKENS: Final = 200
CHUNKS: Final = 100
CHUNK_BYTES: Final = 1600
"""100 ms of G.711 audio at 16 bits, which is about what vendors send at once."""


class InstantModel(LLMProvider[ProviderSettings]):
    """Answers with 200 tokens at once."""

    name, title = "instant", "Instant"

    async def check(self) -> None:
        """Accept the settings."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Yield the tokens."""
        for _ in range(TOKENS):
            yield TextDelta(" word")
        yield ModelUsage("instant", 1, TOKENS)


class InstantVoice(TextToSpeechProvider[ProviderSettings]):
    """Speaks ten seconds at once."""

    name, title = "instant", "Instant"

    async def check(self) -> None:
        """Accept the settings."""

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        """Yield the chunks."""
        for _ in range(CHUNKS):
            yield SpeechChunk(bytes(CHUNK_BYTES))

    async def list_voices(self) -> Sequence[Voice]:
        """List no voice."""
        return ()


@hookimpl
def llm_providers() -> Sequence[type[InstantModel]]:
    """Add the model."""
    return [InstantModel]


@hookimpl
def text_to_speech_providers() -> Sequence[type[InstantVoice]]:
    """Add the voice."""
    return [InstantVoice]
