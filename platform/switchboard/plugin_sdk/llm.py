"""Capability `llm`: the language model of an agent."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from switchboard.plugin_sdk.provider import Provider, SettingsT_co

JsonObject: TypeAlias = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by the model. `arguments` are parsed JSON, not yet validated against the tool's schema."""

    id: str
    name: str
    arguments: JsonObject


KNOWLEDGE: Final = "What the knowledge bases hold on what was said last. Use it where it helps:"
"""First words of a system message that contains passages from the agent's knowledge bases."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation.

    Only an assistant's message has `tool_calls`. Only a tool's message has `tool_call_id`, the call that it responds
    to.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function that the model may call. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to the model.

    `model` None is the provider's default. With `response_schema`, the whole text is JSON of that schema. `temperature`
    is the provider's own scale, usually 0 to 2.
    """

    messages: tuple[Message, ...]
    model: str | None = None
    temperature: float = 0.7
    max_tokens: int | None = None
    tools: tuple[ToolSpec, ...] = ()
    response_schema: JsonObject | None = None
    timeout_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next part of the response's text.

    An empty one signals that the model is working, for example on a tool call, so that the provider does not count as
    stalled.
    """

    text: str


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Usage of the request: the last event, exactly once. `cost` is in US dollars, None if the provider does not know
    it.
    """

    model: str
    input_tokens: int
    output_tokens: int
    cost: float | None = None
    detail: JsonObject = field(default_factory=dict)


ChatEvent: TypeAlias = TextDelta | ToolCall | ModelUsage


class LLMProvider(Provider[SettingsT_co]):
    """Generates responses, streaming."""

    @abstractmethod
    def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Yield text as it is generated, each tool call once it is complete, and one `ModelUsage` last.

        Closing the iterator stops the request. Raises `ProviderError`. If that happens before the first event, or no
        event comes within 0.7 seconds, the organization's next provider is asked. The response is abandoned if nothing
        is yielded for 8 seconds.
        """

    async def list_models(self) -> Sequence[str]:
        """List names that `ChatRequest.model` may have, for people to choose from.

        Other names may be valid too; providers that cannot list models return none. Raises `ProviderError`.
        """
        return ()

    def list_expected_phrases(self, system_prompt: str) -> Sequence[str]:
        """List phrases that a caller is likely to say to an agent with this prompt.

        They become speech-to-text hints. Most providers return none.
        """
        return ()
