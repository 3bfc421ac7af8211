"""Body of a chat completion, which OpenAI's wire format and LiteLLM have in common, with the messages of the
conversation as each vendor accepts them.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue
from switchboard.plugin_sdk import ChatRequest, JsonObject, Message

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
        schema = request.response_schema
        strict = all(_is_closed(part) for part in _list_objects(schema))
        constrained = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": strict}}
        body["response_format"] = constrained if vendor.keeps_schemas else {"type": "json_object"}
        # Also in the prompt, because many compatible servers ignore `response_format`.
        add_to_prompt(messages, f"The JSON schema of your answer: {json.dumps(schema)}")
    return body


def strip_fences(text: str) -> str:
    """Remove the Markdown around JSON, in which models without schema enforcement tend to wrap it."""
    fenced = FENCED.fullmatch(text)
    return fenced[1] if fenced else text


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


CACHED: Final = {"type": "ephemeral"}
CONTINUE: Final = "[Note, not said by the other party: it is your turn.]"

WireMessage = dict[str, object]


def build_messages(vendor: Vendor, messages: Sequence[Message]) -> list[WireMessage]:
    """Return the messages in the vendor's order, ending with one that the model can answer."""
    built = [_build_message(message) for message in messages]
    if vendor.system_first:
        built = _turn_later_system_messages_into_notes(built)
    if built[-1]["role"] == "assistant" or (vendor.system_first and built[-1]["role"] == "system"):
        # Vendors refuse a conversation that ends with the model's own words, or continue them, and one without words.
        built.append({"role": "user", "content": CONTINUE})
    if vendor.answers_tools:
        # A message by the model between a tool's and the user's.
        for place in reversed(range(1, len(built))):
            if built[place]["role"] == "user" and built[place - 1]["role"] == "tool":
                built.insert(place, {"role": "assistant", "content": "…"})
    if vendor.caches_marked:
        _mark_for_cache(built)
    return built


def add_to_prompt(messages: list[WireMessage], text: str) -> None:
    """Add a paragraph to the first message."""
    content = messages[0]["content"]
    if isinstance(content, list):
        content.append({"type": "text", "text": text})
    else:
        messages[0]["content"] = f"{content}\n\n{text}"


def _turn_later_system_messages_into_notes(messages: list[WireMessage]) -> list[WireMessage]:
    """Turn system messages after others into the user's: Anthropic's and Google's formats have one place for all of
    them, outside the conversation, and many chat templates refuse them.
    """
    first = next((place for place, message in enumerate(messages) if message["role"] != "system"), len(messages))
    return [
        {"role": "user", "content": f"[Note, not said by the other party: {message['content']}]"}
        if place > first and message["role"] == "system"
        else message
        for place, message in enumerate(messages)
    ]


def _mark_for_cache(messages: list[WireMessage]) -> None:
    """Mark the prompt, and the conversation up to the last words: the next request begins with the same.

    https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
    """
    last = max((place for place, message in enumerate(messages) if message["role"] == "user"), default=0)
    for place in {0, last}:
        content = messages[place]["content"]
        if isinstance(content, str) and content:
            messages[place]["content"] = [{"type": "text", "text": content, "cache_control": CACHED}]


def _build_message(message: Message) -> WireMessage:
    built: WireMessage = {"role": message.role, "content": message.content}
    if message.tool_calls:
        # Some vendors refuse an empty text beside a tool call, and for others LiteLLM inserts a remark.
        built["content"] = message.content or None
        built["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        built["tool_call_id"] = message.tool_call_id
    return built
