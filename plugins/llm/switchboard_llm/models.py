"""Language models: one provider class for each vendor, all made from one."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from switchboard.plugins import (
    ChatEvent,
    ChatRequest,
    JsonObject,
    LLMProvider,
    Message,
    ModelUsage,
    ProviderError,
    TextDelta,
    ToolCall,
)

from switchboard_llm.client import VendorSettings, arguments, library, provider_error, require_key
from switchboard_llm.vendors import VENDORS, Vendor

CHECK_SECONDS = 10.0


class VendorModel(LLMProvider[VendorSettings]):
    """A vendor's models over LiteLLM, streaming."""

    Settings = VendorSettings
    vendor: Vendor

    async def open(self) -> None:
        require_key(self.vendor, self.settings)
        await library()

    async def check(self) -> None:
        """List the vendor's models where it is OpenAI's way of doing so: costs nothing and needs the key."""
        require_key(self.vendor, self.settings)
        if self.settings.base_url is None:
            return
        await list_models(self.vendor, self.settings)

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        litellm = await library()
        model = request.model or self.settings.model or self.vendor.default_model
        gathered = _Gathered(model)
        try:
            async with asyncio.timeout(request.timeout_seconds):
                stream = await litellm.acompletion(**arguments(self.vendor, self.settings, model), **_body(request))
            try:
                async for chunk in stream:
                    for text in gathered.take(chunk):
                        yield TextDelta(text)
            finally:
                with suppress(AttributeError):
                    await stream.aclose()
        except TimeoutError:
            raise ProviderError(f"{self.vendor.title} did not answer within {request.timeout_seconds:.0f} seconds") from None
        except litellm.exceptions.openai.OpenAIError as error:
            raise provider_error(self.vendor, self.settings, error) from error
        for call in gathered.tool_calls():
            yield call
        yield gathered.usage(litellm, self.vendor)


async def list_models(vendor: Vendor, settings: VendorSettings) -> None:
    """Ask an OpenAI-compatible server for its models. Raises `ProviderError`."""
    headers = {"Authorization": f"Bearer {settings.api_key.get_secret_value()}"} if settings.api_key else {}
    url = f"{(settings.base_url or '').rstrip('/')}/models"
    try:
        timeout = aiohttp.ClientTimeout(total=CHECK_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, headers=headers) as response:
            if response.status >= 400:
                raise ProviderError(f"{vendor.title} answered {response.status} to a list of its models", code=str(response.status), retryable=False)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(f"{vendor.title} cannot be reached at {settings.base_url}: {error}") from error


@dataclass(slots=True)
class _Gathered:
    """What of a stream is only whole at its end: tool calls and usage."""

    model: str
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0

    def take(self, chunk: Any) -> list[str]:
        """Keep a chunk's parts; answers its text."""
        if (usage := getattr(chunk, "usage", None)) is not None:
            self.input_tokens, self.output_tokens = usage.prompt_tokens or 0, usage.completion_tokens or 0
        if not chunk.choices:
            return []
        delta = chunk.choices[0].delta
        for call in delta.tool_calls or ():
            kept = self.calls.setdefault(call.index or 0, {"id": "", "name": "", "arguments": ""})
            kept["id"] = call.id or kept["id"]
            kept["name"] += call.function.name or ""
            kept["arguments"] += call.function.arguments or ""
        return [delta.content] if delta.content else []

    def tool_calls(self) -> list[ToolCall]:
        """The calls, whole. Raises `ProviderError` for arguments that are no JSON object."""
        return [ToolCall(call["id"] or f"call_{index}", call["name"], _arguments(call["arguments"])) for index, call in sorted(self.calls.items())]

    def usage(self, litellm: Any, vendor: Vendor) -> ModelUsage:
        """What was used; the cost from LiteLLM's price map where it has the model."""
        cost = None
        with suppress(Exception):  # a model that the map lacks raises a plain Exception
            prompt, completion = litellm.cost_per_token(
                model=f"{vendor.route}/{self.model}", prompt_tokens=self.input_tokens, completion_tokens=self.output_tokens
            )
            cost = prompt + completion
        return ModelUsage(self.model, self.input_tokens, self.output_tokens, cost)


def _arguments(text: str) -> JsonObject:
    try:
        parsed = json.loads(text or "{}")
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise ProviderError("the model called a tool with arguments that are no JSON object")
    return parsed


def _body(request: ChatRequest) -> dict[str, object]:
    body: dict[str, object] = {
        "messages": [_message(message) for message in request.messages],
        "temperature": request.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
        "timeout": request.timeout_seconds,
    }
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}}
            for tool in request.tools
        ]
    if request.response_schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": request.response_schema}}
    return body


def _message(message: Message) -> dict[str, object]:
    written: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    return written


def model_class(vendor: Vendor) -> type[VendorModel]:
    """The provider class of a vendor."""
    return type(
        f"{vendor.title.title().replace(' ', '').replace('-', '')}Model",
        (VendorModel,),
        {"name": vendor.name, "title": vendor.title, "vendor": vendor, "__doc__": f"{vendor.title} over LiteLLM."},
    )


MODELS = [model_class(vendor) for vendor in VENDORS]
