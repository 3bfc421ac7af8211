"""Models of vendors with a wire format of their own, over LiteLLM."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from switchboard.plugin_sdk import ChatEvent, ChatRequest, JsonObject, ModelUsage, ProviderError, TextDelta

from switchboard_llm.chat_body import build_body, strip_fences
from switchboard_llm.litellm_client import build_arguments, calculate_cost, load_litellm, translate_error
from switchboard_llm.stream import FunctionDelta, ToolCallCollector, ToolCallDelta
from switchboard_llm.vendor_model import VendorModel, choose_effort
from switchboard_llm.vendors import Vendor

KEEPS_REASON: Final = ("anthropic", "bedrock")
"""LiteLLM's prefixes of vendors whose reason for the end of a stream it keeps. It does not keep Google's."""


class LiteLLMModel(VendorModel):
    """Models of a vendor with a wire format of its own, over LiteLLM."""

    async def open(self) -> None:
        await super().open()
        await load_litellm()

    def describe_vendor(self, model: str) -> Vendor:
        """Return the vendor with the abilities that it has with this model."""
        return self.vendor

    def build_arguments(self, model: str) -> dict[str, object]:
        """Return LiteLLM's arguments for a model: its name, credentials, and address."""
        return build_arguments(self.vendor, self.settings, model)

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        litellm = await load_litellm()
        model, listed = self.choose_model(request)
        effort = choose_effort(self.vendor, model, listed, self.settings.reasoning_effort)
        calls, usage, answer = ToolCallCollector(), litellm.Usage(), ""
        try:
            async with asyncio.timeout(request.timeout_seconds):
                stream = await litellm.acompletion(
                    **self.build_arguments(model),
                    **build_body(self.describe_vendor(model), request),
                    **({} if effort is None else {"reasoning_effort": effort}),
                    stream_options={"include_usage": True},
                    timeout=request.timeout_seconds,
                    _skip_mcp_handler=True,
                )
                # For some vendors, LiteLLM sends the request when the first chunk is asked for.
                first = await anext(stream, None)
            try:
                async for chunk in _prepend(first, stream):
                    usage = getattr(chunk, "usage", None) or usage
                    for text in _read_texts(chunk, calls):
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
        if not answer and not usage.prompt_tokens and not calls.list_calls():
            raise ProviderError(f"{self.vendor.title} answered with something that is not a chat completion")
        _require_end(self.vendor, stream)
        if request.response_schema is not None:
            yield TextDelta(strip_fences(answer))
        for call in calls.list_calls():
            yield call
        cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None) or 0
        detail: JsonObject = {"cached_input_tokens": cached} if cached else {}
        is_counted = usage.prompt_tokens or usage.completion_tokens
        cost = calculate_cost(litellm, self.vendor, model, usage) if is_counted else None
        yield ModelUsage(model, usage.prompt_tokens or 0, usage.completion_tokens or 0, cost, detail)


def _require_end(vendor: Vendor, stream: Any) -> None:
    """Raise `ProviderError` for a stream that ended without the vendor's reason, for which LiteLLM invents one."""
    if vendor.route in KEEPS_REASON and getattr(stream, "received_finish_reason", "") is None:
        raise ProviderError(f"{vendor.title} broke the answer off")


async def _prepend(first: Any, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
    if first is not None:
        yield first
        async for chunk in stream:
            yield chunk


def _read_texts(chunk: Any, calls: ToolCallCollector) -> list[str]:
    """Return the text of a chunk; an empty text if the model is working on a tool call or on reasoning."""
    if not chunk.choices:
        return []
    delta = chunk.choices[0].delta
    for call in delta.tool_calls or ():
        function = FunctionDelta(call.function.name, call.function.arguments)
        calls.add(ToolCallDelta(call.index, call.id, function))
    works = delta.tool_calls or getattr(delta, "reasoning_content", None)
    return [delta.content or ""] if delta.content or works else []
