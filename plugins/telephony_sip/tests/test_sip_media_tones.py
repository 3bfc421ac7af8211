"""Keys in the audio of a line: all of them, and none in speech."""

from collections.abc import Iterator

import numpy as np
import pytest
from switchboard.plugin_sdk.audio import decode_audio, encode_audio
from switchboard_telephony_sip.media.tones import COLUMNS, KEYS, ROWS, ToneDetector, make_tones

from tests.fixtures.servers import REPOSITORY


def detect(audio: bytes) -> str:
    detector = ToneDetector()
    frames = [audio[start : start + 160] for start in range(0, len(audio) - 159, 160)]
    return "".join(key for frame in frames if (key := detector.take(frame)))


def press(key: str, generator: np.random.Generator, noise_db: float) -> bytes:
    """Return a key of 50 to 100 ms in noise, off its frequencies, begun anywhere, as ITU-T Q.24 has it."""
    row = next(row for row, keys in enumerate(KEYS) if key in keys)
    times = np.arange(generator.integers(400, 800)) / 8000
    low, high = (
        frequency * (1 + generator.uniform(-0.015, 0.015)) for frequency in (ROWS[row], COLUMNS[KEYS[row].index(key)])
    )
    twist = 10 ** (generator.uniform(-4, 6) / 20)
    line = generator.normal(0, 3000 * 10 ** (-noise_db / 20), 3200)
    start = generator.integers(800, 960)
    line[start : start + len(times)] += 3000 * (
        np.sin(2 * np.pi * low * times) + twist * np.sin(2 * np.pi * high * times)
    )
    return encode_audio(np.clip(line, -32768, 32767).astype(np.int16), "mulaw")


@pytest.mark.parametrize("key", "".join(KEYS))
def test_short_keys_are_found_in_noise(key: str) -> None:
    generator = np.random.default_rng(ord(key))
    assert all(detect(press(key, generator, noise_db)) == key for noise_db in (30, 20, 12) for _ in range(10))


def read_speech() -> Iterator[bytes]:
    paths = sorted((REPOSITORY / "bench" / "turn_recordings").glob("*.ulaw"))
    assert len(paths) > 50
    return (path.read_bytes() for path in paths)


def test_speech_has_no_keys() -> None:
    assert [detect(speech) for speech in read_speech() if detect(speech)] == []


def test_keys_in_a_row_count_each() -> None:
    assert detect(b"".join(make_tones("1122w2##"))) == "1122" + "2##"


def test_a_click_in_a_key_does_not_double_it() -> None:
    tone = decode_audio(b"".join(make_tones("5"))[:800], "mulaw").copy()
    tone[400:420] = 0
    assert detect(encode_audio(tone, "mulaw") + b"\xff" * 800) == "5"
