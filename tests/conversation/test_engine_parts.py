"""Parts of the engine by their rules: voice activity, G.711, sentences, and interrupted sentences."""

import numpy as np
import pytest
from switchboard.engine.conversation.media.conversion import Converter
from switchboard.engine.conversation.sentences import split_sentences
from switchboard.engine.conversation.speech.speech_output import Sentence
from switchboard.engine.conversation.speech.text_normalization import normalize_text
from switchboard.engine.conversation.speech.vad import WINDOW, SpeechChange, VoiceActivity, VoiceDetector
from switchboard.engine.conversation.variables import Variables
from switchboard.plugin_sdk import PHONE_MULAW, AudioFormat, Encoding, Word
from switchboard.plugin_sdk.audio import decode_audio, encode_audio

from tests.fixtures.caller_voice import speak_as_caller

LOUD = 0.01


def detect_changes(pattern: str, *, start_seconds: float = 0.2) -> list[SpeechChange]:
    """Detect changes in a pattern of windows: `v` is voiced, `.` is not."""
    activity = VoiceActivity(confidence=0.7, start_seconds=start_seconds, min_volume=0.0)
    changes = []
    for letter in pattern:
        activity.add_energy(LOUD)
        changes.append(activity.update(0.9 if letter == "v" else 0.1, [LOUD]))
    return changes


@pytest.mark.parametrize(
    ("pattern", "started", "stopped"),
    [
        ("v" * 6, [5], []),  # 0.2 s are six windows
        ("v" * 5 + "." + "v" * 5, [], []),  # they must be consecutive
        ("v" * 6 + "." * 6, [5], [11]),
        ("v" * 6 + "." * 5 + "v" + "." * 6, [5], [17]),  # a voiced window restarts the count
    ],
)
def test_voice_activity_is_counted_as_in_pipecat(pattern: str, started: list[int], stopped: list[int]) -> None:
    changes = detect_changes(pattern)
    assert [index for index, change in enumerate(changes) if change is SpeechChange.STARTED] == started
    assert [index for index, change in enumerate(changes) if change is SpeechChange.STOPPED] == stopped


@pytest.mark.parametrize(
    ("pattern", "belonging"),
    [
        ("." * 20 + "v" * 6, 20),
        ("." * 20 + "v" * 5 + "." * 6 + "v" * 6, 31),  # a short first word
        ("." * 20 + "v" * 5 + "." * 15 + "v" * 6, 20),  # a noise that was over
        ("." * 20 + "v....." * 40 + "v" * 6, 76),  # noises without end: two seconds of them
        ("v" * 6 + "." * 6 + "v" * 6, 20),  # what counted as speech before
    ],
)
def test_speech_begins_before_its_first_voice(pattern: str, belonging: int) -> None:
    activity = VoiceActivity(confidence=0.7, start_seconds=0.2, min_volume=0.0)
    for letter in pattern:
        activity.add_energy(LOUD)
        change = activity.update(0.9 if letter == "v" else 0.1, [LOUD])
    assert (change, activity.pre_roll_windows) == (SpeechChange.STARTED, belonging)


def test_loudness_is_zero_for_400_ms_and_then_smoothed() -> None:
    activity = VoiceActivity(confidence=0.7, start_seconds=0.2, min_volume=0.6)
    volumes = []
    for _ in range(40):
        activity.add_energy(LOUD)
        volumes.append(activity.volume)
    assert volumes[11] == 0.0
    assert volumes[12] == pytest.approx(0.2 * (110 - 0.691 - 20) / 100, abs=1e-3)
    assert volumes[-1] == pytest.approx(0.893, abs=0.01)


def test_speech_is_detected_for_each_call_of_a_batch() -> None:
    detector = VoiceDetector()
    speech = np.frombuffer(speak_as_caller("Good morning, how can I help you today my friend?"), dtype="<i2")
    calls = [VoiceActivity(confidence=0.7, start_seconds=0.2, min_volume=0.6) for _ in range(2)]
    was_speaking = [False, False]
    for at in range(0, len(speech) - WINDOW, WINDOW):
        detector.detect(calls, np.stack([speech[at : at + WINDOW], np.zeros(WINDOW, dtype=np.int16)]))
        was_speaking = [before or call.speaking for before, call in zip(was_speaking, calls, strict=True)]
    assert was_speaking == [True, False]


@pytest.mark.parametrize("encoding", ["mulaw", "alaw"])
def test_g711_round_trips(encoding: Encoding) -> None:
    samples = np.array([0, 8, -8, 1000, -1000, 32_000, -32_000], dtype=np.int16)
    back = decode_audio(encode_audio(samples, encoding), encoding).astype(int)
    assert (np.abs(back - samples) <= np.maximum(np.abs(samples.astype(int)) * 0.04, 16)).all()


def test_resampling_in_pieces_keeps_the_length() -> None:
    source = AudioFormat("pcm16", 24_000)
    converter, audio = Converter(source, PHONE_MULAW), np.zeros(24_000, dtype="<i2").tobytes()
    pieces = [converter.convert(audio[at : at + 777]) for at in range(0, len(audio), 777)]
    assert abs(len(b"".join([*pieces, converter.convert(b"", last=True)])) - 8000) <= 8


def test_sentences_are_emitted_as_soon_as_they_are_complete() -> None:
    assert split_sentences("Hello there. It is 3.5 dollars! And") == (["Hello there.", "It is 3.5 dollars!"], "And")


def test_an_interrupted_sentence_ends_at_a_word() -> None:
    text = "one **two** three four"
    sentence = Sentence(text, normalize_text(text, "en"), start=0, end=8000, is_whole=True)
    assert [sentence.heard_text(until) for until in (0, 4000, 8000)] == ["", "one **two**", text]
    sentence.words = [Word("one", 0, 100), Word("two", 100, 200), Word("three", 200, 900), Word("four", 900, 1000)]
    assert sentence.heard_text(4000) == "one **two**"


def test_a_sentence_that_is_still_synthesized_was_not_heard_to_its_end() -> None:
    text = "one two three four five six seven eight nine ten"
    sentence = Sentence(text, normalize_text(text, "en"), start=0, end=8000)
    assert sentence.heard_text(8000) == "one two three"
    sentence.words = [Word("one", 0, 300), Word("two", 300, 900)]
    assert sentence.heard_text(8000) == "one two"


def test_variables_are_filled_in_and_unknown_ones_removed() -> None:
    assert (
        Variables.from_texts({"name": "Ada"}, "carrier").fill("Hello {{ name }}{{nobody}}{{name:keypad}}{{name:tool}}!")
        == "Hello AdaAda!"
    )
