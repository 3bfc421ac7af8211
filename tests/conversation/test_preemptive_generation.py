"""Answers that the model is asked for at a pause, before the turn is certainly over, on a virtual clock."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from switchboard.engine.conversation.agent_settings import TurnDetection
from switchboard.engine.conversation.call import CallResult, LiveCall, TurnJudgment
from switchboard.engine.conversation.engine import CallEngine
from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    ModelUsage,
    PossibleTurn,
    ProviderError,
    TextDelta,
    ToolCall,
    TurnPrediction,
)

from tests.fixtures.conversation import (
    Model,
    Socket,
    Transcriber,
    change_agent,
    create_call,
    list_transcript,
    synthesize_caller,
)

pytestmark = pytest.mark.usefixtures("task_check")
TURN, REST = "I would like a table", "for four people on Friday"


class SlowModel(Model):
    """Takes its time for each answer, and reports usage."""

    def __init__(self, *answers: str | ToolCall | ProviderError, seconds: float = 0.8) -> None:
        super().__init__(*answers)
        self.seconds = seconds
        self.canceled = 0

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.canceled += 1
            raise
        async for event in super().chat(request):
            yield event
        yield ModelUsage("slow", 100, 10)


class IncompletePredictor:
    """Takes every turn for incomplete."""

    async def predict(self, turn: PossibleTurn) -> TurnJudgment:
        return TurnJudgment(TurnPrediction(0.2), "doubtful")


def create_patient_call(model: Model, *texts: str) -> LiveCall:
    """A call whose turns are over after 1.5 seconds."""
    settings = TurnDetection(mode="auto", max_silence_seconds=1.5)
    call = create_call(model, Transcriber(*texts), turn_detection=settings)
    return change_agent(call, turn_predictor=IncompletePredictor())


async def converse(engine: CallEngine, call: LiveCall, *texts: str, seconds: float = 6.0) -> CallResult:
    """Let the caller say the texts, with a pause of half a second after each, and listen."""
    socket = Socket()
    running = asyncio.create_task(engine.run_call(call, socket))
    for text in texts:
        await socket.say(synthesize_caller(text))
    await asyncio.sleep(seconds)
    socket.hang_up()
    async with asyncio.timeout(40):
        return await running


async def test_the_answer_is_ready_when_the_turn_is_over(engine: CallEngine) -> None:
    model = SlowModel("Certainly.")
    result = await converse(engine, create_patient_call(model, TURN), TURN)
    assert list_transcript(result) == [("user", TURN), ("agent", "Certainly.")]
    (latency,) = result.latencies
    assert latency.endpoint_ms is not None
    assert latency.first_token_ms is not None
    assert latency.first_token_ms - latency.endpoint_ms < 50
    assert len(model.requests) == 1
    assert result.usage.models == [ModelUsage("slow", 100, 10)]
    assert not result.usage.dropped_models


async def test_the_answer_is_dropped_when_the_caller_goes_on(engine: CallEngine) -> None:
    model = SlowModel("Certainly.", seconds=3.0)
    result = await converse(engine, create_patient_call(model, TURN, REST), TURN, REST)
    assert list_transcript(result) == [("user", f"{TURN} {REST}"), ("agent", "Certainly.")]
    assert [request.messages[-1].content for request in model.requests] == [f"{TURN} {REST}"]
    assert model.canceled == 1
    (dropped,) = result.usage.dropped_models
    assert dropped.input_tokens > 0
    assert dropped.output_tokens == 0
    assert dropped.detail == {"estimated": True}
    assert result.usage.models == [ModelUsage("slow", 100, 10)]


async def test_the_reported_usage_of_a_dropped_answer_is_recorded(engine: CallEngine) -> None:
    call = create_patient_call(SlowModel("For how many?"), TURN)
    result = await converse(engine, call, TURN, seconds=0.8)
    assert list_transcript(result) == [("user", TURN)]
    assert result.usage.dropped_models == [ModelUsage("slow", 100, 10)]
    assert not result.usage.models


async def test_no_tool_runs_before_the_turn_is_over(engine: CallEngine) -> None:
    model = SlowModel(ToolCall("1", "end_call", {}), "Goodbye.")
    call = create_patient_call(model, TURN)
    result = await converse(engine, call, TURN, seconds=0.8)
    assert list_transcript(result) == [("user", TURN)]
    assert result.ended_reason == "caller_hung_up"
    model = SlowModel(ToolCall("1", "end_call", {}), "Goodbye.")
    result = await converse(engine, create_patient_call(model, TURN), TURN)
    assert [role for role, _ in list_transcript(result)] == ["user", "tool", "agent"]
    assert result.ended_reason == "agent_hung_up"


async def test_a_model_that_fails_at_a_pause_is_excused_at_the_end_of_the_turn(engine: CallEngine) -> None:
    class FailingModel(SlowModel):
        async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
            self.requests.append(request)
            yield TextDelta("I")
            raise ProviderError("down")

    result = await converse(engine, create_patient_call(FailingModel(), TURN), TURN)
    assert [role for role, _ in list_transcript(result)] == ["user", "agent"]
    assert "went wrong" in list_transcript(result)[1][1]


async def test_incomplete_words_ask_no_model(engine: CallEngine) -> None:
    model = SlowModel("Certainly.")
    call = create_call(model, Transcriber("I would like a table for"))
    result = await converse(engine, call, "I would like a table for", seconds=0.9)
    assert list_transcript(result) == [("user", "I would like a table for")]
    assert not model.requests
    assert not result.usage.dropped_models
