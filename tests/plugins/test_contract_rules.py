"""Rules of the contracts notice the faults for which they were written."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    LLMProvider,
    Message,
    ModelUsage,
    ProviderSettings,
    TextDelta,
    ToolCall,
)
from switchboard.plugin_sdk.testing import LLMContract

REQUEST = ChatRequest((Message("user", "Hello"),))


class Model(LLMProvider[ProviderSettings]):
    """A model that answers at once, and keeps the rules."""

    name, title = "model", "Model"

    async def check(self) -> None: ...

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        yield ToolCall("1", "weather", {"city": "Paris"})
        yield TextDelta("Hello.")
        await asyncio.sleep(0)
        yield ModelUsage("model", 1, 1)


class Locked(Model):
    """One response at a time."""

    def __init__(self, settings: ProviderSettings) -> None:
        super().__init__(settings)
        self._lock = asyncio.Lock()

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        async with self._lock:
            async for event in super().chat(request):
                yield event


class Stubborn(Model):
    """A model that goes on when it is canceled."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        yield TextDelta("Hello.")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield ModelUsage("model", 1, 1)


class Forgetful(Model):
    """A model that cannot be sent the result of a tool."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        roles = {"system": "system", "user": "user", "assistant": "assistant"}
        assert [roles[message.role] for message in request.messages]
        async for event in super().chat(request):
            yield event


class Careless(Model):
    """A model that lets the errors of its parser and of its vendor through, and waits for ever."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(b"POST / HTTP/1.1\r\n\r\n")
            yield TextDelta(json.loads(await reader.read())["text"])
        finally:
            writer.close()
            await writer.wait_closed()

    port = 0


def create_careless(address: str) -> Careless:
    model = Careless(ProviderSettings())
    model.port = int(address.rpartition(":")[2])
    return model


def create(kind: type[Model]) -> Model:
    return kind(ProviderSettings())


@pytest.fixture
def contract() -> LLMContract[Model]:
    return LLMContract()


async def test_a_model_that_keeps_the_rules_passes(contract: LLMContract[Model]) -> None:
    await contract.test_calls_do_not_wait_for_one_another(create(Model), REQUEST)
    await contract.test_a_canceled_response_is_harmless(create(Model), REQUEST)
    await contract.test_the_turn_after_a_tool_result_is_answered(create(Model), REQUEST)


async def test_a_lock_around_responses_is_noticed(contract: LLMContract[Model]) -> None:
    with pytest.raises(TimeoutError):
        await contract.test_calls_do_not_wait_for_one_another(create(Locked), REQUEST)


async def test_a_swallowed_cancellation_is_noticed(contract: LLMContract[Model]) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        await contract.test_a_canceled_response_is_harmless(create(Stubborn), REQUEST)


async def test_a_refused_tool_result_is_noticed(contract: LLMContract[Model]) -> None:
    with pytest.raises(KeyError, match="tool"):
        await contract.test_the_turn_after_a_tool_result_is_answered(create(Forgetful), REQUEST)


async def test_stray_exceptions_are_noticed(contract: LLMContract[Model]) -> None:
    with pytest.raises(ConnectionRefusedError):
        await contract.test_a_vendor_that_is_not_there_is_a_provider_error(create_careless)
    with pytest.raises(json.JSONDecodeError):
        await contract.test_nonsense_of_the_vendor_is_a_provider_error(create_careless)


async def test_a_missing_time_limit_is_noticed(contract: LLMContract[Model]) -> None:
    with pytest.raises(TimeoutError):
        await contract.test_the_time_limit_of_a_request_is_kept(create_careless)


async def test_an_ignored_schema_or_model_is_noticed(contract: LLMContract[Model]) -> None:
    with pytest.raises(json.JSONDecodeError):
        await contract.test_an_answer_by_schema_is_json(create(Model))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        await contract.test_an_unknown_model_is_an_error_before_any_text(create(Model), REQUEST, "no-such-model")
