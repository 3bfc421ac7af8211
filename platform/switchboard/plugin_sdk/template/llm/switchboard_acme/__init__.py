"""Acme: a language model. Replace the requests with your vendor's."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    LLMProvider,
    Message,
    ModelUsage,
    TextDelta,
    ToolCall,
    hookimpl,
)

from switchboard_acme.client import AcmeProvider, AcmeSettings

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""
DEFAULT_MODEL = "acme-1"


class AcmeModel(AcmeProvider, LLMProvider[AcmeSettings]):
    """Acme's models."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings

    async def list_models(self) -> Sequence[str]:
        return [str(model) for model in await self._client.request("GET", "/models")]

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Yield each line of the response as it arrives."""
        body = {
            "model": request.model or DEFAULT_MODEL,
            "messages": [_write_message(message) for message in request.messages],
            "tools": [
                {"name": tool.name, "about": tool.description, "schema": tool.parameters} for tool in request.tools
            ],
            "schema": request.response_schema,
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        async with self._client.stream("POST", "/chat", json=body) as response:
            async for line in response.content:
                yield _read_event(json.loads(line))


def _write_message(message: Message) -> dict[str, Any]:
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return {"role": message.role, "text": message.content, "calls": calls, "call_id": message.tool_call_id}


def _read_event(event: dict[str, Any]) -> ChatEvent:
    match event:
        case {"text": text}:
            return TextDelta(text)
        case {"call": {"id": number, "name": name, "arguments": arguments}}:
            return ToolCall(number, name, arguments)
        case _:
            return ModelUsage(event["model"], event["input_tokens"], event["output_tokens"])


@hookimpl
def llm_providers() -> Sequence[type[AcmeModel]]:
    return [AcmeModel]
