"""Chat completions in OpenAI's wire format, streamed over plain HTTP.

LiteLLM spends 7 to 16 ms of processor time on an answer, which twenty callers who fall silent at once wait for; this
takes a fifth of it (`make bench NAME=models`).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Final

import aiohttp
import msgspec
from switchboard.plugin_sdk import ChatEvent, ChatRequest, ProviderError, TextDelta
from switchboard.plugin_sdk.connection_faults import describe_connection_fault

from switchboard_llm.chat_body import build_body, strip_fences
from switchboard_llm.model_map import ListedModel
from switchboard_llm.stream import CHUNKS, ChatChunk, ToolCallCollector, Usage, build_usage
from switchboard_llm.vendor_model import VendorModel, build_effort, choose_effort

LONGEST_LINE: Final = 2**20
"""Bytes of one event: a server that sends more does not speak this format."""


class ChatCompletionsModel(VendorModel):
    """Models of a vendor that speaks OpenAI's wire format."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        model, listed = self.choose_model(request)
        calls, usage, answer, asked_at = ToolCallCollector(), None, "", datetime.now(UTC)
        async with AsyncExitStack() as stack:
            response = await self._post(stack, request, model, self._build_body(request, model, listed))
            async for chunk in self._read_chunks(response):
                usage = chunk.usage or usage
                for delta in chunk.list_deltas():
                    for part in delta.tool_calls or ():
                        calls.add(part)
                    text = delta.read_text()
                    answer += text
                    if request.response_schema is None and (text or delta.is_at_work()):
                        yield TextDelta(text)
        complete = calls.list_calls()
        if not answer and not complete and usage is None:
            raise ProviderError(f"{self.vendor.title} answered without words, tools, and usage")
        if request.response_schema is not None:
            yield TextDelta(strip_fences(answer))
        for call in complete:
            yield call
        yield build_usage(self.vendor, model, usage or Usage(), listed, asked_at)

    def _build_body(self, request: ChatRequest, model: str, listed: ListedModel | None) -> bytes:
        effort = choose_effort(self.vendor, model, listed, self.settings.reasoning_effort)
        body = {"model": model, **build_body(self.vendor, request), **build_effort(self.vendor, effort)}
        if "max_tokens" in body:
            body[self.vendor.max_tokens_field] = body.pop("max_tokens")
        if self.vendor.counts_tokens:
            body["stream_options"] = {"include_usage": True}
        if self.settings.no_retention:
            body["store"] = False  # https://platform.openai.com/docs/guides/your-data
        if self.vendor.fixes_temperature and effort not in (None, "none"):
            del body["temperature"]
        return msgspec.json.encode(body)

    async def _post(
        self, stack: AsyncExitStack, request: ChatRequest, model: str, body: bytes
    ) -> aiohttp.ClientResponse:
        """Send a request and return its response, which is open until the stack is left."""
        url = self.build_url("/chat/completions", model)
        payload = aiohttp.BytesPayload(body, content_type="application/json")
        try:
            async with asyncio.timeout(request.timeout_seconds):
                return await stack.enter_async_context(self.request("POST", url, data=payload))
        except TimeoutError:
            raise ProviderError(
                f"{self.vendor.title} did not answer within {request.timeout_seconds:.0f} seconds"
            ) from None

    async def _read_chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[ChatChunk]:
        """Yield the chunks of the stream to its end, so that the connection can be used again.

        Raises `ProviderError` for a stream that ends without a reason (`finish_reason`) and without `[DONE]`, of which
        OpenAI sends both (https://platform.openai.com/docs/api-reference/chat-streaming): its answer is not complete.
        """
        title, is_begun, is_complete = self.vendor.title, False, False
        try:
            async for line in _read_lines(response.content):
                if not line.startswith(b"data:"):
                    continue
                if (data := line[5:].strip()) == b"[DONE]":
                    is_complete = True
                    continue
                chunk = CHUNKS.decode(data)
                if chunk.error is not None:
                    code, message = chunk.error.code, chunk.error.message or "an error without a message"
                    raise ProviderError(
                        f"{title}: {self.settings.hide_key(message)}", code=None if code is None else str(code)
                    )
                is_begun = True
                is_complete = is_complete or chunk.is_last()
                yield chunk
            if not is_begun:
                raise ValueError("there is no chunk")
            if not is_complete:
                raise ProviderError(f"{title} broke the answer off")
        except aiohttp.ClientError as error:
            raise ProviderError(f"{title} broke the answer off: {describe_connection_fault(error)}") from error
        except (msgspec.DecodeError, ValueError) as error:
            raise ProviderError(f"{title} answered with something that is not a chat completion") from error


async def _read_lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield complete lines as they come, several at once if they have come at once.

    Raises `ValueError` for a line that is too long.
    """
    rest = b""
    async for received in content.iter_any():
        *lines, rest = (rest + received).split(b"\n")
        if len(rest) > LONGEST_LINE:
            raise ValueError("the line is too long")
        for line in lines:
            yield line
