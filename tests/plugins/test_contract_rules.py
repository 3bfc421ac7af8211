"""Rules of the contracts notice the faults for which they were written."""

import asyncio
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
from switchboard.plugin_sdk.testing import LLMContract, llm

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


def create(kind: type[Model]) -> Model:
    return kind(ProviderSettings())


@pytest.fixture
def contract() -> LLMContract[Model]:
    return LLMContract()


async def test_a_model_that_keeps_the_rules_passes(contract: LLMContract[Model]) -> None:
    await contract.test_calls_do_not_wait_for_one_another(create(Model), REQUEST)
    await contract.test_a_canceled_response_is_harmless(create(Model), REQUEST)
    await contract.test_the_turn_after_a_tool_result_is_answered(create(Model), REQUEST)


async def test_a_lock_around_responses_is_noticed(
    contract: LLMContract[Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm, "ANSWER_SECONDS", 0.05)
    with pytest.raises(TimeoutError):
        await contract.test_calls_do_not_wait_for_one_another(create(Locked), REQUEST)


async def test_a_swallowed_cancellation_is_noticed(contract: LLMContract[Model]) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        await contract.test_a_canceled_response_is_harmless(create(Stubborn), REQUEST)


async def test_a_refused_tool_result_is_noticed(contract: LLMContract[Model]) -> None:
    with pytest.raises(KeyError, match="tool"):
        await contract.test_the_turn_after_a_tool_result_is_answered(create(Forgetful), REQUEST)
