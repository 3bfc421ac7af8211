"""LiteLLM's vendors on the wire, against a server with OpenAI's protocol."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from pydantic import JsonValue, SecretStr
from switchboard.plugin_sdk import ChatRequest, Message, ModelUsage, ProviderError, TextDelta, ToolCall, ToolSpec
from switchboard.plugin_sdk.testing import EmbeddingContract, LLMContract
from switchboard_llm.client import LiteLLMSettings, load_litellm
from switchboard_llm.embeddings import EMBEDDINGS, VendorEmbedding
from switchboard_llm.models import MODELS, VendorModel

from tests.fixtures.chat_server import KEY, ChatServer, Fault

# LiteLLM and the libraries under it warn of their own future; none of it is ours to mend.
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


def model(base_url: str, *, key: str | None = KEY, name: str = "openai_compatible") -> VendorModel:
    kind = next(kind for kind in MODELS if kind.name == name)
    return kind(LiteLLMSettings(api_key=SecretStr(key) if key else None, base_url=base_url, model="m"))


def ask(text: str, **options: object) -> ChatRequest:
    return ChatRequest((Message("system", "Be brief."), Message("user", text)), **options)  # type: ignore[arg-type]


class TestModels(LLMContract[VendorModel]):
    @pytest.fixture
    def provider(self, base_url: str) -> VendorModel:
        return model(base_url)

    @pytest.fixture
    def tool_request(self, weather: ToolSpec) -> ChatRequest:
        return ask("weather", tools=(weather,))


class TestEmbeddings(EmbeddingContract[VendorEmbedding]):
    @pytest.fixture
    def provider(self, base_url: str) -> VendorEmbedding:
        kind = next(kind for kind in EMBEDDINGS if kind.name == "openai_compatible")
        return kind(LiteLLMSettings(api_key=SecretStr(KEY), base_url=base_url, embedding_model="e"))


@pytest.mark.parametrize(
    ("vendor", "name", "cost"), [("openai", "text-embedding-3-small", 6e-8), ("openai_compatible", "e", None)]
)
async def test_embeddings_tell_what_they_cost_where_the_price_map_has_them(
    base_url: str, vendor: str, name: str, cost: float | None
) -> None:
    kind = next(kind for kind in EMBEDDINGS if kind.name == vendor)
    found = await kind(LiteLLMSettings(api_key=SecretStr(KEY), base_url=base_url, embedding_model=name)).embed(
        ["one"], purpose="query"
    )
    assert (found.input_tokens, found.cost) == (3, pytest.approx(cost) if cost else None)


async def test_calls_that_all_come_at_one_index_are_told_apart(server: ChatServer) -> None:
    server.also = ("weather", '{"city": "Rome"}')
    kind = next(kind for kind in MODELS if kind.name == "openai_compatible")
    events = [
        event
        async for event in kind(LiteLLMSettings(base_url=server.base_url, api_key=KEY, model="m")).chat(ask("weather"))
    ]
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("weather", {"city": "Paris"}),
        ("weather", {"city": "Rome"}),
    ]
    assert len({call.id for call in calls}) == 2


async def test_ollama_embeds(server: ChatServer) -> None:
    kind = next(kind for kind in EMBEDDINGS if kind.name == "ollama")
    found = await kind(LiteLLMSettings(base_url=server.base_url.removesuffix("/v1"))).embed(
        ["one", "three"], purpose="document"
    )
    assert (found.model, len(found.vectors), found.input_tokens) == ("nomic-embed-text", 2, 3)
    assert found.vectors[0] != found.vectors[1]


async def test_text_usage_and_parameters_travel(server: ChatServer, base_url: str) -> None:
    events = [event async for event in model(base_url).chat(ask("hello", temperature=0.3, max_tokens=50))]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "You said hello."
    usage = events[-1]
    assert isinstance(usage, ModelUsage)
    assert (usage.input_tokens, usage.output_tokens) == (12, 5)
    assert server.asked[0]["model"] == "m"
    assert (server.asked[0]["temperature"], server.asked[0]["max_tokens"]) == (0.3, 50)


async def test_a_tool_call_that_is_being_written_is_a_sign_of_life(base_url: str, server: ChatServer) -> None:
    events = [event async for event in model(base_url).chat(ask("weather"))]
    assert events[:2] == [TextDelta("")] * 2
    assert events[2] == ToolCall("call_1", "weather", {"city": "Paris"})


@pytest.mark.parametrize("arguments", ['["Paris"]', '{"city": ', "Paris"])
async def test_a_tool_call_that_is_no_object_is_a_provider_error(
    base_url: str, server: ChatServer, arguments: str
) -> None:
    server.tool = ("weather", arguments)
    with pytest.raises(ProviderError, match="JSON object"):
        async for _ in model(base_url).chat(ask("weather")):
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
async def test_a_conversation_is_told_in_the_order_that_a_vendor_takes(
    server: ChatServer, base_url: str, name: str, roles: list[str]
) -> None:
    assert [event async for event in model(base_url, name=name).chat(ChatRequest(TALK))]
    asked: Any = server.asked[0]["messages"]
    assert [message["role"] for message in asked] == roles
    assert "It failed." in asked[-1]["content"]
    assert asked[4].get("content") is None, "an empty text beside a tool call is refused, or filled in"


async def test_a_server_that_counts_no_tokens_has_nobody_else_asked(
    server: ChatServer, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a model named Llama, LiteLLM would download a tokenizer from Hugging Face and block the event loop
    meanwhile.
    """
    server.counts, asked = False, list[str]()
    monkeypatch.setattr((await load_litellm()).utils, "_return_huggingface_tokenizer", asked.append)
    request = replace(ask("hello"), model="llama-3.3-70b-instruct")
    assert (
        "".join([event.text async for event in model(base_url).chat(request) if isinstance(event, TextDelta)])
        == "You said hello."
    )
    assert asked == []


async def ask_with_schema(provider: VendorModel) -> JsonValue:
    """Return a model's response to a request with a schema."""
    request = ask("hello", response_schema={"type": "object", "properties": {}})
    answer: JsonValue = json.loads(
        "".join([event.text async for event in provider.chat(request) if isinstance(event, TextDelta)])
    )
    return answer


@pytest.mark.parametrize("said", ['{"a": 1}', '```json\n{"a": 1}\n```', '```\n{"a": 1}```\n'])
async def test_an_answer_by_a_schema_is_json_and_nothing_else(server: ChatServer, base_url: str, said: str) -> None:
    server.answer = said
    assert await ask_with_schema(model(base_url)) == {"a": 1}
    asked: Any = server.asked[0]
    assert asked["response_format"]["type"] == "json_schema"
    assert asked["messages"][0]["content"].endswith('{"type": "object", "properties": {}}'), (
        "a server may know no response formats"
    )


@pytest.mark.parametrize("name", ["groq", "deepseek"])
async def test_models_that_no_schema_holds_are_held_to_json(server: ChatServer, base_url: str, name: str) -> None:
    """DeepSeek refuses a schema; for Groq, LiteLLM turns it into a tool, whose call is not text."""
    server.answer = '{"a": 1}'
    assert await ask_with_schema(model(base_url, name=name)) == {"a": 1}
    assert server.asked[0]["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    ("said", "key", "code", "retryable"),
    [("hello", "wrong", "401", False), ("limited", KEY, "429", True), ("overloaded", KEY, "503", True)],
)
async def test_refusals_are_told_and_never_show_the_key(
    base_url: str, said: str, key: str, code: str, retryable: bool
) -> None:
    with pytest.raises(ProviderError) as refused:
        async for _ in model(base_url, key=key).chat(ask(said)):
            pass
    assert (refused.value.code, refused.value.retryable) == (code, retryable)
    assert key not in refused.value.message


async def test_a_dropped_connection_is_a_provider_error(base_url: str) -> None:
    with pytest.raises(ProviderError):
        async for _ in model(base_url).chat(ask("drop")):
            pass


async def test_nobody_there_is_a_provider_error() -> None:
    with pytest.raises(ProviderError):
        async for _ in model("http://127.0.0.1:9/v1").chat(ask("hello")):
            pass


@pytest.mark.parametrize("said", ["hang", "mute", "silent"])
async def test_cancelling_closes_the_request(server: ChatServer, base_url: str, said: Fault) -> None:
    async def listen() -> None:
        async for _ in model(base_url).chat(ask(said)):
            pass

    listening = asyncio.create_task(listen())
    async with asyncio.timeout(30):
        await server.waits.wait()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await server.closed.wait()


async def test_the_connection_is_kept_where_an_answer_ends_late(server: ChatServer, base_url: str) -> None:
    provider = model(base_url)
    for _ in range(3):
        assert [event async for event in provider.chat(ask("late"))]
    assert len(server.peers) == 1


async def test_a_servers_models_and_a_vendors_are_listed(base_url: str) -> None:
    assert await model(base_url).list_models() == ["llama", "qwen"]
    vendor = next(kind for kind in MODELS if kind.name == "anthropic")(LiteLLMSettings(api_key=SecretStr(KEY)))
    assert vendor.vendor.default_model in await vendor.list_models()


async def test_check_accepts_a_good_key_and_refuses_a_bad_one(base_url: str) -> None:
    await model(base_url).check()
    with pytest.raises(ProviderError):
        await model(base_url, key="wrong").check()


async def test_a_vendor_that_needs_a_key_says_so() -> None:
    kind = next(kind for kind in MODELS if kind.name == "anthropic")
    with pytest.raises(ProviderError, match="API key"):
        await kind(LiteLLMSettings()).open()
