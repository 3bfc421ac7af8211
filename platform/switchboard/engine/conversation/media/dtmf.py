"""DTMF digits as tones in the audio (ITU-T Q.23), for carriers that have no other way to send them."""

import numpy as np

from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import SILENCE_CODE, encode_audio

TONE_SECONDS, PAUSE_SECONDS, WAIT_SECONDS, LEVEL = 0.12, 0.08, 0.5, 6000
ROWS, COLUMNS = (697, 770, 852, 941), (1209, 1336, 1477)
KEYS = ("123", "456", "789", "*0#")


def render_tones(digits: str, encoding: Encoding) -> bytes:
    """Render digits (`0`-`9`, `*`, `#`; `w` waits half a second) as 8 kHz G.711."""
    silence = bytes((SILENCE_CODE[encoding],))
    audio = b""
    for digit in digits:
        if digit == "w":
            audio += silence * int(WAIT_SECONDS * 8000)
        else:
            audio += _tone(digit, encoding) + silence * int(PAUSE_SECONDS * 8000)
    return audio


def _tone(digit: str, encoding: Encoding) -> bytes:
    row = next(row for row, keys in enumerate(KEYS) if digit in keys)
    moments = np.arange(int(TONE_SECONDS * 8000)) / 8000
    low, high = (np.sin(2 * np.pi * hertz * moments) for hertz in (ROWS[row], COLUMNS[KEYS[row].index(digit)]))
    return encode_audio(((low + high) * LEVEL).astype(np.int16), encoding)
