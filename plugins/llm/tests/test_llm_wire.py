"""LiteLLM's vendors over the wire, against a server that speaks OpenAI's protocol."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr
from switchboard.plugins import ChatRequest, Message, ModelUsage, ProviderError, TextDelta, ToolSpec
from switchboard.plugins.testing import EmbeddingContract, LLMContract
from switchboard_llm.client import VendorSettings
from switchboard_llm.embeddings import EMBEDDINGS, VendorEmbedding
from switchboard_llm.models import MODELS, VendorModel

KEY = "sk-secret-of-the-test"
# LiteLLM and the libraries under it warn of their own future; none of it is ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::ResourceWarning")


class Server:
    """Answers chats by what the last message says."""

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []
        self.open_streams = 0
        self.closed = asyncio.Event()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": f"Incorrect API key: {KEY}", "type": "invalid_request_error"}}, status=401)
        body = await request.json()
        self.asked.append(body)
        said = body["messages"][-1]["content"]
        if said == "too much":
            return web.json_response({"error": {"message": "slow down", "type": "rate_limit"}}, status=429)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta in _tool_deltas() if said == "weather" else _text_deltas(said):
            await _send(response, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if said == "drop":
            assert request.transport is not None
            request.transport.close()
            return response
        if said == "hang":
            self.open_streams += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.closed.set()
        await _send(response, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        await _send(response, {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}})
        await response.write(b"data: [DONE]\n\n")
        return response

    async def models(self, request: web.Request) -> web.Response:
        allowed = request.headers.get("Authorization") == f"Bearer {KEY}"
        return web.json_response({"object": "list", "data": []}, status=200 if allowed else 401)

    async def embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        rows = [{"object": "embedding", "index": index, "embedding": [float(len(text)), 1.0, 2.0]} for index, text in enumerate(body["input"])]
        usage = {"prompt_tokens": 3, "total_tokens": 3}
        return web.json_response({"object": "list", "model": body["model"], "data": rows[::-1], "usage": usage})


def _text_deltas(said: str) -> list[dict[str, object]]:
    return [{"role": "assistant", "content": word} for word in ("You ", "said ", f"{said}.")]


def _tool_deltas() -> list[dict[str, object]]:
    pieces: list[dict[str, object]] = [
        {"id": "call_1", "function": {"name": "weather", "arguments": '{"ci'}},
        {"function": {"arguments": 'ty": "Paris"}'}},
    ]
    return [{"tool_calls": [{"index": 0, "type": "function", **piece}]} for piece in pieces]


async def _send(response: web.StreamResponse, part: dict[str, object]) -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", **part}
    await response.write(f"data: {json.dumps(chunk)}\n\n".encode())


@pytest.fixture
def server() -> Server:
    return Server()


@pytest_asyncio.fixture
async def base_url(server: Server) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_post("/v1/chat/completions", server.chat)
    application.router.add_get("/v1/models", server.models)
    application.router.add_post("/v1/embeddings", server.embed)
    runner = web.AppRunner(application, shutdown_timeout=0.5, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    await runner.cleanup()


def model(base_url: str, *, key: str | None = KEY, name: str = "openai_compatible") -> VendorModel:
    kind = next(kind for kind in MODELS if kind.name == name)
    return kind(VendorSettings(api_key=SecretStr(key) if key else None, base_url=base_url, model="m"))


def ask(text: str, **options: object) -> ChatRequest:
    return ChatRequest((Message("system", "Be brief."), Message("user", text)), **options)  # type: ignore[arg-type] # options of a request


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
        return kind(VendorSettings(api_key=SecretStr(KEY), base_url=base_url, embedding_model="e"))


async def test_text_usage_and_parameters_travel(server: Server, base_url: str) -> None:
    events = [event async for event in model(base_url).chat(ask("hello", temperature=0.3, max_tokens=50))]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "You said hello."
    usage = events[-1]
    assert isinstance(usage, ModelUsage)
    assert (usage.input_tokens, usage.output_tokens) == (12, 5)
    assert server.asked[0]["model"] == "m"
    assert (server.asked[0]["temperature"], server.asked[0]["max_tokens"]) == (0.3, 50)


async def test_a_schema_is_asked_for(server: Server, base_url: str) -> None:
    async for _ in model(base_url).chat(ask("hello", response_schema={"type": "object", "properties": {}})):
        pass
    assert "response_format" in server.asked[0]


@pytest.mark.parametrize(("said", "key", "code", "retryable"), [("hello", "wrong", "401", False), ("too much", KEY, "429", True)])
async def test_refusals_are_told_and_never_show_the_key(base_url: str, said: str, key: str, code: str, retryable: bool) -> None:
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


async def test_cancelling_closes_the_request(server: Server, base_url: str) -> None:
    first = asyncio.Event()

    async def listen() -> None:
        async for _ in model(base_url).chat(ask("hang")):
            first.set()

    listening = asyncio.create_task(listen())
    async with asyncio.timeout(30):
        await first.wait()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await server.closed.wait()


async def test_check_accepts_a_good_key_and_refuses_a_bad_one(base_url: str) -> None:
    await model(base_url).check()
    with pytest.raises(ProviderError):
        await model(base_url, key="wrong").check()


async def test_a_vendor_that_needs_a_key_says_so() -> None:
    kind = next(kind for kind in MODELS if kind.name == "anthropic")
    with pytest.raises(ProviderError, match="API key"):
        await kind(VendorSettings()).open()
