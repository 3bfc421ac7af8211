"""Differences between vendors: default models, reasoning, the order of messages, cached prompts, and checks."""

from collections.abc import AsyncIterator, Callable
from datetime import date, timedelta

import msgspec
import pytest
import pytest_asyncio
from pydantic import JsonValue
from switchboard.plugin_sdk import ChatRequest, Message, ModelUsage, ProviderError, ToolCall, ToolSpec
from switchboard.plugin_sdk.testing import LLMContract
from switchboard_llm.default_models import DEFAULT_MODELS, find_faults
from switchboard_llm.model_map import ModelMap, load_model_map
from switchboard_llm.vendor_model import EffortSetting, VendorModel
from switchboard_llm.vendors import VENDORS

from tests.fixtures.chat_models import CreateModel, build_chat_model
from tests.fixtures.chat_server import USAGE, ChatServer
from tests.fixtures.model_servers import ModelServers
from tests.fixtures.servers import REPOSITORY

pytestmark = [
    pytest.mark.usefixtures("litellm_clients"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]
PROMPT, HELLO = Message("system", "Be brief."), Message("user", "Hello?")
GREETING, NOTE = Message("assistant", "Good morning."), Message("system", "The caller is a regular.")
CALL = Message("assistant", "", tool_calls=(ToolCall("toolu_1", "weather", {"city": "Rome"}),))
RESULT = Message("tool", "{}", tool_call_id="toolu_1")
ORDERS = {
    "the first words": (PROMPT, HELLO),
    "after a greeting": (PROMPT, GREETING, HELLO),
    "with passages": (PROMPT, Message("system", "Open until six."), GREETING, HELLO),
    "after a tool": (PROMPT, HELLO, CALL, RESULT),
    "an interruption during a tool": (PROMPT, HELLO, CALL, RESULT, HELLO),
    "a note after the agent": (PROMPT, HELLO, GREETING, NOTE),
    "a note after a tool": (PROMPT, HELLO, CALL, RESULT, NOTE),
    "a note in between": (PROMPT, GREETING, NOTE, HELLO),
    "two utterances": (PROMPT, GREETING, HELLO, HELLO),
    "a call handed back": (PROMPT, HELLO, GREETING),
    "nothing said yet": (PROMPT, NOTE),
}


async def ask(model: VendorModel, *messages: Message) -> ModelUsage:
    """Ask and return the usage."""
    events = [event async for event in model.chat(ChatRequest(messages or (PROMPT, HELLO)))]
    usage = events[-1]
    assert isinstance(usage, ModelUsage)
    return usage


class TestAnthropic(LLMContract[VendorModel]):
    @pytest.fixture
    def provider(self, vendors: ModelServers) -> VendorModel:
        return build_chat_model(vendors.url, name="anthropic")

    @pytest.fixture
    def create_at(self) -> Callable[[str], VendorModel]:
        return lambda address: build_chat_model(address, name="anthropic")

    @pytest.fixture
    def vendor_address(self, vendors: ModelServers) -> str:
        return vendors.url

    @pytest.fixture
    def tool_request(self, weather: ToolSpec) -> ChatRequest:
        return ChatRequest((PROMPT, Message("user", "weather")), tools=(weather,))


class TestGemini(LLMContract[VendorModel]):
    # Without `vendor_address`: LiteLLM does not keep the reason with which Google ends a stream.
    @pytest.fixture
    def provider(self, vendors: ModelServers) -> VendorModel:
        return build_chat_model(vendors.url, name="gemini")

    @pytest.fixture
    def create_at(self) -> Callable[[str], VendorModel]:
        return lambda address: build_chat_model(address, name="gemini")

    @pytest.fixture
    def tool_request(self, weather: ToolSpec) -> ChatRequest:
        return ChatRequest((PROMPT, Message("user", "weather")), tools=(weather,))


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ChatServer]:
    async with ChatServer.listening() as server:
        yield server


@pytest_asyncio.fixture
async def vendors() -> AsyncIterator[ModelServers]:
    async with ModelServers.listening() as servers:
        yield servers


def test_every_default_model_was_offered_when_it_was_checked() -> None:
    faults = find_faults(load_model_map(), DEFAULT_MODELS.checked - timedelta(days=30))
    assert faults == ["openai: gpt-4o-mini-tts ends on 2027-01-06"], "OpenAI has no successor of it"
    assert {vendor.name for vendor in VENDORS} == set(DEFAULT_MODELS.chat)


def test_a_default_model_that_ends_or_is_unknown_is_named() -> None:
    models = ModelMap({"claude-haiku-4-5": msgspec.Raw(b'{"deprecation_date": "2027-01-01"}')})
    faults = find_faults(models, DEFAULT_MODELS.checked)
    assert "anthropic: claude-haiku-4-5 ends on 2027-01-01" in faults
    assert "deepseek: deepseek-v4-flash is not in LiteLLM's map" in faults
    assert "openai: gpt-4o-mini-tts ends on 2027-01-06" in faults, "the vendor's page is read beside the map"


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (("openai", "gpt-5.6-luna", "least"), {"reasoning_effort": "none"}),
        (("openai", "gpt-5-mini", "least"), {"reasoning_effort": "minimal"}),
        (("openai", "o3", "least"), {"reasoning_effort": "low"}),
        (("openai", "gpt-5.6-luna", "medium"), {"reasoning_effort": "medium"}),
        (("openai", "gpt-4o-mini", "least"), {}),
        (("groq", "openai/gpt-oss-120b", "least"), {"reasoning_effort": "low"}),
        (("groq", "qwen/qwen3.8-27b", "least"), {"reasoning_effort": "none"}),
        (("cerebras", "gpt-oss-120b", "least"), {"reasoning_effort": "low"}),
        (("mistral", "mistral-small-latest", "least"), {"reasoning_effort": "none"}),
        (("mistral", "magistral-small-latest", "least"), {}),
        (("mistral", "mistral-small-latest", "low"), {"reasoning_effort": "high"}),
        (("together", "Qwen/Qwen3.5-9B", "least"), {"reasoning": {"enabled": False}}),
        (("ollama", "qwen3", "least"), {"reasoning_effort": "none"}),
        (("deepseek", "deepseek-v4-flash", "least"), {"thinking": {"type": "disabled"}}),
        (("xai", "grok-4.20-non-reasoning", "least"), {}),
        (("together", "openai/gpt-oss-120b", "least"), {"reasoning_effort": "low"}),
        (("openrouter", "openai/gpt-5.6-luna", "least"), {"reasoning": {"effort": "minimal"}}),
        (("openai_compatible", "m", "least"), {}),
        (("openai_compatible", "m", "low"), {"reasoning_effort": "low"}),
    ],
)
async def test_models_are_asked_to_reason_least(
    create_model: CreateModel, server: ChatServer, asked: tuple[str, str, EffortSetting], sent: dict[str, object]
) -> None:
    vendor, model, effort = asked
    base_url = server.base_url.removesuffix("/v1") if vendor == "ollama" else server.base_url
    await ask(create_model(base_url, name=vendor, model=model, reasoning_effort=effort))
    (request,) = server.requests
    assert {key: value for key, value in request.items() if "reason" in key or "think" in key} == sent


async def test_gemini_is_told_not_to_think(create_model: CreateModel, vendors: ModelServers) -> None:
    await ask(create_model(vendors.url, name="gemini", model="gemini-2.5-flash"))
    await ask(create_model(vendors.url, name="gemini"))
    thinking = [request["generationConfig"]["thinkingConfig"] for request in vendors.requests]
    assert thinking[0]["thinkingBudget"] == 0
    assert thinking[1]["thinkingLevel"] == "minimal"


async def test_claude_does_not_think_unless_settings_say_so(create_model: CreateModel, vendors: ModelServers) -> None:
    await ask(create_model(vendors.url, name="anthropic"))
    await ask(create_model(vendors.url, name="anthropic", reasoning_effort="low"))
    assert "thinking" not in vendors.requests[0]
    assert vendors.requests[1]["thinking"]["type"] == "enabled"


@pytest.mark.parametrize("messages", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("vendor", ["anthropic", "gemini"])
async def test_every_order_of_messages_is_accepted(
    create_model: CreateModel, vendors: ModelServers, vendor: str, messages: tuple[Message, ...]
) -> None:
    await ask(create_model(vendors.url, name=vendor), *messages)
    (request,) = vendors.requests
    assert str(request).count("The caller is a regular.") == messages.count(NOTE)


@pytest.mark.parametrize("messages", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("vendor", ["openai", "mistral", "openai_compatible"])
async def test_no_conversation_ends_with_the_models_words(
    create_model: CreateModel, server: ChatServer, vendor: str, messages: tuple[Message, ...]
) -> None:
    await ask(create_model(server.base_url, name=vendor, model="m"), *messages)
    sent = server.requests[0]["messages"]
    assert isinstance(sent, list)
    assert sent[-1]["role"] != "assistant"
    if vendor != "openai":
        assert sent[-1]["role"] in ("user", "tool")


@pytest.mark.parametrize(
    ("vendor", "model", "cost"),
    [
        ("openai", "gpt-4o-mini", 100 * 1.5e-7 + 900 * 7.5e-8 + 10 * 6e-7),
        ("mistral", "mistral-small-latest", 100 * 1.5e-7 + 900 * 1.5e-8 + 10 * 6e-7),
    ],
)
async def test_cached_tokens_cost_what_the_vendor_charges_for_them(
    create_model: CreateModel, server: ChatServer, vendor: str, model: str, cost: float
) -> None:
    server.usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 10,
        "total_tokens": 1010,
        "prompt_tokens_details": {"cached_tokens": 900},
    }
    usage = await ask(create_model(server.base_url, name=vendor, model=model))
    assert usage.cost == pytest.approx(cost)
    assert usage.detail == {"cached_input_tokens": 900}


@pytest.mark.parametrize(
    ("vendor", "cost"),
    [
        ("anthropic", 100 * 1e-6 + 900 * 1e-7 + 10 * 5e-6),
        ("gemini", 100 * 3e-7 + 900 * 3e-8 + 10 * 2.5e-6),
    ],
)
async def test_cached_tokens_of_other_formats_are_counted(
    create_model: CreateModel, vendors: ModelServers, vendor: str, cost: float
) -> None:
    usage = await ask(create_model(vendors.url, name=vendor))
    assert (usage.input_tokens, usage.output_tokens) == (1000, 10)
    assert usage.cost == pytest.approx(cost)


GROK: dict[str, JsonValue] = {
    "prompt_tokens": 32,
    "completion_tokens": 9,
    "total_tokens": 135,
    "prompt_tokens_details": {"cached_tokens": 6},
    "completion_tokens_details": {"reasoning_tokens": 94},
}
"""Usage in the form of https://docs.x.ai/docs/key-information/consumption-and-rate-limits."""
THINKING: dict[str, JsonValue] = {**GROK, "completion_tokens": 103}
"""The same usage as OpenAI reports it."""


@pytest.mark.parametrize(
    ("vendor", "usage", "billed"),
    [
        (("xai", "grok-4.20-non-reasoning"), GROK, (103, 26 * 1.25e-6 + 6 * 2e-7 + 103 * 2.5e-6)),
        (("xai", "grok-4.20-non-reasoning"), THINKING, (103, 26 * 1.25e-6 + 6 * 2e-7 + 103 * 2.5e-6)),
        (("xai", "grok-4.20-non-reasoning"), {**GROK, "cost_in_usd_ticks": 232_856_000}, (103, 0.0232856)),
        (("openai", "gpt-4o-mini"), THINKING, (103, 26 * 1.5e-7 + 6 * 7.5e-8 + 103 * 6e-7)),
        (("openrouter", None), {**THINKING, "cost": 0.00042}, (103, 0.00042)),
        (
            ("openrouter", None),
            {**THINKING, "cost": 0.00002, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.0004}},
            (103, 0.00042),
        ),
        (
            ("openrouter", None),
            {**THINKING, "cost": 0.00042, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.0004}},
            (103, 0.00042),
        ),
        (("openai_compatible", "m"), {**THINKING, "cost": 7}, (103, None)),
    ],
)
async def test_an_answer_costs_what_the_vendor_bills(
    create_model: CreateModel,
    server: ChatServer,
    vendor: tuple[str, str | None],
    usage: dict[str, object],
    billed: tuple[int, float | None],
) -> None:
    server.usage = usage
    name, model = vendor
    answer = await ask(create_model(server.base_url, name=name, model=model))
    assert (answer.output_tokens, answer.cost) == (billed[0], billed[1] and pytest.approx(billed[1]))


async def test_mistral_is_not_asked_for_the_usage_that_it_always_reports(
    create_model: CreateModel, server: ChatServer
) -> None:
    usage = await ask(create_model(server.base_url, name="mistral"))
    assert "stream_options" not in server.requests[0]
    assert (usage.input_tokens, usage.output_tokens) == (12, 5)


async def test_claude_is_told_what_to_cache(create_model: CreateModel, vendors: ModelServers) -> None:
    await ask(create_model(vendors.url, name="anthropic"), PROMPT, HELLO, GREETING, HELLO)
    (request,) = vendors.requests
    assert request["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert request["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert str(request).count("cache_control") == 2


async def test_usage_without_details_costs_the_full_price(create_model: CreateModel, server: ChatServer) -> None:
    usage = await ask(create_model(server.base_url, name="openai", model="gpt-4o-mini"))
    assert usage.input_tokens == USAGE["prompt_tokens"]
    assert usage.cost == pytest.approx(12 * 1.5e-7 + 5 * 6e-7)
    assert usage.detail == {}


@pytest.mark.parametrize("vendor", ["anthropic", "gemini"])
async def test_a_check_asks_the_vendor(create_model: CreateModel, vendors: ModelServers, vendor: str) -> None:
    await create_model(vendors.url, name=vendor).check()
    with pytest.raises(ProviderError, match="answered 40"):
        await create_model(vendors.url, name=vendor, key="another").check()
    with pytest.raises(ProviderError, match="does not offer the model no-such"):
        await create_model(vendors.url, name=vendor, model="no-such").check()


def test_the_reference_names_the_default_models() -> None:
    page = (REPOSITORY / "docs" / "reference" / "language-models.md").read_text()
    for vendor, model in DEFAULT_MODELS.chat.items():
        assert f"| `{vendor}` | `{model}`" in page


def test_every_vendor_with_a_key_can_be_asked() -> None:
    assert {vendor.name for vendor in VENDORS if vendor.needs_key and vendor.address is None} == {"azure"}


@pytest.mark.parametrize(
    ("vendor", "listed"),
    [
        ("openai", {"id": "m", "shutdown_date": "2027-03-01"}),
        ("azure", {"id": "m", "deprecation": {"fine_tune": 1677662127, "inference": 1803859200}}),
        ("mistral", {"id": "m", "deprecation": "2027-03-01T12:00:00Z"}),
    ],
)
async def test_the_end_of_a_model_is_read_from_the_list_of_its_vendor(
    create_model: CreateModel, server: ChatServer, vendor: str, listed: dict[str, JsonValue]
) -> None:
    server.models = [listed, {"id": "n", "shutdown_date": "soon"}, {"id": "o", "deprecation": None}]
    address = server.base_url.removesuffix("/v1") if vendor == "azure" else server.base_url
    model = create_model(address, name=vendor, model="m")
    await model.check()
    assert await model.find_model_ends(["m", "n", "o"]) == {"m": date(2027, 3, 1)}
