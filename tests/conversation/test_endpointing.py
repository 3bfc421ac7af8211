"""Ends of turns: pauses inside a sentence, judged by words and by turn detectors, on a virtual clock."""

import asyncio
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from switchboard.engine.conversation.agent_settings import TurnDetection
from switchboard.engine.conversation.call import CallResult, TurnJudgment, TurnPredictor
from switchboard.engine.conversation.endpointing.policy import COMPLETE, INCOMPLETE, judge_words, load_turn_ends
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.containment import contain
from switchboard.engine.providers.health import ServiceRecord
from switchboard.engine.providers.turn_prediction import DEADLINE_SECONDS, DeadlineTurnPredictor
from switchboard.plugin_sdk import PossibleTurn, ProviderSettings, TurnDetector, TurnPrediction
from switchboard.plugin_sdk.audio import decode_audio, encode_audio
from switchboard.plugin_sdk.registry import Plugin

from tests.fixtures.conversation import (
    Model,
    Socket,
    Transcriber,
    change_agent,
    create_call,
    list_candidates,
    list_transcript,
    synthesize_caller,
)

Floats = npt.NDArray[np.float64]
pytestmark = pytest.mark.usefixtures("task_check")


class ScriptedPredictor:
    """Returns these probabilities, one for each question, and then that the turn is complete."""

    def __init__(self, *predictions: TurnPrediction) -> None:
        self.predictions = list(predictions)
        self.asked: list[PossibleTurn] = []

    async def predict(self, turn: PossibleTurn) -> TurnJudgment:
        self.asked.append(turn)
        return TurnJudgment(self.predictions.pop(0) if self.predictions else TurnPrediction(0.9), "scripted")


class Detector(TurnDetector[ProviderSettings]):
    """Takes this time for each prediction, or fails."""

    name = title = "detector"

    def __init__(self, settings: ProviderSettings, *, seconds: float | None = None) -> None:
        super().__init__(settings)
        self._seconds = seconds

    async def check(self) -> None:
        """Succeed always."""

    async def predict(self, turn: PossibleTurn) -> TurnPrediction:
        if self._seconds is None:
            raise KeyError("probability")
        await asyncio.sleep(self._seconds)
        return TurnPrediction(0.1)


async def converse(
    engine: CallEngine,
    *texts: str,
    predictor: TurnPredictor | None = None,
    then: Sequence[str] = (),
    seconds: float = 4.0,
    **turn_detection: object,
) -> CallResult:
    """Let the caller say the texts, with a pause of half a second after each, press keys, and listen."""
    settings = TurnDetection.model_validate(turn_detection)
    call = create_call(Model("Certainly."), Transcriber(*texts), turn_detection=settings, end_call_silence_seconds=5)
    socket = Socket()
    running = asyncio.create_task(engine.run_call(change_agent(call, turn_predictor=predictor), socket))
    for text in texts:
        await socket.say(synthesize_caller(text))
    for digit in then:
        socket.press(digit)
    await asyncio.sleep(seconds)
    socket.hang_up()
    async with asyncio.timeout(40):
        return await running


def synthesize_voice_without_pauses(seconds: float) -> bytes:
    """Return speech in mu-law of which every frame is loud."""
    speech = synthesize_caller("Anyone who owns eleven yellow lemons may lend me one in May. " * 3)
    frames = [speech[at : at + 160] for at in range(0, len(speech), 160)]
    loud = [frame for frame in frames if np.abs(decode_audio(frame, "mulaw")).max() > 3000]
    return (b"".join(loud) * 2)[: round(seconds * 8000)]


def list_user_turns(result: CallResult) -> list[str]:
    """Return the caller's turns."""
    return [content for role, content in list_transcript(result) if role == "user"]


def get_endpoint_seconds(result: CallResult) -> float:
    """Return the time from the caller's last voice to the end of the first turn."""
    endpoint = result.latencies[0].endpoint_ms
    assert endpoint is not None
    return endpoint / 1000


async def test_words_that_go_on_after_a_pause_are_one_turn(engine: CallEngine) -> None:
    result = await converse(engine, "I would like a table for", "four people on Friday")
    assert list_transcript(result) == [
        ("user", "I would like a table for four people on Friday"),
        ("agent", "Certainly."),
    ]
    first = result.transcript[0]
    assert first.timestamp_ms < 1000
    assert get_endpoint_seconds(result) == pytest.approx(0.22, abs=0.03)


@pytest.mark.parametrize("seconds", [0.36, 0.4, 0.42])
async def test_a_turn_is_not_over_while_a_voice_starts(engine: CallEngine, seconds: float) -> None:
    voice = synthesize_voice_without_pauses(1.0)
    settings = TurnDetection(min_silence_seconds=0.4)
    call = create_call(
        Model("Certainly."), Transcriber("I would like a table", "for four people"), turn_detection=settings
    )
    socket = Socket()
    running = asyncio.create_task(engine.run_call(call, socket))
    await socket.say(voice + b"\xff" * round(seconds * 8000) + voice)
    await asyncio.sleep(2.0)
    socket.hang_up()
    assert list_user_turns(await running) == ["I would like a table for four people"]


async def measure_end(engine: CallEngine, after: Floats, noise: float = 0.0) -> float:
    """Return the seconds from a voice of two seconds to the end of its turn. `after` is what follows the voice, and
    `noise` the amplitude of the noise on the line, in 16-bit samples."""
    voice = decode_audio(synthesize_voice_without_pauses(2.0), "mulaw")
    samples = np.concatenate([np.zeros(8000), voice, after, np.zeros(20_000)])
    samples += np.random.default_rng(1).normal(0, noise, len(samples))
    call = create_call(Model("Certainly."), Transcriber("I would like a table"))
    socket = Socket()
    running = asyncio.create_task(engine.run_call(call, socket))
    await socket.say(encode_audio(samples.astype(np.int16), "mulaw"))
    socket.hang_up()
    turn = next(entry for entry in (await running).transcript if entry.role == "user")
    return (turn.timestamp_ms + turn.pauses[-1].after_ms + turn.pauses[-1].waited_ms) / 1000 - 3.0


async def test_a_turn_is_over_by_the_level_of_the_voice(engine: CallEngine) -> None:
    """A voice that has faded to 15 dB below itself is still a voice, to which voice activity detection is deaf."""
    voice = decode_audio(synthesize_voice_without_pauses(0.12), "mulaw")
    assert await measure_end(engine, np.zeros(0)) == pytest.approx(0.25, abs=0.02)
    assert await measure_end(engine, voice.astype(float) * 10 ** (-15 / 20)) == pytest.approx(0.12 + 0.25, abs=0.02)


async def test_a_sound_that_is_no_voice_delays_the_end_a_little(engine: CallEngine) -> None:
    clicks = np.zeros(16_000)
    clicks[::1000] = 8000.0
    assert 0.4 < await measure_end(engine, clicks) < 0.6


async def test_noise_that_hides_the_end_of_the_voice_asks_for_more_silence(engine: CallEngine) -> None:
    assert 0.32 < await measure_end(engine, np.zeros(0), noise=600.0) < 0.6


async def test_words_that_are_complete_need_no_confirmation(engine: CallEngine) -> None:
    result = await converse(engine, "No, that's all")
    assert get_endpoint_seconds(result) == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize(("probability", "seconds"), [(0.97, 0.22), (0.6, 0.45)])
async def test_an_end_in_doubt_is_confirmed_for_longer(engine: CallEngine, probability: float, seconds: float) -> None:
    predictor = ScriptedPredictor(TurnPrediction(probability))
    result = await converse(engine, "I would like a table", predictor=predictor)
    assert get_endpoint_seconds(result) == pytest.approx(seconds, abs=0.03)


async def test_a_confirmation_ends_with_the_longest_silence(engine: CallEngine) -> None:
    predictor = ScriptedPredictor(TurnPrediction(0.6))
    result = await converse(engine, "I would like a table", predictor=predictor, max_silence_seconds=0.3)
    assert 0.2 < get_endpoint_seconds(result) <= 0.3


async def test_each_pause_is_kept_with_its_judgment(engine: CallEngine) -> None:
    predictor = ScriptedPredictor(TurnPrediction(0.1), TurnPrediction(0.3))
    words = ("Good morning, I would like to", "book a table tomorrow evening", "for four people in all")
    result = await converse(engine, *words, predictor=predictor)
    turn, pauses = result.transcript[0], result.transcript[0].pauses
    judged = [(pause.ended_turn, pause.detector, pause.probability) for pause in pauses]
    assert judged == [(False, "words", 0.05), (False, "scripted", 0.1), (True, "scripted", 0.3)]
    assert [pause.waited_ms for pause in pauses] == [*[pytest.approx(600, abs=200)] * 2, pytest.approx(2000, abs=20)]
    assert [pause.after_ms for pause in pauses] == sorted({pause.after_ms for pause in pauses})
    assert turn.timestamp_ms + pauses[-1].after_ms + 2000 == pytest.approx(turn.ended_ms, abs=20)


async def test_noise_that_ends_a_turn_belongs_to_its_last_pause(engine: CallEngine) -> None:
    call = create_call(Model("Certainly."), Transcriber("I would like a table for", ""))
    socket = Socket()
    running = asyncio.create_task(engine.run_call(call, socket))
    await socket.say(synthesize_caller("I would like a table for"))
    await socket.say(synthesize_voice_without_pauses(6.0))
    socket.hang_up()
    (pause,) = (await running).transcript[0].pauses
    assert pause.ended_turn
    assert pause.waited_ms > 5000


async def test_silence_alone_ends_a_turn_in_mode_silence(engine: CallEngine) -> None:
    predictor = ScriptedPredictor(TurnPrediction(0.1))
    result = await converse(engine, "I would like a table for", predictor=predictor, mode="silence")
    assert list_transcript(result) == [("user", "I would like a table for"), ("agent", "Certainly.")]
    assert get_endpoint_seconds(result) == pytest.approx(0.2, abs=0.02)
    (pause,) = result.transcript[0].pauses
    assert (pause.waited_ms, pause.ended_turn, pause.detector, pause.probability) == (200, True, "silence", None)
    assert not predictor.asked


async def test_a_longer_silence_may_be_demanded(engine: CallEngine) -> None:
    result = await converse(engine, "Hello there", "my good friend", mode="silence", min_silence_seconds=1.0)
    assert list_user_turns(result) == ["Hello there my good friend"]
    assert get_endpoint_seconds(result) == pytest.approx(1.0, abs=0.05)


async def test_an_incomplete_turn_is_over_after_the_longest_silence(engine: CallEngine) -> None:
    result = await converse(engine, "I would like a table for", max_silence_seconds=1.5)
    assert list_transcript(result) == [("user", "I would like a table for"), ("agent", "Certainly.")]
    assert get_endpoint_seconds(result) == pytest.approx(1.5, abs=0.05)


async def test_a_turn_that_goes_on_is_no_silence_that_ends_the_call(engine: CallEngine) -> None:
    result = await converse(engine, "I would like a table for", max_silence_seconds=8.0, seconds=9.5)
    assert list_transcript(result) == [("user", "I would like a table for"), ("agent", "Certainly.")]
    assert result.ended_reason == "caller_hung_up"


async def test_the_detector_is_asked_where_the_words_leave_doubt(engine: CallEngine) -> None:
    predictor = ScriptedPredictor(TurnPrediction(0.1), TurnPrediction(0.8))
    words = ("Good morning, I would like to", "book a table tomorrow evening", "for four people in all")
    result = await converse(engine, *words, predictor=predictor)
    assert list_user_turns(result) == [" ".join(words)]
    asked, again = predictor.asked
    assert (asked.transcript, again.transcript) == (" ".join(words[:2]), " ".join(words))
    assert 0.15 <= asked.pause_seconds < 0.4
    assert 1.5 < len(asked.audio) / 16_000 < len(again.audio) / 16_000 <= 8
    assert asked.language == "en-US"


async def test_the_detector_alone_decides_in_mode_audio(engine: CallEngine) -> None:
    predictor = ScriptedPredictor(TurnPrediction(0.8))
    result = await converse(engine, "I would like a table for", predictor=predictor, mode="audio")
    assert get_endpoint_seconds(result) == pytest.approx(0.45, abs=0.03)
    assert len(predictor.asked) == 1


async def test_a_detector_may_be_asked_again_later(engine: CallEngine) -> None:
    predictor = ScriptedPredictor(TurnPrediction(0.3, ask_again_seconds=0.5), TurnPrediction(0.6))
    result = await converse(engine, "I would like a table", predictor=predictor)
    assert len(predictor.asked) == 2
    assert 0.6 < get_endpoint_seconds(result) < 0.9
    assert predictor.asked[1].pause_seconds > predictor.asked[0].pause_seconds + 0.4


@pytest.mark.parametrize("seconds", [None, 10.0])
async def test_a_detector_that_fails_or_is_late_delays_nothing(engine: CallEngine, seconds: float | None) -> None:
    plugin = Plugin("faulty", "switchboard-faulty", "1.2")
    detector = contain(Detector, plugin)(ProviderSettings(), seconds=seconds)
    record = ServiceRecord()
    predictor = DeadlineTurnPredictor(list_candidates(detector), record)
    result = await converse(engine, "I would like a table", predictor=predictor)
    assert list_transcript(result) == [("user", "I would like a table"), ("agent", "Certainly.")]
    assert get_endpoint_seconds(result) < 0.3 + DEADLINE_SECONDS
    (failure,) = record.failures.values()
    assert failure.capability == "turn_detector"


async def test_a_degraded_detector_is_not_asked(engine: CallEngine) -> None:
    record = ServiceRecord()
    candidates = list_candidates(Detector(ProviderSettings(), seconds=10.0))
    for _ in range(3):
        candidates[0].health.record_failure()
    result = await converse(engine, "I would like a table", predictor=DeadlineTurnPredictor(candidates, record))
    assert get_endpoint_seconds(result) == pytest.approx(0.22, abs=0.03)
    assert not record.failures


async def test_noise_without_words_neither_ends_nor_loses_a_turn(engine: CallEngine) -> None:
    call = create_call(Model("Certainly."), Transcriber("I would like a table for", "", "four people"))
    socket = Socket()
    running = asyncio.create_task(engine.run_call(call, socket))
    for _ in range(3):
        await socket.say(synthesize_caller("This is a noise"))
    await asyncio.sleep(3.0)
    socket.hang_up()
    assert list_user_turns(await running) == ["I would like a table for four people"]


async def test_an_unfinished_turn_is_kept_when_the_caller_hangs_up(engine: CallEngine) -> None:
    result = await converse(engine, "I would like a table for", seconds=0.1)
    assert list_transcript(result) == [("user", "I would like a table for")]


async def test_keys_end_an_unfinished_turn(engine: CallEngine) -> None:
    result = await converse(engine, "My number is", then="42#")
    assert list_transcript(result) == [("user", "My number is"), ("user", "DTMF: 42"), ("agent", "Certainly.")]


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en-US", "I want to go to the"),
        ("en-GB", "Yes, and"),
        ("en-US", "Um,"),
        ("en-US", "Let me see..."),
        ("en-US", "My phone number is 415 555"),
        ("en-US", "four one five"),
        ("en-US", "my name is spelled S M"),
        ("en-US", "My name is Bruce, Bravo Romeo Uniform"),
        ("en-US", "This is Victor Kilo five"),
        ("en-GB", "The postcode is S W 1"),
        ("en-US", "That is B as in"),
        ("de-DE", "Ich hätte gern einen Termin für den"),
        ("de", "Moment mal"),
        ("de-DE", "Müller, Martha Ulrich Emil"),
        ("es-MX", "Quisiera reservar una mesa para"),
        ("fr-FR", "Je voudrais réserver une table pour"),
        ("it-IT", "Vorrei prenotare un tavolo per"),
        ("pt-BR", "Eu quero marcar uma consulta com o"),
        ("nl-NL", "Ik wil graag een tafel voor"),
        ("mul", "4 15 55"),
    ],
)
def test_words_that_nobody_ends_with_are_incomplete(language: str, words: str) -> None:
    assert judge_words(words, language) is INCOMPLETE


@pytest.mark.parametrize(
    ("language", "words", "question"),
    [
        ("en-US", "Can you help me?", ""),
        ("en-US", "No, that's all", ""),
        ("en-US", "415 555 2671", "What is your phone number?"),
        ("de-DE", "Vielen Dank", ""),
        ("es-ES", "Eso es todo, gracias.", ""),
        ("fr-FR", "Non merci", ""),
        ("it-IT", "Arrivederci", ""),
        ("pt-PT", "Obrigada", ""),
        ("nl-NL", "Dat is alles", ""),
    ],
)
def test_words_that_end_a_turn_are_complete(language: str, words: str, question: str) -> None:
    assert judge_words(words, language, question) is COMPLETE


@pytest.mark.parametrize(
    ("language", "words", "question"),
    [
        ("en-US", "", ""),
        ("en-US", "I would like a table", ""),
        ("en-US", "A table for four", "For how many people?"),
        ("en-US", "Who is this for", ""),
        ("en-US", "At three p m", ""),
        ("en-US", "I met Charlie", ""),
        ("en-US", "I am looking for a golf hotel", ""),
        ("en-US", "Yes, it is", ""),
        ("en-US", "four one five five", "What are the last four digits of your card number?"),
        ("de-DE", "Ich rufe Sie morgen an", ""),
        ("de-DE", "Ich nehme das", ""),
        ("es-ES", "Sí", ""),
        ("es-ES", "dos y tres y cuatro", ""),
        ("it-IT", "Sì, lo è", ""),
        ("sw", "na", ""),
    ],
)
def test_other_words_leave_doubt(language: str, words: str, question: str) -> None:
    assert judge_words(words, language, question) is None


def test_the_words_of_every_language_are_found() -> None:
    for language, rules in load_turn_ends().items():
        for word in (*rules.unfinished, *rules.fillers, *rules.waiting):
            if word not in rules.stranded and not word.endswith("'"):
                assert judge_words(word, language) is INCOMPLETE, (language, word)
        for phrase in rules.finished:
            assert judge_words(phrase, language) is COMPLETE, (language, phrase)
        assert rules.stranded <= rules.unfinished
