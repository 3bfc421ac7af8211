"""Models and embeddings on the wire, against a server with OpenAI's protocol."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from pydantic import JsonValue, SecretStr
from switchboard.plugin_sdk import ChatRequest, Message, ModelUsage, ProviderError, TextDelta, ToolCall, ToolSpec
from switchboard.plugin_sdk.testing import EmbeddingContract, LLMContract
from switchboard_llm.embeddings import EMBEDDINGS, VendorEmbedding
from switchboard_llm.vendor_api import VendorSettings
from switchboard_llm.vendor_model import VendorModel

from tests.fixtures.chat_models import CreateModel, build_chat_model
from tests.fixtures.chat_server import KEY, ChatServer, Fault

# LiteLLM and its dependencies emit deprecation warnings that we cannot fix.
pytestmark = [
    pytest.mark.usefixtures("litellm_clients"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ChatServer]:
    async with ChatServer.listening() as server:
        yield server


@pytest.fixture
def base_url(server: ChatServer) -> str:
    return server.base_url


def create_request(text: str, **options: object) -> ChatRequest:
    return ChatRequest((Message("system", "Be brief."), Message("user", text)), **options)  # type: ignore[arg-type]


def create_embedding(base_url: str) -> VendorEmbedding:
    kind = next(kind for kind in EMBEDDINGS if kind.name == "openai_compatible")
    return kind(VendorSettings(api_key=SecretStr(KEY), base_url=base_url, embedding_model="e"))


class TestModels(LLMContract[VendorModel]):
    @pytest.fixture
    def provider(self, base_url: str) -> VendorModel:
        return build_chat_model(base_url, model="m")

    @pytest.fixture
    def create_at(self) -> Callable[[str], VendorModel]:
        return lambda address: build_chat_model(f"{address}/v1", model="m")

    @pytest.fixture
    def vendor_address(self, base_url: str) -> str:
        return base_url.removesuffix("/v1")

    @pytest.fixture
    def tool_request(self, weather: ToolSpec) -> ChatRequest:
        return create_request("weather", tools=(weather,))


class TestEmbeddings(EmbeddingContract[VendorEmbedding]):
    @pytest.fixture
    def provider(self, base_url: str) -> VendorEmbedding:
        return create_embedding(base_url)

    @pytest.fixture
    def create_at(self) -> Callable[[str], VendorEmbedding]:
        return lambda address: create_embedding(f"{address}/v1")


@pytest.mark.parametrize(
    ("vendor", "name", "cost"), [("openai", "text-embedding-3-small", 6e-8), ("openai_compatible", "e", None)]
)
async def test_embeddings_report_their_cost_from_the_price_map(
    base_url: str, vendor: str, name: str, cost: float | None
) -> None:
    kind = next(kind for kind in EMBEDDINGS if kind.name == vendor)
    result = await kind(VendorSettings(api_key=SecretStr(KEY), base_url=base_url, embedding_model=name)).embed(
        ["one"], purpose="query"
    )
    assert (result.input_tokens, result.cost) == (3, pytest.approx(cost) if cost else None)


async def test_tool_calls_with_one_index_are_told_apart(create_model: CreateModel, server: ChatServer) -> None:
    server.also = ("weather", '{"city": "Rome"}')
    events = [event async for event in create_model(server.base_url, model="m").chat(create_request("weather"))]
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("weather", {"city": "Paris"}),
        ("weather", {"city": "Rome"}),
    ]
    assert len({call.id for call in calls}) == 2


async def test_ollama_embeds(server: ChatServer) -> None:
    kind = next(kind for kind in EMBEDDINGS if kind.name == "ollama")
    result = await kind(VendorSettings(base_url=server.base_url.removesuffix("/v1"))).embed(
        ["one", "three"], purpose="document"
    )
    assert (result.model, len(result.vectors), result.input_tokens) == ("nomic-embed-text", 2, 3)
    assert result.vectors[0] != result.vectors[1]


async def test_text_usage_and_parameters_are_transmitted(
    create_model: CreateModel, server: ChatServer, base_url: str
) -> None:
    events = [
        event
        async for event in create_model(base_url, model="m").chat(
            create_request("hello", temperature=0.3, max_tokens=50)
        )
    ]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "You said hello."
    usage = events[-1]
    assert isinstance(usage, ModelUsage)
    assert (usage.input_tokens, usage.output_tokens) == (12, 5)
    assert server.requests[0]["model"] == "m"
    assert (server.requests[0]["temperature"], server.requests[0]["max_tokens"]) == (0.3, 50)


async def test_an_incomplete_tool_call_yields_empty_text(
    create_model: CreateModel, base_url: str, server: ChatServer
) -> None:
    events = [event async for event in create_model(base_url, model="m").chat(create_request("weather"))]
    assert events[:2] == [TextDelta("")] * 2
    assert events[2] == ToolCall("call_1", "weather", {"city": "Paris"})


@pytest.mark.parametrize("arguments", ['["Paris"]', '{"city": ', "Paris"])
async def test_a_tool_call_with_invalid_arguments_is_a_provider_error(
    create_model: CreateModel, base_url: str, server: ChatServer, arguments: str
) -> None:
    server.tool = ("weather", arguments)
    with pytest.raises(ProviderError, match="JSON object"):
        async for _ in create_model(base_url, model="m").chat(create_request("weather")):
            pass


TALK = (
    Message("system", "Be brief."),
    Message("system", "Known."),
    Message("assistant", "Hello."),
    Message("user", "hello"),
    Message("assistant", "", tool_calls=(ToolCall("1", "weather", {}),)),
    Message("tool", "{}", tool_call_id="1"),
    Message("system", "It failed."),
)


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("openai", ["system", "system", "assistant", "user", "assistant", "tool", "system"]),
        ("mistral", ["system", "system", "assistant", "user", "assistant", "tool", "assistant", "user"]),
        ("openai_compatible", ["system", "system", "assistant", "user", "assistant", "tool", "assistant", "user"]),
    ],
)
async def test_messages_are_sent_in_the_order_that_a_vendor_accepts(
    create_model: CreateModel, server: ChatServer, base_url: str, name: str, roles: list[str]
) -> None:
    assert [event async for event in create_model(base_url, model="m", name=name).chat(ChatRequest(TALK))]
    asked: Any = server.requests[0]["messages"]
    assert [message["role"] for message in asked] == roles
    assert "It failed." in asked[-1]["content"]
    assert asked[4].get("content") is None, "an empty text beside a tool call is refused, or filled in"


async def test_the_cost_of_an_answer_without_usage_is_not_known(
    create_model: CreateModel, server: ChatServer, base_url: str
) -> None:
    server.counts = False
    for name, model in (("openai_compatible", "m"), ("openai", "gpt-4o-mini")):
        asked = create_model(base_url, model=model, name=name).chat(create_request("hello"))
        assert [event async for event in asked][-1] == ModelUsage(model, 0, 0)


async def ask_with_schema(provider: VendorModel) -> JsonValue:
    """Return a model's response to a request with a schema."""
    request = create_request("hello", response_schema={"type": "object", "properties": {}})
    answer: JsonValue = json.loads(
        "".join([event.text async for event in provider.chat(request) if isinstance(event, TextDelta)])
    )
    return answer


@pytest.mark.parametrize("answer", ['{"a": 1}', '```json\n{"a": 1}\n```', '```\n{"a": 1}```\n'])
async def test_a_schema_answer_is_plain_json(
    create_model: CreateModel, server: ChatServer, base_url: str, answer: str
) -> None:
    server.answer = answer
    assert await ask_with_schema(create_model(base_url, model="m")) == {"a": 1}
    asked: Any = server.requests[0]
    assert asked["response_format"]["type"] == "json_schema"
    assert asked["messages"][0]["content"].endswith('{"type": "object", "properties": {}}'), (
        "a server may know no response formats"
    )


@pytest.mark.parametrize("name", ["groq", "deepseek"])
async def test_models_without_schema_support_are_constrained_to_json(
    create_model: CreateModel, server: ChatServer, base_url: str, name: str
) -> None:
    """DeepSeek refuses a schema, and so do several models at Groq."""
    server.answer = '{"a": 1}'
    assert await ask_with_schema(create_model(base_url, model="m", name=name)) == {"a": 1}
    assert server.requests[0]["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    ("fault", "key", "refusal"),
    [("hello", "wrong", ("401", False)), ("limited", KEY, ("429", True)), ("overloaded", KEY, ("503", True))],
)
async def test_refusals_are_reported_without_the_key(
    create_model: CreateModel, base_url: str, fault: str, key: str, refusal: tuple[str, bool]
) -> None:
    with pytest.raises(ProviderError) as refused:
        async for _ in create_model(base_url, model="m", key=key).chat(create_request(fault)):
            pass
    assert (refused.value.code, refused.value.retryable) == refusal
    assert key not in refused.value.message


async def test_a_dropped_connection_is_a_provider_error(create_model: CreateModel, base_url: str) -> None:
    with pytest.raises(ProviderError):
        async for _ in create_model(base_url, model="m").chat(create_request("drop")):
            pass


async def test_an_unreachable_server_is_a_provider_error(create_model: CreateModel) -> None:
    with pytest.raises(ProviderError):
        async for _ in create_model("http://127.0.0.1:9/v1", model="m").chat(create_request("hello")):
            pass


@pytest.mark.parametrize("fault", ["hang", "mute", "silent"])
async def test_cancellation_closes_the_request(
    create_model: CreateModel, server: ChatServer, base_url: str, fault: Fault
) -> None:
    async def listen() -> None:
        async for _ in create_model(base_url, model="m").chat(create_request(fault)):
            pass

    listening = asyncio.create_task(listen())
    async with asyncio.timeout(30):
        await server.waits.wait()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await server.closed.wait()


async def test_the_connection_is_reused_after_a_late_end_of_answer(
    create_model: CreateModel, server: ChatServer, base_url: str
) -> None:
    provider = create_model(base_url, model="m")
    for _ in range(3):
        assert [event async for event in provider.chat(create_request("late"))]
    assert len(server.peers) == 1


async def test_models_of_servers_and_vendors_are_listed(create_model: CreateModel, base_url: str) -> None:
    assert await create_model(base_url, model="m").list_models() == ["m", "qwen"]
    vendor = create_model(name="anthropic")
    assert vendor.default_model in await vendor.list_models()


async def test_check_accepts_a_valid_key_and_refuses_an_invalid_one(create_model: CreateModel, base_url: str) -> None:
    await create_model(base_url, model="m").check()
    with pytest.raises(ProviderError):
        await create_model(base_url, model="m", key="wrong").check()


async def test_a_missing_required_key_is_reported(create_model: CreateModel) -> None:
    with pytest.raises(ProviderError, match="API key"):
        await create_model(name="anthropic", key=None).open()
