"""Messages of a conversation as each vendor accepts them."""

import json
from collections.abc import Sequence
from typing import Final

from switchboard.plugin_sdk import Message

from switchboard_llm.vendors import Vendor

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
        built = _answer_tools(built)
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


def _answer_tools(messages: list[WireMessage]) -> list[WireMessage]:
    """Insert a message by the model between a tool's and the user's."""
    answered: list[WireMessage] = []
    for message in messages:
        if message["role"] == "user" and answered and answered[-1]["role"] == "tool":
            answered.append({"role": "assistant", "content": "…"})
        answered.append(message)
    return answered


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
