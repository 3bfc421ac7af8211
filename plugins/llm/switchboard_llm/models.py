"""Language models: one provider class per vendor, all generated from one."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    JsonObject,
    LLMProvider,
    ModelUsage,
    ProviderError,
    TextDelta,
    ToolCall,
)

from switchboard_llm.client import (
    LiteLLMProvider,
    LiteLLMSettings,
    build_arguments,
    calculate_cost,
    check_model,
    create_vendor_class,
    list_models,
    load_litellm,
    require_key,
    translate_error,
)
from switchboard_llm.messages import add_to_prompt, build_messages
from switchboard_llm.reasoning import EffortSetting, build_effort
from switchboard_llm.vendors import VENDORS, Vendor

FENCED: Final = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)


class ModelSettings(LiteLLMSettings):
    """Besides what every provider of a vendor has: `reasoning_effort`, what a model spends on reasoning before it
    answers, which the other party hears as silence. `least` is the least that the model accepts.
    """

    reasoning_effort: EffortSetting = "least"


class VendorModel(LiteLLMProvider, LLMProvider[LiteLLMSettings]):
    """Models of a vendor over LiteLLM, streaming."""

    Settings = ModelSettings
    settings: ModelSettings

    async def list_models(self) -> Sequence[str]:
        """List the models of an OpenAI-compatible server; for a vendor, the chat models in LiteLLM's price map."""
        if self.settings.base_url is not None:
            return sorted(await list_models(self.vendor, self.settings))
        prices: dict[str, dict[str, object]] = (await load_litellm()).model_cost
        chats = [
            name
            for name, about in prices.items()
            if about.get("litellm_provider") == self.vendor.route and about.get("mode") == "chat"
        ]
        return sorted({name.removeprefix(f"{self.vendor.route}/") for name in chats if not name.startswith("ft:")})

    async def check(self) -> None:
        """Ask the vendor for its models, which costs nothing, needs the key, and shows whether it has the model."""
        require_key(self.vendor, self.settings)
        await check_model(self.vendor, self.settings, self.settings.model or self.vendor.default_model)

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        litellm = await load_litellm()
        model = request.model or self.settings.model or self.vendor.default_model
        collector, answer = _StreamCollector(model), ""
        try:
            async with asyncio.timeout(request.timeout_seconds):
                stream = await litellm.acompletion(
                    **build_arguments(self.vendor, self.settings, model),
                    **build_effort(litellm, self.vendor, model, self.settings.reasoning_effort),
                    **_body(self.vendor, request),
                )
            try:
                async for chunk in stream:
                    for text in collector.add_chunk(chunk):
                        if request.response_schema is None:
                            yield TextDelta(text)
                        answer += text
                    if getattr(stream, "sent_stream_usage", False):
                        # The rest of the stream is read only to keep the connection. LiteLLM would reassemble the
                        # response in a thread, copy it, and build a record for callbacks that nobody has set: a
                        # quarter of the work of a response.
                        stream.chunks.clear()
            finally:
                with suppress(AttributeError):
                    await stream.aclose()
        except TimeoutError:
            raise ProviderError(
                f"{self.vendor.title} did not answer within {request.timeout_seconds:.0f} seconds"
            ) from None
        except litellm.exceptions.openai.OpenAIError as error:
            raise translate_error(self.vendor, self.settings, error) from error
        if request.response_schema is not None:
            # Models without schema enforcement tend to wrap their JSON in Markdown fences.
            fenced = FENCED.fullmatch(answer)
            yield TextDelta(fenced[1] if fenced else answer)
        for call in collector.tool_calls():
            yield call
        yield collector.usage(litellm, self.vendor)


@dataclass(slots=True)
class _StreamCollector:
    """Parts of a stream that are complete only at its end: tool calls (`written`: those in progress) and usage."""

    model: str
    calls: list[dict[str, str]] = field(default_factory=list)
    written: dict[int, dict[str, str]] = field(default_factory=dict)
    reported: Any = None
    """LiteLLM's `Usage`, None until it comes."""

    def add_chunk(self, chunk: Any) -> list[str]:
        """Add a chunk and return its text; an empty text if the model is working on a tool call or on reasoning."""
        if (usage := getattr(chunk, "usage", None)) is not None:
            self.reported = usage
        if not chunk.choices:
            return []
        delta = chunk.choices[0].delta
        for call in delta.tool_calls or ():
            kept = self._call(call.index or 0, is_named=bool(call.function.name))
            kept["id"] = call.id or kept["id"]
            kept["name"] += call.function.name or ""
            kept["arguments"] += call.function.arguments or ""
        works = delta.tool_calls or getattr(delta, "reasoning_content", None)
        return [delta.content or ""] if delta.content or works else []

    def tool_calls(self) -> list[ToolCall]:
        """Return the complete tool calls. Raises `ProviderError` for arguments that are not a JSON object."""
        return [
            ToolCall(call["id"] or f"call_{uuid4().hex}", call["name"], _arguments(call["arguments"]))
            for call in self.calls
        ]

    def _call(self, index: int, *, is_named: bool) -> dict[str, str]:
        """Return the tool call that a part belongs to.

        Ollama sends all calls with the same index: a name after the arguments of one call starts another call.
        """
        kept = self.written.get(index)
        if kept is None or (is_named and kept["arguments"]):
            kept = self.written[index] = {"id": "", "name": "", "arguments": ""}
            self.calls.append(kept)
        return kept

    def usage(self, litellm: Any, vendor: Vendor) -> ModelUsage:
        """Return the usage, with the cost from LiteLLM's price map if it has the model."""
        usage = self.reported or litellm.Usage()
        cost = calculate_cost(litellm, vendor, self.model, usage)
        details = getattr(usage, "prompt_tokens_details", None)
        cached = getattr(details, "cached_tokens", None) or 0
        detail: JsonObject = {"cached_input_tokens": cached} if cached else {}
        return ModelUsage(self.model, usage.prompt_tokens or 0, usage.completion_tokens or 0, cost, detail)


def _arguments(text: str) -> JsonObject:
    try:
        parsed = json.loads(text or "{}")
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise ProviderError("the model called a tool with arguments that are no JSON object")
    return parsed


def _body(vendor: Vendor, request: ChatRequest) -> dict[str, object]:
    messages = build_messages(vendor, request.messages)
    body: dict[str, object] = {
        "messages": messages,
        "temperature": request.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
        "_skip_mcp_handler": True,
        "timeout": request.timeout_seconds,
    }
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in request.tools
        ]
    if request.response_schema is not None:
        schema = {"type": "json_schema", "json_schema": {"name": "answer", "schema": request.response_schema}}
        body["response_format"] = schema if vendor.keeps_schemas else {"type": "json_object"}
        # Also in the prompt, because many compatible servers ignore `response_format`.
        add_to_prompt(messages, f"The JSON schema of your answer: {json.dumps(request.response_schema)}")
    return body


MODELS = [create_vendor_class(VendorModel, vendor) for vendor in VENDORS]
