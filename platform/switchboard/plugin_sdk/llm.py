"""Capability `llm`: the language model that an agent thinks with."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from switchboard.plugin_sdk.provider import Provider, SettingsT_co

JsonObject: TypeAlias = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model wants a tool called. `arguments` are parsed JSON, not yet checked against the tool's schema."""

    id: str
    name: str
    arguments: JsonObject


KNOWLEDGE: Final = "What the knowledge bases hold on what was said last. Use it where it helps:"
"""How a system message begins that holds passages from the agent's knowledge bases."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation. `tool_calls` only on an assistant's; `tool_call_id` only on a tool's, which answers that call."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function that the model may call; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What the model is asked. `model` None is the provider's default. With `response_schema` the whole text is JSON of that schema."""

    messages: tuple[Message, ...]
    model: str | None = None
    temperature: float = 0.7
    max_tokens: int | None = None
    tools: tuple[ToolSpec, ...] = ()
    response_schema: JsonObject | None = None
    timeout_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text. An empty one says that the model is at work, on a tool call say: it is not taken for silent then."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What the request used, once, as the last event. `cost` in US dollars where the provider knows it, else None."""

    model: str
    input_tokens: int
    output_tokens: int
    cost: float | None = None
    detail: JsonObject = field(default_factory=dict)


ChatEvent: TypeAlias = TextDelta | ToolCall | ModelUsage


class LLMProvider(Provider[SettingsT_co]):
    """Answers conversations, streaming."""

    @abstractmethod
    def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Yield text as it is written, each tool call once it is whole, and one `ModelUsage` last. Closing the iterator stops the request.

        Raises `ProviderError`; where it does so before the first event, or has yielded none within 0.7 seconds, the organization's next
        provider is asked. The conversation breaks off where nothing is yielded for 8 seconds.
        """

    async def list_models(self) -> Sequence[str]:
        """List names that `ChatRequest.model` may have, for people to choose from; others may do too, and many know none. Raises `ProviderError`."""
        return ()

    def list_expected_phrases(self, system_prompt: str) -> Sequence[str]:
        """Phrases that a caller is likely to say to an agent with this prompt; they become speech-to-text hints. Most models know none."""
        return ()
