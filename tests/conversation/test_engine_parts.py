"""Parts of the engine by their rules: voice activity, G.711, sentences, what was heard of one."""

import asyncio
import threading
import wave
from pathlib import Path

import numpy as np
import pytest
from switchboard.engine.conversation.media.conversion import Converter
from switchboard.engine.conversation.media.recording import HOLD_BACK_SAMPLES, Recording
from switchboard.engine.conversation.response_generator import fill_placeholders, split_sentences
from switchboard.engine.conversation.speech.speech_output import Sentence
from switchboard.engine.conversation.speech.text_normalization import normalize_text
from switchboard.engine.conversation.speech.vad import WINDOW, SpeechChange, VoiceActivity, VoiceDetector
from switchboard.plugin_sdk import PHONE_MULAW, AudioFormat, Encoding, Word
from switchboard.plugin_sdk.audio import decode_audio, encode_audio
from switchboard_offline.espeak import speak_text

LOUD = 0.01


def detect_changes(pattern: str, *, start_seconds: float = 0.2) -> list[SpeechChange]:
    """`v` is a voiced window, `.` one that is not."""
    activity = VoiceActivity(confidence=0.7, start_seconds=start_seconds, min_volume=0.0)
    changes = []
    for letter in pattern:
        activity.add_energy(LOUD)
        changes.append(activity.update(0.9 if letter == "v" else 0.1))
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
def test_voice_activity_counts_as_pipecat_does(pattern: str, started: list[int], stopped: list[int]) -> None:
    changes = detect_changes(pattern)
    assert [index for index, change in enumerate(changes) if change is SpeechChange.STARTED] == started
    assert [index for index, change in enumerate(changes) if change is SpeechChange.STOPPED] == stopped


def test_loudness_is_zero_until_400_ms_and_then_smoothed() -> None:
    activity = VoiceActivity(confidence=0.7, start_seconds=0.2, min_volume=0.6)
    volumes = []
    for _ in range(40):
        activity.add_energy(LOUD)
        volumes.append(activity.volume)
    assert volumes[11] == 0.0
    assert volumes[12] == pytest.approx(0.2 * (110 - 0.691 - 20) / 100, abs=1e-3)
    assert volumes[-1] == pytest.approx(0.893, abs=0.01)


def test_speech_is_found_in_speech_and_not_in_silence_for_each_call_of_a_batch() -> None:
    detector = VoiceDetector()
    speech = np.frombuffer(speak_text("Good morning, how can I help you today my friend?"), dtype="<i2")
    calls = [VoiceActivity(confidence=0.7, start_seconds=0.2, min_volume=0.6) for _ in range(2)]
    spoke = [False, False]
    for at in range(0, len(speech) - WINDOW, WINDOW):
        detector.detect(calls, np.stack([speech[at : at + WINDOW], np.zeros(WINDOW, dtype=np.int16)]))
        spoke = [before or call.speaking for before, call in zip(spoke, calls, strict=True)]
    assert spoke == [True, False]


@pytest.mark.parametrize("encoding", ["mulaw", "alaw"])
def test_g711_goes_there_and_back(encoding: Encoding) -> None:
    samples = np.array([0, 8, -8, 1000, -1000, 32_000, -32_000], dtype=np.int16)
    back = decode_audio(encode_audio(samples, encoding), encoding).astype(int)
    assert (np.abs(back - samples) <= np.maximum(np.abs(samples.astype(int)) * 0.04, 16)).all()


def test_converting_keeps_the_length_whatever_the_pieces() -> None:
    source = AudioFormat("pcm16", 24_000)
    converter, audio = Converter(source, PHONE_MULAW), np.zeros(24_000, dtype="<i2").tobytes()
    pieces = [converter.convert(audio[at : at + 777]) for at in range(0, len(audio), 777)]
    assert abs(len(b"".join([*pieces, converter.convert(b"", last=True)])) - 8000) <= 8


def test_sentences_are_taken_as_soon_as_they_are_whole() -> None:
    assert split_sentences("Hello there. It is 3.5 dollars! And") == (["Hello there.", "It is 3.5 dollars!"], "And")


def test_what_was_heard_of_a_sentence_ends_at_a_word() -> None:
    text = "one **two** three four"
    sentence = Sentence(text, normalize_text(text, "en"), start=0, end=8000)
    assert [sentence.heard_text(until) for until in (0, 4000, 8000)] == ["", "one **two**", text]
    sentence.words = [Word("one", 0, 100), Word("two", 100, 200), Word("three", 200, 900), Word("four", 900, 1000)]
    assert sentence.heard_text(4000) == "one **two**"


def test_variables_are_filled_in_and_unknown_ones_vanish() -> None:
    assert fill_placeholders("Hello {{ name }}{{nobody}}!", {"name": "Ada"}) == "Hello Ada!"


async def test_audio_that_was_delayed_is_recorded_where_it_was_said(tmp_path: Path) -> None:
    """Of eight seconds of caller audio, the fourth and fifth arrive at once, after two seconds without audio."""
    recording = Recording(tmp_path / "call.wav", "mulaw")
    said = encode_audio((np.arange(64_000) // 400 * 50).astype(np.int16), "mulaw")
    for position in range(160, 64_160, 160):
        if not 24_000 < position <= 39_840:
            late = range(24_160, 40_160, 160) if position == 40_000 else (position,)
            for end in late:
                recording.add_caller_audio(said[end - 160 : end], position)
        if position % 8000 == 0:
            await recording.write(position)
    await recording.close(64_000)
    with wave.open(str(tmp_path / "call.wav")) as recorded:
        heard = np.frombuffer(recorded.readframes(64_000), dtype="<i2")[::2]
    assert np.array_equal(heard, decode_audio(said, "mulaw"))


async def test_a_recording_is_whole_though_its_last_write_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, go_on = Recording(tmp_path / "call.wav", "mulaw"), threading.Event()
    append = recording._append

    def wait_and_append(data: bytes) -> None:
        go_on.wait(5)
        append(data)

    monkeypatch.setattr(recording, "_append", wait_and_append)
    recording.add_caller_audio(bytes(8000), 0)
    writing = asyncio.create_task(recording.write(8000 + HOLD_BACK_SAMPLES))
    for _ in range(3):
        await asyncio.sleep(0)
    writing.cancel()
    closing = asyncio.create_task(recording.close(8000))
    await asyncio.wait({writing})
    go_on.set()
    await closing
    with wave.open(str(tmp_path / "call.wav")) as file:
        assert file.getnframes() == 8000


async def test_a_recording_that_is_closed_is_not_begun_anew(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "call.wav", "mulaw")
    recording.add_caller_audio(bytes(8000), 0)
    await recording.close(8000)
    await recording.write(16_000)
    with wave.open(str(tmp_path / "call.wav")) as file:
        assert file.getnframes() == 8000
