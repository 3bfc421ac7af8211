"""Models of AWS Bedrock, Google Vertex AI, and Azure OpenAI with the credentials of these clouds, on the wire."""

import json
from collections.abc import AsyncIterator, Callable
from datetime import date

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import ValidationError
from switchboard.plugin_sdk import ChatRequest, Message, ModelUsage, ProviderError, TextDelta, ToolSpec
from switchboard.plugin_sdk.testing import LLMContract
from switchboard.plugin_sdk.testing.llm import SUMMARY
from switchboard_llm import MODELS
from switchboard_llm.vendor_model import VendorModel

from tests.fixtures.cloud_servers import (
    ACCESS_KEY_ID,
    ACCOUNT,
    API_KEY,
    BEDROCK_MODELS,
    CLIENT_ID,
    CLIENT_SECRET,
    PROJECT,
    REGION,
    SECRET_ACCESS_KEY,
    TENANT,
    CloudServers,
)
from tests.fixtures.http_server import serve_application

pytestmark = [
    pytest.mark.usefixtures("litellm_clients"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]
PROMPT, HELLO = Message("system", "Be brief."), Message("user", "Hello?")
KEYS: dict[str, object] = {"access_key_id": ACCESS_KEY_ID, "secret_access_key": SECRET_ACCESS_KEY}
APPLICATION: dict[str, object] = {"tenant_id": TENANT, "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}


def build_model(name: str, address: str, **settings: object) -> VendorModel:
    kind = next(kind for kind in MODELS if kind.name == name)
    return kind(kind.Settings.model_validate({"base_url": address, **settings}))


def build_bedrock(address: str, **settings: object) -> VendorModel:
    return build_model("bedrock", address, region=REGION, **(settings or KEYS))


def build_vertex(address: str, **settings: object) -> VendorModel:
    given = {"project": PROJECT, "service_account": json.dumps(ACCOUNT), **settings}
    return build_model("vertex", address, **given)


class TestBedrock(LLMContract[VendorModel]):
    @pytest.fixture
    def provider(self, clouds: CloudServers) -> VendorModel:
        return build_bedrock(clouds.url)

    @pytest.fixture
    def create_at(self) -> Callable[[str], VendorModel]:
        return build_bedrock

    @pytest.fixture
    def tool_request(self, weather: ToolSpec) -> ChatRequest:
        return ChatRequest((PROMPT, Message("user", "weather")), tools=(weather,))


class TestVertex(LLMContract[VendorModel]):
    @pytest.fixture
    def provider(self, clouds: CloudServers) -> VendorModel:
        return build_vertex(clouds.url)

    @pytest.fixture
    def create_at(self) -> Callable[[str], VendorModel]:
        return build_vertex

    @pytest.fixture
    def tool_request(self, weather: ToolSpec) -> ChatRequest:
        return ChatRequest((PROMPT, Message("user", "weather")), tools=(weather,))


@pytest_asyncio.fixture
async def clouds() -> AsyncIterator[CloudServers]:
    async with CloudServers.listening() as servers:
        yield servers


async def ask(model: VendorModel, *messages: Message) -> tuple[str, ModelUsage]:
    """Return the answer and its usage."""
    events = [event async for event in model.chat(ChatRequest(messages or (PROMPT, HELLO)))]
    usage = events[-1]
    assert isinstance(usage, ModelUsage)
    return "".join(event.text for event in events if isinstance(event, TextDelta)), usage


@pytest.mark.parametrize("credentials", [KEYS, {"api_key": API_KEY}], ids=["access key", "API key"])
async def test_bedrock_answers_and_bills_cached_tokens(clouds: CloudServers, credentials: dict[str, object]) -> None:
    model = build_bedrock(clouds.url, **credentials)
    await model.open()
    answer, usage = await ask(model)
    assert answer == "Yes, madam."
    assert (usage.input_tokens, usage.output_tokens) == (1000, 10)
    assert usage.cost == pytest.approx(100 * 1e-6 + 900 * 1e-7 + 10 * 5e-6)
    assert clouds.requests[0]["system"][-1] == {"cachePoint": {"type": "default"}}, "Claude is told what to cache"


async def test_bedrock_marks_nothing_for_models_without_a_cache(clouds: CloudServers) -> None:
    await ask(build_bedrock(clouds.url, **KEYS, model="amazon.nova-2-lite-v1:0"))
    assert "cachePoint" in str(clouds.requests[0])
    with pytest.raises(ProviderError):
        await ask(build_bedrock(clouds.url, **KEYS, model="meta.llama3-3-70b-instruct-v1:0"))


@pytest.mark.parametrize("name", ["global.anthropic.claude-haiku-4-5-20251001-v1:0", "amazon.nova-2-lite-v1:0"])
async def test_models_with_and_without_schemas_of_their_own_answer_in_json(clouds: CloudServers, name: str) -> None:
    request = ChatRequest((PROMPT, HELLO), response_schema=SUMMARY)
    events = [event async for event in build_bedrock(clouds.url, **KEYS, model=name).chat(request)]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == '{"summary": "Hours."}'


async def test_a_check_of_bedrock_asks_for_the_models_of_the_region(clouds: CloudServers) -> None:
    await build_bedrock(clouds.url).check()
    await build_bedrock(clouds.url, api_key=API_KEY).check()
    profiles = [f"eu.{BEDROCK_MODELS[0]}", f"eu.{BEDROCK_MODELS[1]}"]
    assert await build_bedrock(clouds.url).find_model_ends(profiles) == {profiles[0]: date(2027, 3, 1)}
    with pytest.raises(ProviderError, match="answered 403"):
        await build_bedrock(clouds.url, access_key_id=ACCESS_KEY_ID, secret_access_key="another").check()
    with pytest.raises(ProviderError, match="does not offer the model no-such"):
        await build_bedrock(clouds.url, **KEYS, model="eu.no-such").check()


@pytest.mark.parametrize(
    "settings",
    [{"access_key_id": "a"}, {"machine_identity": False}, {**KEYS, "api_key": "k"}, {"secret_access_key": "s"}],
)
async def test_bedrock_needs_one_kind_of_credentials(settings: dict[str, object]) -> None:
    model = build_bedrock("http://127.0.0.1:9", **settings)
    with pytest.raises(ProviderError, match="AWS Bedrock needs"):
        await model.open()
    with pytest.raises(ProviderError, match="AWS Bedrock needs"):
        await model.check()


async def test_bedrock_uses_the_identity_of_the_machine(clouds: CloudServers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY)
    model = build_bedrock(clouds.url, machine_identity=True)
    await model.check()
    assert (await ask(model))[0] == "Yes, madam."


@pytest.mark.parametrize("region", ["eu-central-1.attacker.example/", "x", ""])
def test_a_region_cannot_be_an_address(region: str) -> None:
    with pytest.raises(ValidationError):
        build_model("bedrock", "http://127.0.0.1:9", region=region, **KEYS)


async def test_vertex_answers_with_a_token_of_the_service_account(clouds: CloudServers) -> None:
    model = build_vertex(clouds.url)
    await model.open()
    answer, usage = await ask(model)
    assert answer == "Yes, madam."
    assert (usage.input_tokens, usage.output_tokens) == (1000, 10)
    assert usage.cost == pytest.approx(1000 * 3e-7 + 10 * 2.5e-6)
    assert clouds.requests[0]["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "minimal"
    await ask(model)
    assert len(clouds.tokens) <= 1, "a token serves for an hour"


async def test_a_check_of_vertex_shows_what_is_wrong(clouds: CloudServers) -> None:
    await build_vertex(clouds.url).check()
    with pytest.raises(ProviderError, match="Permission denied on resource project another"):
        await build_vertex(clouds.url, project="another").check()
    with pytest.raises(ProviderError, match="Publisher Model `no-such` was not found"):
        await build_vertex(clouds.url, model="no-such").check()
    stranger = json.dumps({**ACCOUNT, "client_email": "stranger@example.com"})
    with pytest.raises(ProviderError, match="refuses the credentials"):
        await build_vertex(clouds.url, service_account=stranger).check()
    with pytest.raises(ProviderError, match="needs one of service_account and machine_identity"):
        await build_vertex(clouds.url, service_account=None).check()


@pytest.mark.parametrize(
    "account", ["/etc/passwd", "{}", json.dumps({"type": "external_account", "credential_source": {"executable": {}}})]
)
def test_other_kinds_of_credentials_are_refused(account: str) -> None:
    with pytest.raises(ValidationError, match="not the JSON file of a service account's key"):
        build_vertex("http://127.0.0.1:9", service_account=account)


class AzureServer:
    """A deployment that demands a token of Entra ID. `headers` are those of the requests."""

    def __init__(self) -> None:
        self.headers: list[str | None] = []

    async def chat(self, request: web.Request) -> web.Response:
        self.headers.append(request.headers.get("Authorization"))
        chunk = {"choices": [{"index": 0, "delta": {"content": "Yes."}}], "usage": {"prompt_tokens": 1}}
        return web.Response(text=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")

    async def list_models(self, request: web.Request) -> web.Response:
        self.headers.append(request.headers.get("Authorization"))
        return web.json_response({"data": [{"id": "gpt-5.6-luna"}]})


@pytest_asyncio.fixture
async def azure() -> AsyncIterator[tuple[AzureServer, str]]:
    server, application = AzureServer(), web.Application()
    application.router.add_post("/openai/v1/chat/completions", server.chat)
    application.router.add_get("/openai/v1/models", server.list_models)
    async with serve_application(application) as url:
        yield server, url


async def test_azure_is_asked_with_tokens_of_an_application(
    clouds: CloudServers, azure: tuple[AzureServer, str]
) -> None:
    server, address = azure
    model = build_model("azure", address, authority=clouds.url, **APPLICATION)
    await model.open()
    await model.check()
    assert (await ask(model))[0] == "Yes."
    assert server.headers == ["Bearer token-0"] * 2
    await model.close()


async def test_a_token_that_ends_soon_is_replaced(clouds: CloudServers, azure: tuple[AzureServer, str]) -> None:
    server, address = azure
    clouds.token_seconds = 200
    model = build_model("azure", address, authority=clouds.url, **APPLICATION)
    await ask(model)
    await ask(model)
    assert len(set(server.headers)) == 2
    await model.close()


async def test_azure_says_what_is_wrong_with_the_application(
    clouds: CloudServers, azure: tuple[AzureServer, str]
) -> None:
    wrong = build_model("azure", azure[1], authority=clouds.url, **{**APPLICATION, "client_secret": "another"})
    with pytest.raises(ProviderError, match="Entra ID refuses the application: AADSTS7000215"):
        await wrong.check()
    await wrong.close()
    away = build_model("azure", azure[1], authority="http://127.0.0.1:9", **APPLICATION)
    with pytest.raises(ProviderError, match="Entra ID cannot be reached"):
        await away.check()
    await away.close()
    for settings in ({"tenant_id": TENANT}, {**APPLICATION, "api_key": "k"}):
        with pytest.raises(ProviderError, match="needs either api_key, or all of"):
            await build_model("azure", azure[1], **settings).open()
