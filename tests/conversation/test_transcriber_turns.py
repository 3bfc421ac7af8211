"""Ends of turns that the transcriber judges itself, on a virtual clock."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeAlias

import pytest
from switchboard.engine.conversation.agent_settings import TurnDetection
from switchboard.engine.conversation.call import CallResult, TurnJudgment
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.containment import OutOfBounds, bound_transcripts, contain
from switchboard.engine.providers.failover import FailoverSpeechToText
from switchboard.engine.providers.health import ServiceRecord
from switchboard.plugin_sdk import (
    PossibleTurn,
    ProviderSettings,
    SpeechToTextProvider,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
    TurnPrediction,
    TurnReport,
    TurnState,
)
from switchboard.plugin_sdk.registry import Plugin

from tests.fixtures.conversation import (
    SETTINGS,
    Model,
    Socket,
    change_agent,
    create_call,
    list_candidates,
    list_transcript,
    synthesize_caller,
)

pytestmark = pytest.mark.usefixtures("task_check")
TURN, REST = "I would like a table", "with a view of the lake"
Report: TypeAlias = tuple[float, TurnState, float]
"""Seconds after the words of a pause, state of the turn, and probability that it is complete."""


class _Stream(SpeechToTextStream):
    def __init__(self, owner: "JudgingTranscriber") -> None:
        self._owner = owner
        self._transcripts: asyncio.Queue[Transcript | None] = asyncio.Queue()

    async def send(self, audio: bytes) -> None:
        """Ignore the audio."""

    async def finalize(self) -> None:
        text, reports = self._owner.script.pop(0)
        first = TurnReport(*reports[0][1:]) if reports else None
        self._transcripts.put_nowait(Transcript(text, is_final=True, finalized=True, turn=first))
        for seconds, state, probability in reports[1:]:
            later = Transcript("", is_final=state == "end", turn=TurnReport(state, probability))
            asyncio.get_running_loop().call_later(seconds, self._transcripts.put_nowait, later)

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while (transcript := await self._transcripts.get()) is not None:
            yield transcript

    async def close(self) -> None:
        self._transcripts.put_nowait(None)


class JudgingTranscriber(SpeechToTextProvider[ProviderSettings]):
    """Returns these texts, each with the reports of the turn; the first report comes with the words."""

    name = title = "judge"

    def __init__(self, settings: ProviderSettings, *script: tuple[str, Sequence[Report]]) -> None:
        super().__init__(settings)
        self.script = list(script)
        self.requests: list[TranscriptionRequest] = []

    async def check(self) -> None:
        """Succeed always."""

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        self.requests.append(request)
        return _Stream(self)


class UnwantedPredictor:
    """Fails the test if it is asked."""

    async def predict(self, turn: PossibleTurn) -> TurnJudgment | None:
        raise AssertionError("the transcriber judges turns")


class SlowModel(Model):
    """Takes half a second for each answer, and notes when it was asked."""

    def __init__(self) -> None:
        super().__init__("Certainly.")
        self.asked_at: list[float] = []

    async def chat(self, request):  # type: ignore[no-untyped-def] # as the base class
        self.asked_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.5)
        async for event in super().chat(request):
            yield event


async def converse(
    engine: CallEngine,
    *script: tuple[str, Sequence[Report]],
    model: Model | None = None,
    transcriber: JudgingTranscriber | None = None,
    seconds: float = 4.0,
    **turn_detection: object,
) -> CallResult:
    """Let the caller say the texts, with a pause of half a second after each, and listen."""
    transcriber = transcriber or contain(JudgingTranscriber, Plugin("judge", "switchboard-judge", "1.0"))(
        SETTINGS, *script
    )
    settings = TurnDetection.model_validate(turn_detection)
    call = create_call(model or Model("Certainly."), transcriber, turn_detection=settings)  # type: ignore[arg-type]
    speech_to_text = FailoverSpeechToText(list_candidates(transcriber), ServiceRecord(), hedge_after_seconds=1.0)
    socket = Socket()
    call = change_agent(call, speech_to_text=speech_to_text, turn_predictor=UnwantedPredictor())
    running = asyncio.create_task(engine.run_call(call, socket))
    for text, _ in script:
        await socket.say(synthesize_caller(text))
    await asyncio.sleep(seconds)
    socket.hang_up()
    async with asyncio.timeout(40):
        return await running


def get_endpoint_seconds(result: CallResult) -> float:
    """Return the time from the caller's last voice to the end of the first turn."""
    endpoint = result.latencies[0].endpoint_ms
    assert endpoint is not None
    return endpoint / 1000


@pytest.mark.parametrize("mode", ["audio", "auto"])
async def test_the_transcribers_end_of_the_turn_is_the_detectors(engine: CallEngine, mode: str) -> None:
    result = await converse(engine, (TURN, [(0.0, "ongoing", 0.2), (0.6, "end", 0.45)]), mode=mode)
    assert list_transcript(result) == [("user", TURN), ("agent", "Certainly.")]
    assert get_endpoint_seconds(result) == pytest.approx(0.8, abs=0.1)
    (pause,) = result.transcript[0].pauses
    assert (pause.ended_turn, pause.detector, pause.probability) == (True, "judge", 0.45)


async def test_an_end_that_comes_with_the_words_answers_at_once(engine: CallEngine) -> None:
    result = await converse(engine, (TURN, [(0.0, "end", 0.9)]))
    assert get_endpoint_seconds(result) < 0.3


async def test_a_turn_goes_on_while_the_transcriber_says_so(engine: CallEngine) -> None:
    result = await converse(engine, (TURN, [(0.0, "ongoing", 0.6)]), (REST, [(0.0, "end", 0.9)]))
    assert list_transcript(result) == [("user", f"{TURN} {REST}"), ("agent", "Certainly.")]
    judged = [(pause.ended_turn, pause.detector, pause.probability) for pause in result.transcript[0].pauses]
    assert judged == [(False, "judge", 0.6), (True, "judge", 0.9)]


async def test_the_longest_silence_bounds_the_wait_for_the_transcriber(engine: CallEngine) -> None:
    result = await converse(engine, (TURN, [(0.0, "ongoing", 0.2)]), max_silence_seconds=1.2)
    assert get_endpoint_seconds(result) == pytest.approx(1.2, abs=0.1)


async def test_words_come_first_in_mode_auto(engine: CallEngine) -> None:
    words = "I would like a table for"
    result = await converse(engine, (words, [(0.0, "end", 0.9)]), max_silence_seconds=1.2)
    assert get_endpoint_seconds(result) == pytest.approx(1.2, abs=0.05)
    assert result.transcript[0].pauses[0].detector == "words"


@pytest.mark.parametrize(("mode", "detector"), [("text", None), ("silence", "silence")])
async def test_other_modes_do_not_use_the_transcribers_judgment(
    engine: CallEngine, mode: str, detector: str | None
) -> None:
    result = await converse(engine, (TURN, [(0.0, "ongoing", 0.1)]), mode=mode)
    assert get_endpoint_seconds(result) < 0.4
    assert result.transcript[0].pauses[0].detector == detector


@pytest.mark.parametrize(("mode", "seconds"), [("silence", None), ("text", None), ("audio", 3.0), ("auto", 3.0)])
async def test_the_transcriber_knows_whether_it_is_to_judge(
    engine: CallEngine, mode: str, seconds: float | None
) -> None:
    transcriber = JudgingTranscriber(SETTINGS)
    await converse(engine, transcriber=transcriber, mode=mode, max_silence_seconds=3.0, seconds=0.1)
    assert [request.max_silence_seconds for request in transcriber.requests] == [seconds]


async def test_the_words_judge_where_the_transcriber_says_nothing(engine: CallEngine) -> None:
    result = await converse(engine, ("No, that is all, thank you.", []))
    assert get_endpoint_seconds(result) < 0.3
    assert result.transcript[0].pauses[0].detector == "words"


async def test_the_model_is_asked_at_an_eager_end_and_not_before(engine: CallEngine) -> None:
    model = SlowModel()
    reports: list[Report] = [(0.0, "ongoing", 0.2), (0.3, "eager_end", 0.6), (0.9, "end", 0.8)]
    result = await converse(engine, (TURN, reports), model=model)
    assert list_transcript(result) == [("user", TURN), ("agent", "Certainly.")]
    assert len(model.asked_at) == 1
    (latency,) = result.latencies
    assert latency.endpoint_ms is not None
    assert latency.first_token_ms is not None
    assert latency.endpoint_ms == pytest.approx(1100, abs=100)
    assert latency.first_token_ms - latency.endpoint_ms < 50
    assert not result.usage.dropped_models


async def test_a_resumed_turn_drops_the_answer(engine: CallEngine) -> None:
    model = SlowModel()
    reports: list[Report] = [(0.0, "eager_end", 0.6), (0.1, "ongoing", 0.1), (1.0, "end", 0.8)]
    result = await converse(engine, (TURN, reports), model=model)
    assert list_transcript(result) == [("user", TURN), ("agent", "Certainly.")]
    assert len(model.asked_at) == 2
    assert model.asked_at[1] - model.asked_at[0] == pytest.approx(1.0, abs=0.05)
    assert len(result.usage.dropped_models) == 1


@pytest.mark.parametrize(
    "report",
    [
        TurnReport("over", 0.5),  # type: ignore[arg-type] # which a plugin may return all the same
        TurnReport("end", 1.5),
        TurnReport("end", float("nan")),
        TurnPrediction(0.5),
    ],
)
async def test_a_report_is_bounded(report: TurnReport) -> None:
    async def yield_transcript() -> AsyncIterator[object]:
        yield Transcript("Yes.", is_final=True, turn=report)

    with pytest.raises(OutOfBounds):
        await anext(bound_transcripts(yield_transcript()))
