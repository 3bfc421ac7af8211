"""Parts of a streamed chat completion, as OpenAI documents them and other vendors extend them.

https://platform.openai.com/docs/api-reference/chat-streaming
"""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import uuid4

import msgspec
from switchboard.plugin_sdk import JsonObject, ModelUsage, ProviderError, ToolCall

from switchboard_llm.model_map import ListedModel
from switchboard_llm.vendors import Vendor


class FunctionDelta(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class ToolCallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class ContentPart(msgspec.Struct):
    """Part of a content in parts: Mistral's models that reason send `thinking` beside `text`."""

    type: str
    text: str | None = None


class Delta(msgspec.Struct):
    """`reasoning_content` (DeepSeek, xAI, and others) or `reasoning` (Groq, OpenRouter) is what a model thinks."""

    content: str | list[ContentPart] | None = None
    tool_calls: list[ToolCallDelta] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None

    def read_text(self) -> str:
        """Return the text that is meant for the caller."""
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content if part.type == "text")
        return self.content or ""

    def is_at_work(self) -> bool:
        """Tell whether the model does something other than writing text: it reasons, or writes a tool call."""
        return bool(self.tool_calls or self.reasoning_content or self.reasoning or isinstance(self.content, list))


class Choice(msgspec.Struct):
    delta: Delta | None = None
    finish_reason: str | None = None


class PromptTokens(msgspec.Struct):
    cached_tokens: int | None = None


class CompletionTokens(msgspec.Struct):
    reasoning_tokens: int | None = None


class CostDetails(msgspec.Struct):
    upstream_inference_cost: float | None = None


class Usage(msgspec.Struct):
    """Tokens of a request, and what some vendors say that it costs; the prompt's tokens include the cached ones.

    OpenRouter's `cost` is in credits, which are US dollars. With an organization's own key at the vendor behind it
    (`is_byok`), it is OpenRouter's fee alone, and that vendor charges `upstream_inference_cost` itself
    (https://openrouter.ai/docs/use-cases/usage-accounting). A tick of xAI's is 1e-10 US dollars.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptTokens | None = None
    completion_tokens_details: CompletionTokens | None = None
    total_tokens: int | None = None
    cost: float | None = None
    is_byok: bool | None = None
    cost_details: CostDetails | None = None
    cost_in_usd_ticks: int | None = None

    def count_output(self) -> int:
        """Return the number of tokens that are billed as output, reasoning included.

        OpenAI's `completion_tokens` include reasoning, and xAI's do not, which its total shows
        (https://docs.x.ai/docs/key-information/consumption-and-rate-limits).
        """
        completion, details = self.completion_tokens or 0, self.completion_tokens_details
        reasoning = (details.reasoning_tokens or 0) if details is not None else 0
        is_beside = (self.total_tokens or 0) >= (self.prompt_tokens or 0) + completion + reasoning
        return completion + reasoning if is_beside else completion

    def read_cost(self, *, reports_cost: bool) -> float | None:
        """Return the cost that the vendor reports, in US dollars. `reports_cost`: `cost` is in this currency."""
        if self.cost_in_usd_ticks is not None:
            return self.cost_in_usd_ticks * USD_A_TICK
        if self.cost is None or not reports_cost:
            return None
        upstream = self.cost_details.upstream_inference_cost if self.is_byok and self.cost_details is not None else None
        return self.cost + (upstream or 0.0)

    def count_cached(self) -> int:
        """Return the number of cached prompt tokens."""
        return (self.prompt_tokens_details.cached_tokens or 0) if self.prompt_tokens_details is not None else 0


class StreamFault(msgspec.Struct):
    """An error in the midst of a stream, which OpenRouter and Groq report so."""

    message: str | None = None
    code: int | str | None = None


class ChatChunk(msgspec.Struct):
    """Part of an answer. Some servers send null for a list that is empty."""

    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: StreamFault | None = None

    def list_deltas(self) -> list[Delta]:
        """Return what the chunk adds to the answer."""
        return [choice.delta for choice in self.choices or () if choice.delta is not None]

    def is_last(self) -> bool:
        """Return whether the answer is complete with this chunk."""
        return any(choice.finish_reason is not None for choice in self.choices or ())


CHUNKS: Final = msgspec.json.Decoder(ChatChunk)
USD_A_TICK: Final = 1e-10


@dataclass(slots=True)
class _ToolCallParts:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class ToolCallCollector:
    """Tool calls, which come in parts and are complete at the end of a stream."""

    _calls: list[_ToolCallParts] = field(default_factory=list)
    _by_index: dict[int, _ToolCallParts] = field(default_factory=dict)

    def add(self, part: ToolCallDelta) -> None:
        """Add a part.

        Ollama sends all calls with the same index: a name after the arguments of one call starts another call.
        """
        index, function = part.index or 0, part.function or FunctionDelta()
        call = self._by_index.get(index)
        if call is None or (function.name and call.arguments):
            call = self._by_index[index] = _ToolCallParts()
            self._calls.append(call)
        call.id = part.id or call.id
        call.name += function.name or ""
        call.arguments += function.arguments or ""

    def list_calls(self) -> list[ToolCall]:
        """Return the complete calls. Raises `ProviderError` for arguments that are not a JSON object."""
        return [
            ToolCall(call.id or f"call_{uuid4().hex}", call.name, _parse_arguments(call.arguments))
            for call in self._calls
        ]


def _parse_arguments(text: str) -> JsonObject:
    try:
        parsed = json.loads(text or "{}")
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise ProviderError("the model called a tool with arguments that are not a JSON object")
    return parsed


def build_usage(vendor: Vendor, model: str, usage: Usage, listed: ListedModel | None, asked_at: datetime) -> ModelUsage:
    """Return the usage with its cost: the vendor's own figure, else by the prices of that time in LiteLLM's map.

    The cost is None where the vendor reports no usage, or the map has no price of the model.
    """
    prompt, completion, cached = usage.prompt_tokens or 0, usage.count_output(), usage.count_cached()
    cost = usage.read_cost(reports_cost=vendor.reports_cost)
    if cost is None and listed is not None and (prompt or completion):
        cost = listed.compute_cost(prompt, cached, completion, asked_at)
    detail: JsonObject = {"cached_input_tokens": cached} if cached else {}
    return ModelUsage(model, prompt, completion, cost, detail)
