"""Calls of `bench/turns`: the call engine on a virtual clock, with the recorded callers on the wire.

The detector's time on the processor passes on the virtual clock, too. The transcript is the reference, revealed word by
word as the words are said, without errors, punctuation, or delay.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from switchboard.engine.conversation.agent_settings import AgentSettings, TurnDetection
from switchboard.engine.conversation.call import CallResult, TurnPredictor
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.health import ServiceRecord
from switchboard.engine.providers.turn_prediction import DeadlineTurnPredictor
from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    PossibleTurn,
    ProviderSettings,
    SpeechToTextStream,
    TextDelta,
    Transcript,
    TranscriptionRequest,
    TurnDetector,
    TurnPrediction,
)
from switchboard_turn_smart.model import SmartTurnModel

from bench._turn_recordings import RATE, Recording
from tests.fixtures.conversation import Model, Socket, Transcriber, create_call, list_candidates
from tests.fixtures.virtual_clock import Clock, VirtualClockLoop


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measurement of one call for each recording.

    `decisions` are the moments at which the turn was taken for over, in seconds of the call. The rest is of all calls:
    processor seconds, seconds of audio that were transcribed, and length in minutes.
    """

    decisions: list[list[float]]
    cpu_seconds: float
    transcribed_seconds: float
    minutes: float


class _WordStream(SpeechToTextStream):
    def __init__(self, words: Sequence[tuple[str, float]], opened_at: float) -> None:
        self._words = list(words)
        self._opened_at = opened_at
        self._transcripts: asyncio.Queue[Transcript | None] = asyncio.Queue()
        self._interim = ""

    def _take_words(self) -> tuple[str, int]:
        now = asyncio.get_running_loop().time() - self._opened_at
        said = [word for word, moment in self._words if moment <= now]
        return " ".join(said), len(said)

    async def send(self, audio: bytes) -> None:
        text, _ = self._take_words()
        if text != self._interim:
            self._interim = text
            self._transcripts.put_nowait(Transcript(text, is_final=False))

    async def finalize(self) -> None:
        text, number = self._take_words()
        self._interim, self._words = "", self._words[number:]
        self._transcripts.put_nowait(Transcript(text, is_final=True, finalized=True))

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while (transcript := await self._transcripts.get()) is not None:
            yield transcript

    async def close(self) -> None:
        self._transcripts.put_nowait(None)


class _ReferenceTranscriber(Transcriber):
    """Reveals the words of a recording as they are said."""

    def __init__(self, recording: Recording, opened_at: float) -> None:
        super().__init__()
        self._recording, self._opened_at = recording, opened_at

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        return _WordStream(self._recording.words, self._opened_at)


class _SilentModel(Model):
    """Thinks until the call is over: what ends a turn does not depend on the answer."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        await asyncio.get_running_loop().create_future()
        yield TextDelta("")


class _SmartTurn(TurnDetector[ProviderSettings]):
    """Smart Turn in a thread, whose processor time passes on the virtual clock."""

    name = title = "smart_turn"

    def __init__(self) -> None:
        super().__init__(ProviderSettings())
        self._model = SmartTurnModel()

    async def check(self) -> None:
        """Succeed always."""

    async def predict(self, turn: PossibleTurn) -> TurnPrediction:
        probability, seconds = await asyncio.to_thread(self._predict, turn.audio)
        await asyncio.sleep(seconds)
        return TurnPrediction(probability)

    def _predict(self, audio: bytes) -> tuple[float, float]:
        started_at = time.thread_time()
        return self._model.predict(audio), time.thread_time() - started_at


def measure(
    recordings: Sequence[Recording],
    audio: Sequence[bytes],
    mode: Literal["silence", "text", "audio", "auto"],
) -> Measurement:
    """Run a call for each recording, all at once, with an agent's `turn_detection`."""
    detector = _SmartTurn()
    agent = AgentSettings(turn_detection=TurnDetection(mode=mode))
    with asyncio.Runner(loop_factory=lambda: VirtualClockLoop(clock=Clock(), is_alone=True)) as runner:
        started_at = time.process_time()
        results = runner.run(_run_calls(recordings, audio, agent, detector))
        return Measurement(
            [_list_decisions(result) for result in results],
            time.process_time() - started_at,
            sum(result.usage.speech_to_text_seconds for result in results),
            sum(map(len, audio)) / RATE / 60,
        )


async def _run_calls(
    recordings: Sequence[Recording], audio: Sequence[bytes], agent: AgentSettings, detector: _SmartTurn
) -> list[CallResult]:
    engine = CallEngine(asyncio.get_running_loop().time)
    await engine.start()
    predictor = DeadlineTurnPredictor(list_candidates(detector), ServiceRecord())
    results = await asyncio.gather(
        *(
            _run_call(engine, recording, caller, agent, predictor)
            for recording, caller in zip(recordings, audio, strict=True)
        )
    )
    await engine.close()
    return results


async def _run_call(
    engine: CallEngine,
    recording: Recording,
    audio: bytes,
    agent: AgentSettings,
    predictor: TurnPredictor,
) -> CallResult:
    socket = Socket()
    transcriber = _ReferenceTranscriber(recording, socket.opened_at)
    agent = replace(agent, stt_language=recording.language)
    call = replace(create_call(_SilentModel(), transcriber), agent=agent, turn_predictor=predictor)
    running = asyncio.create_task(engine.run_call(call, socket))
    await socket.say(audio)
    socket.hang_up()
    return await running


def _list_decisions(result: CallResult) -> list[float]:
    """Return when the caller's turns were over."""
    return [
        (entry.timestamp_ms + pause.after_ms + pause.waited_ms) / 1000
        for entry in result.transcript
        if entry.role == "user"
        for pause in entry.pauses
        if pause.ended_turn
    ]
