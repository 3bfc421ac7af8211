"""Body of a chat completion, which OpenAI's wire format and LiteLLM have in common."""

import json
import re
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue
from switchboard.plugin_sdk import ChatRequest, JsonObject

from switchboard_llm.messages import add_to_prompt, build_messages
from switchboard_llm.vendors import Vendor

FENCED: Final = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)


def build_body(vendor: Vendor, request: ChatRequest) -> dict[str, object]:
    """Return the fields of a streamed request, without the model and its effort."""
    messages = build_messages(vendor, request.messages)
    body: dict[str, object] = {"messages": messages, "temperature": request.temperature, "stream": True}
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
        body["response_format"] = (
            _build_schema_format(request.response_schema) if vendor.keeps_schemas else {"type": "json_object"}
        )
        # Also in the prompt, because many compatible servers ignore `response_format`.
        add_to_prompt(messages, f"The JSON schema of your answer: {json.dumps(request.response_schema)}")
    return body


def strip_fences(text: str) -> str:
    """Remove the Markdown around JSON, in which models without schema enforcement tend to wrap it."""
    fenced = FENCED.fullmatch(text)
    return fenced[1] if fenced else text


def _build_schema_format(schema: JsonObject) -> JsonObject:
    strict = all(_is_closed(part) for part in _list_objects(schema))
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": strict}}


def _list_objects(schema: JsonValue) -> Iterator[JsonObject]:
    """Yield each schema of an object within a schema."""
    if isinstance(schema, list):
        for part in schema:
            yield from _list_objects(part)
    elif isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from _list_objects(value)


def _is_closed(schema: JsonObject) -> bool:
    """Tell whether strict mode accepts an object: every property required, and no others.

    https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
    """
    properties, required = schema.get("properties"), schema.get("required")
    return (
        schema.get("additionalProperties") is False
        and isinstance(properties, dict)
        and isinstance(required, list)
        and set(properties) == set(map(str, required))
    )
