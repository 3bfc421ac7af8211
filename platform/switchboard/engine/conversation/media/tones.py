"""Sounds of the platform as 8 kHz G.711: keys, the beep of the answering machine, and music for callers who wait."""

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import SILENCE_CODE, encode_audio

RATE: Final = 8000
# DTMF digits as tones (ITU-T Q.23), for carriers that have no other way to send them.
TONE_SECONDS, PAUSE_SECONDS, WAIT_SECONDS, LEVEL = 0.12, 0.08, 0.5, 6000
ROWS, COLUMNS = (697, 770, 852, 941), (1209, 1336, 1477)
KEYS = ("123", "456", "789", "*0#")
BEEP_SECONDS, BEEP_HERTZ, BEEP_LEVEL = 0.4, 1000, 8000
NOTE_SECONDS, NOTE_LEVEL = 0.5, 3500
CHORDS = ((262, 330, 392, 523), (220, 262, 330, 440), (175, 220, 262, 349), (196, 247, 294, 392))


def render_tones(digits: str, encoding: Encoding) -> bytes:
    """Render digits (`0`-`9`, `*`, `#`; `w` waits half a second)."""
    silence = bytes((SILENCE_CODE[encoding],))
    audio = b""
    for digit in digits:
        if digit == "w":
            audio += silence * int(WAIT_SECONDS * RATE)
        else:
            row = next(row for row, keys in enumerate(KEYS) if digit in keys)
            low, high = _sine(ROWS[row], TONE_SECONDS), _sine(COLUMNS[KEYS[row].index(digit)], TONE_SECONDS)
            audio += encode_audio(((low + high) * LEVEL).astype(np.int16), encoding)
            audio += silence * int(PAUSE_SECONDS * RATE)
    return audio


def render_beep(encoding: Encoding) -> bytes:
    """Render the beep after which the caller speaks."""
    return encode_audio((_sine(BEEP_HERTZ, BEEP_SECONDS) * BEEP_LEVEL).astype(np.int16), encoding)


@cache
def render_hold_music(encoding: Encoding) -> bytes:
    """Render 16 seconds of music, a slow arpeggio, which can be repeated without a gap."""
    moments = np.arange(int(NOTE_SECONDS * RATE)) / RATE
    loudness = np.minimum(1, moments / 0.03) * np.minimum(1, (NOTE_SECONDS - moments) / 0.15) * np.exp(-1.5 * moments)
    notes = [
        (_sine(chord[step], NOTE_SECONDS) + 0.3 * _sine(2 * chord[step], NOTE_SECONDS)) * loudness * NOTE_LEVEL
        for chord in CHORDS
        for step in (0, 1, 2, 3, 2, 1, 2, 3)
    ]
    return encode_audio(np.concatenate(notes).astype(np.int16), encoding)


def _sine(hertz: int, seconds: float) -> npt.NDArray[np.float64]:
    return np.sin(2 * np.pi * hertz * np.arange(int(seconds * RATE)) / RATE)
