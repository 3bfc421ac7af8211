"""The contract of capability `llm`."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Final, TypeVar

import pytest

from switchboard.plugin_sdk.llm import (
    ChatEvent,
    ChatRequest,
    JsonObject,
    LLMProvider,
    Message,
    ModelUsage,
    TextDelta,
    ToolCall,
    ToolSpec,
)
from switchboard.plugin_sdk.provider import ProviderError, ProviderSettings
from switchboard.plugin_sdk.testing.contract import ProviderContract
from switchboard.plugin_sdk.testing.vendors import serve_changed, serve_silence

AnyLLM = TypeVar("AnyLLM", bound=LLMProvider[ProviderSettings])
ANSWER_SECONDS: Final = 20.0
SHORT_SECONDS: Final = 0.2
CALLS: Final = 5
SUMMARY: Final[JsonObject] = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "required": ["summary"],
    "additionalProperties": False,
}


async def collect_events(provider: AnyLLM, request: ChatRequest) -> list[ChatEvent]:
    """Return all events of a response."""
    return [event async for event in provider.chat(request)]


class LLMContract(ProviderContract[AnyLLM]):
    """Rules of every language model.

    Override `provider`, and `tool_request` with a request that makes the model call a tool.
    """

    @pytest.fixture
    def chat_request(self) -> ChatRequest:
        """A request that the model answers with text."""
        return ChatRequest((Message("system", "You are a helpful agent."), Message("user", "Hello")))

    @pytest.fixture
    def tool_request(self) -> ChatRequest:
        """A request that the model answers with a call of the tool `weather` for the city Paris. Must be overridden."""
        raise NotImplementedError("override the fixture `tool_request` of this contract")

    @pytest.fixture
    def weather(self) -> ToolSpec:
        schema: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        return ToolSpec("weather", "The weather in a city.", schema)

    @pytest.fixture
    def unknown_model(self) -> str | None:
        """Name of a model that the provider does not have. Override it with None if the provider has no models to
        choose from.
        """
        return "no-such-model"

    @pytest.fixture
    def vendor_address(self) -> str:
        """Address of the server that stands for the vendor, as `create_at` takes it. Override it if the vendor's
        answers are streams over HTTP.
        """
        pytest.skip("no server stands for the vendor; otherwise override the fixture `vendor_address`")

    async def use(self, provider: AnyLLM) -> None:
        """Ask for an answer."""
        await collect_events(provider, ChatRequest((Message("user", "Hello"),)))

    async def test_it_answers_with_text_and_usage_last(self, open_provider: AnyLLM, chat_request: ChatRequest) -> None:
        """Costs are computed from usage. If this fails, yield one `ModelUsage` as the last event."""
        events = await collect_events(open_provider, chat_request)
        assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip()
        assert [index for index, event in enumerate(events) if isinstance(event, ModelUsage)] == [len(events) - 1]

    async def test_text_is_streamed(self, open_provider: AnyLLM, chat_request: ChatRequest) -> None:
        """The first sentence is spoken while the rest is generated. If this fails, yield text as it arrives."""
        events = await collect_events(open_provider, chat_request)
        assert len([event for event in events if isinstance(event, TextDelta)]) > 1

    async def test_a_tool_call_is_whole(self, open_provider: AnyLLM, tool_request: ChatRequest) -> None:
        """If this fails, collect all parts of a call and parse its arguments before yielding it."""
        calls = [event for event in await collect_events(open_provider, tool_request) if isinstance(event, ToolCall)]
        assert [(call.name, call.arguments) for call in calls] == [("weather", {"city": "Paris"})]
        assert calls[0].id

    async def test_stopping_early_is_harmless(self, open_provider: AnyLLM, chat_request: ChatRequest) -> None:
        """Callers interrupt. If this fails, close the upstream request when the iterator is closed."""
        async with aclosing(open_provider.chat(chat_request)) as events:  # type: ignore[type-var]
            await anext(events)
        assert await collect_events(open_provider, chat_request)

    async def test_a_canceled_response_is_harmless(self, open_provider: AnyLLM, chat_request: ChatRequest) -> None:
        """The task of a turn is canceled when a call ends.

        If this fails, let `CancelledError` pass, and close the upstream request in `finally`.
        """
        begun = asyncio.Event()

        async def read_response() -> None:
            async for _ in open_provider.chat(chat_request):
                begun.set()

        response = asyncio.create_task(read_response())
        async with asyncio.timeout(ANSWER_SECONDS):
            await begun.wait()
            if response.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await response
        assert await collect_events(open_provider, chat_request)

    async def test_calls_do_not_wait_for_one_another(self, open_provider: AnyLLM, chat_request: ChatRequest) -> None:
        """One instance serves all calls of an organization.

        If this fails, keep no state of a response in the provider, and no lock around a response.
        """
        held = open_provider.chat(chat_request)
        async with asyncio.timeout(ANSWER_SECONDS), aclosing(held) as events:  # type: ignore[type-var]
            await anext(events)
            responses = [collect_events(open_provider, chat_request) for _ in range(CALLS)]
            for response in await asyncio.gather(*responses):
                assert isinstance(response[-1], ModelUsage)

    async def test_the_turn_after_a_tool_result_is_answered(
        self, open_provider: AnyLLM, tool_request: ChatRequest
    ) -> None:
        """The model is asked again with the result of its call.

        If this fails, translate messages with `tool_calls` and `tool_call_id` as the vendor expects them.
        """
        events = await collect_events(open_provider, tool_request)
        calls = tuple(event for event in events if isinstance(event, ToolCall))
        result = Message("tool", json.dumps({"weather": "sunny"}), tool_call_id=calls[0].id)
        messages = (*tool_request.messages, Message("assistant", "", tool_calls=calls), result)
        answer = await collect_events(open_provider, replace(tool_request, messages=messages))
        assert isinstance(answer[-1], ModelUsage)

    async def test_an_answer_by_schema_is_json(self, open_provider: AnyLLM) -> None:
        """The analysis after a call and the judge of simulations read the whole text as JSON.

        If this fails, pass `response_schema` to the vendor, and yield nothing but the JSON.
        """
        transcript = Message("user", "user: What are your opening hours?\nagent: From seven to six.")
        request = ChatRequest((Message("system", "Summarize the call."), transcript), response_schema=SUMMARY)
        events = await collect_events(open_provider, request)
        answer = json.loads("".join(event.text for event in events if isinstance(event, TextDelta)))
        assert isinstance(answer["summary"], str)

    async def test_an_unknown_model_is_an_error_before_any_text(
        self, open_provider: AnyLLM, chat_request: ChatRequest, unknown_model: str | None
    ) -> None:
        """The next provider is asked after an early error.

        If this fails, raise `ProviderError` with the vendor's message before the first event.
        """
        if unknown_model is None:
            pytest.skip("the provider has no models to choose from")
        with pytest.raises(ProviderError):
            await anext(aiter(open_provider.chat(replace(chat_request, model=unknown_model))))

    async def test_the_time_limit_of_a_request_is_kept(self, create_at: Callable[[str], AnyLLM]) -> None:
        """A vendor that does not answer keeps a caller waiting.

        If this fails, raise `ProviderError` if the response has not begun within `timeout_seconds`.
        """
        request = ChatRequest((Message("user", "Hello"),), timeout_seconds=SHORT_SECONDS)
        async with serve_silence() as address:
            provider = create_at(address)
            await provider.open()
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    with pytest.raises(ProviderError):
                        await collect_events(provider, request)
            finally:
                await provider.close()

    async def test_an_answer_that_ends_in_its_midst_is_a_provider_error(
        self, create_at: Callable[[str], AnyLLM], vendor_address: str
    ) -> None:
        """Half of an answer must not count as the whole one.

        If this fails, raise `ProviderError` for a stream that ends without the vendor's sign that it is complete.
        """
        await self._expect_error_of_changed_answer(create_at, vendor_address, lambda body: body[: len(body) // 2])

    async def test_an_empty_answer_is_a_provider_error(
        self, create_at: Callable[[str], AnyLLM], vendor_address: str
    ) -> None:
        """The next provider is asked only after an error. If this fails, raise `ProviderError` for a stream without
        anything.
        """
        await self._expect_error_of_changed_answer(create_at, vendor_address, lambda _body: b"")

    async def _expect_error_of_changed_answer(
        self, create_at: Callable[[str], AnyLLM], vendor_address: str, change: Callable[[bytes], bytes]
    ) -> None:
        async with serve_changed(vendor_address, change) as address:
            await self._expect_provider_error(create_at, address)

    async def test_expected_phrases_are_texts(self, open_provider: AnyLLM) -> None:
        """They become speech-to-text hints. If this fails, return plain phrases, or nothing."""
        assert all(
            isinstance(phrase, str) and phrase.strip()
            for phrase in open_provider.list_expected_phrases("You are a helpful agent.")
        )
