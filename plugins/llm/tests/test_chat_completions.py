"""Requests and answers in OpenAI's wire format, where vendors differ from it or break off."""

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest
from aiohttp import web
from pydantic import JsonValue
from switchboard.plugin_sdk import ChatEvent, ChatRequest, Message, ModelUsage, ProviderError, TextDelta, ToolCall
from switchboard_llm.default_models import DEFAULT_MODELS
from switchboard_llm.litellm_client import calculate_cost, load_litellm
from switchboard_llm.model_map import load_model_map
from switchboard_llm.stream import PromptTokens, Usage, build_usage
from switchboard_llm.vendor_model import VendorModel
from switchboard_llm.vendors import VENDORS

from tests.fixtures.chat_models import CreateModel
from tests.fixtures.chat_server import KEY
from tests.fixtures.http_server import serve_application

pytestmark = [
    pytest.mark.usefixtures("litellm_clients"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]
REQUEST = ChatRequest((Message("system", "Be brief."), Message("user", "Hello?")), temperature=0.3, max_tokens=50)


class RawServer:
    """Answers every request with the same bytes. `requests` are paths, with query, and bodies."""

    def __init__(self, body: bytes, status: int, headers: dict[str, str]) -> None:
        self.url = ""
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.credentials: list[tuple[str | None, str | None]] = []
        self._body, self._status, self._headers = body, status, headers

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append((request.path_qs, await request.json()))
        self.credentials.append((request.headers.get("Authorization"), request.headers.get("api-key")))
        return web.Response(status=self._status, body=self._body, headers=self._headers)


@asynccontextmanager
async def serve(
    *events: JsonValue, body: bytes | None = None, status: int = 200, headers: dict[str, str] | None = None
) -> AsyncIterator[RawServer]:
    """Serve a stream of these events, or a body."""
    stream = write_events(*events) + DONE
    server = RawServer(stream if body is None else body, status, headers or {})
    application = web.Application()
    application.router.add_post("/{path:.*}", server.answer)
    async with serve_application(application) as server.url:
        yield server


def build_delta(**delta: JsonValue) -> JsonValue:
    return {"choices": [{"index": 0, "delta": delta}]}


DONE = b"data: [DONE]\n\n"
LAST: JsonValue = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
COUNTED: JsonValue = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}


def write_events(*events: JsonValue) -> bytes:
    """Return a stream that ends without `[DONE]`."""
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


async def ask(model: VendorModel, request: ChatRequest = REQUEST) -> list[ChatEvent]:
    return [event async for event in model.chat(request)]


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        ({"reasoning_content": "They greet."}, ""),
        ({"reasoning": "They greet."}, ""),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "They greet."}]}]}, ""),
        ({"content": [{"type": "text", "text": "Hello."}]}, "Hello."),
        ({"content": "Hello.", "refusal": None}, "Hello."),
    ],
)
async def test_thoughts_are_work_and_no_text(create_model: CreateModel, delta: dict[str, JsonValue], text: str) -> None:
    async with serve(build_delta(**delta), COUNTED) as server:
        assert (await ask(create_model(server.url)))[0] == TextDelta(text)


NOTHING: JsonValue = None


@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {}}])
async def test_a_stream_without_an_end_is_not_a_complete_answer(
    create_model: CreateModel, schema: dict[str, JsonValue] | None
) -> None:
    request = ChatRequest(REQUEST.messages, response_schema=schema)
    async with serve(body=write_events(build_delta(content="{}"))) as server:
        with pytest.raises(ProviderError, match="broke the answer off") as failed:
            await ask(create_model(server.url), request)
    assert failed.value.retryable
    for complete in (write_events(build_delta(content="{}"), LAST), write_events(build_delta(content="{}")) + DONE):
        async with serve(body=complete) as server:
            assert (await ask(create_model(server.url), request))[0] == TextDelta("{}")


async def test_an_answer_without_anything_lets_the_next_provider_answer(create_model: CreateModel) -> None:
    async with serve(build_delta(role="assistant", content=""), LAST) as server:
        with pytest.raises(ProviderError, match="without words, tools, and usage") as failed:
            await ask(create_model(server.url))
    assert failed.value.retryable
    async with serve(build_delta(role="assistant", content=""), LAST, COUNTED) as server:
        assert await ask(create_model(server.url)) == [ModelUsage("default", 3, 0)], "a model may have nothing to say"


@pytest.mark.parametrize(
    "event",
    [
        {"choices": NOTHING},
        {"choices": [{"index": 0, "delta": NOTHING}]},
        build_delta(tool_calls=NOTHING, content="", role=NOTHING),
        build_delta(content=[{"type": "text", "text": NOTHING}]),
        {"choices": [], "usage": {"prompt_tokens": 1, "prompt_tokens_details": NOTHING, "total_tokens": NOTHING}},
    ],
)
async def test_null_for_a_list_or_an_object_does_not_end_an_answer(create_model: CreateModel, event: JsonValue) -> None:
    async with serve(event, build_delta(content="Hello."), LAST) as server:
        assert TextDelta("Hello.") in await ask(create_model(server.url))


async def test_a_tool_call_may_come_before_its_function(create_model: CreateModel) -> None:
    first = build_delta(tool_calls=[{"index": 0, "id": "1", "function": NOTHING}])
    second = build_delta(tool_calls=[{"index": 0, "function": {"name": "weather", "arguments": "{}"}}])
    async with serve(first, second, LAST) as server:
        assert ToolCall("1", "weather", {}) in await ask(create_model(server.url))


async def test_an_error_within_a_stream_is_a_provider_error_without_the_key(create_model: CreateModel) -> None:
    error: JsonValue = {"error": {"message": f"no capacity for {KEY}", "code": 502}}
    async with serve(build_delta(content="Hel"), error) as server:
        with pytest.raises(ProviderError, match=r"no capacity for \*\*\*") as failed:
            await ask(create_model(server.url))
    assert failed.value.code == "502"


@pytest.mark.parametrize("body", [b"data: {\n\n", b'data: {"choices": 7}\n\n', b"data: " + b"x" * 2**22 + b"\n\n"])
async def test_garbage_is_a_provider_error(create_model: CreateModel, body: bytes) -> None:
    async with serve(body=body) as server:
        with pytest.raises(ProviderError, match="not a chat completion"):
            await ask(create_model(server.url))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "model not found"}}', "model not found"),
        (b'{"error": "model not found"}', "model not found"),
        (b'{"error": {"message": null}, "message": "model not found"}', "model not found"),
        (b'{"object": "error", "message": "model not found"}', "model not found"),
        (b"<html>\nNot here\n</html>", "<html>"),
        (b"", "HTTP 404"),
    ],
)
async def test_a_refusal_says_what_the_vendor_says(create_model: CreateModel, body: bytes, message: str) -> None:
    async with serve(body=body, status=404) as server:
        with pytest.raises(ProviderError) as refused:
            await ask(create_model(server.url))
    assert refused.value.message == f"OpenAI-compatible server: {message}"
    assert (refused.value.code, refused.value.retryable) == ("404", False)


async def test_a_redirect_is_not_followed_with_the_key(create_model: CreateModel) -> None:
    async with serve() as other, serve(status=307, headers={"Location": f"{other.url}/chat/completions"}) as server:
        with pytest.raises(ProviderError):
            await ask(create_model(server.url))
        assert other.requests == []


async def test_azure_is_asked_at_its_own_addresses_with_its_own_header(create_model: CreateModel) -> None:
    async with serve(build_delta(content="Hello.")) as server:
        await ask(create_model(server.url, name="azure", model="fast"))
        await ask(create_model(server.url, name="azure", model="fast", api_version="2024-10-21"))
    assert [path for path, _ in server.requests] == [
        "/openai/v1/chat/completions",
        "/openai/deployments/fast/chat/completions?api-version=2024-10-21",
    ]
    assert server.credentials == [(None, KEY), (None, KEY)]


async def test_a_version_changes_the_address_of_azure_only(create_model: CreateModel) -> None:
    async with serve(build_delta(content="Hello.")) as server:
        await ask(create_model(server.url, name="groq", api_version="2024-10-21"))
    assert [path for path, _ in server.requests] == ["/chat/completions"]


async def test_answers_are_not_stored_where_nothing_may_be_retained(create_model: CreateModel) -> None:
    async with serve(build_delta(content="Hello.")) as server:
        for no_retention in (False, True):
            await ask(create_model(server.url, name="openai", no_retention=no_retention))
    assert [body.get("store") for _, body in server.requests] == [None, False]


async def test_a_vendor_without_a_switch_for_retention_says_so(create_model: CreateModel) -> None:
    model = create_model("https://groq.example", name="groq", no_retention=True)
    for use in (model.open, model.check):
        with pytest.raises(ProviderError, match="has no switch for no_retention"):
            await use()


async def test_a_server_without_an_address_is_named(create_model: CreateModel) -> None:
    with pytest.raises(ProviderError, match="needs a base_url"):
        await ask(create_model(name="azure"))


@pytest.mark.parametrize(
    ("vendor", "model", "fields"),
    [
        ("openai", "gpt-5-mini", {"max_completion_tokens": 50}),
        ("openai", "gpt-5.6-luna", {"max_completion_tokens": 50, "temperature": 0.3}),
        ("groq", "openai/gpt-oss-120b", {"max_tokens": 50, "temperature": 0.3}),
    ],
)
async def test_limits_and_temperature_are_sent_as_the_model_accepts_them(
    create_model: CreateModel, vendor: str, model: str, fields: dict[str, object]
) -> None:
    async with serve(build_delta(content="Hello.")) as server:
        await ask(create_model(server.url, name=vendor, model=model))
    ((_, body),) = server.requests
    assert {key: value for key, value in body.items() if "max" in key or key == "temperature"} == fields


TEXT: dict[str, JsonValue] = {"a": {"type": "string"}}
OPEN_OBJECTS: dict[str, JsonValue] = {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "object", "properties": TEXT, "required": ["a"], "additionalProperties": False}, True),
        ({"type": "object", "properties": TEXT, "required": ["a"]}, False),
        ({"type": "object", "properties": TEXT, "additionalProperties": False}, False),
        ({"type": "object", "properties": OPEN_OBJECTS, "required": ["a"], "additionalProperties": False}, False),
    ],
)
async def test_a_closed_schema_is_enforced_strictly(
    create_model: CreateModel, schema: dict[str, JsonValue], strict: bool
) -> None:
    async with serve(build_delta(content="{}")) as server:
        await ask(create_model(server.url, name="openai"), ChatRequest(REQUEST.messages, response_schema=schema))
    ((_, body),) = server.requests
    assert body["response_format"]["json_schema"]["strict"] is strict


@pytest.mark.parametrize("asked_at", ["2026-11-23T02:00Z", "2026-11-23T05:00Z", "2026-11-22T02:00Z"])
async def test_costs_are_those_that_litellm_calculates(asked_at: str) -> None:
    """DeepSeek charges half at some hours of the week."""
    moment = datetime.fromisoformat(asked_at)
    litellm, models = await load_litellm(), load_model_map()
    from litellm._internal_context import pinned_billing_time  # here, because collecting tests must not import LiteLLM

    compared = 0
    for vendor in VENDORS:
        listed = models.find(vendor.route, model := DEFAULT_MODELS.chat[vendor.name])
        prompt = random.randrange(100, 20_000)
        cached, completion = random.randrange(prompt), random.randrange(1, 500)
        usage = Usage(prompt, completion, PromptTokens(cached))
        theirs = litellm.Usage(
            prompt_tokens=prompt, completion_tokens=completion, prompt_tokens_details={"cached_tokens": cached}
        )
        with pinned_billing_time(moment):
            expected = calculate_cost(litellm, vendor, model, theirs)
        own = build_usage(vendor, model, usage, listed, moment)
        assert own == ModelUsage(model, prompt, completion, own.cost, {"cached_input_tokens": cached} if cached else {})
        if listed is not None:
            assert own.cost == pytest.approx(expected), vendor.name
            compared += 1
    assert compared >= 8
