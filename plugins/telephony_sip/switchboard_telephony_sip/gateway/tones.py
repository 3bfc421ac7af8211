"""The ringing tone that a caller hears while a transfer's target rings."""

from typing import Final

import numpy as np
from switchboard.plugin_sdk.audio import encode_audio

TONE_SECONDS, PAUSE_SECONDS, RATE, FREQUENCY, AMPLITUDE = 1.0, 4.0, 8000, 425, 4000


def _make_ringback() -> bytes:
    times = np.arange(int(TONE_SECONDS * RATE)) / RATE
    tone = (AMPLITUDE * np.sin(2 * np.pi * FREQUENCY * times)).astype(np.int16)
    return bytes(encode_audio(tone, "mulaw")) + b"\xff" * int(PAUSE_SECONDS * RATE)


RINGBACK_SECONDS: Final = TONE_SECONDS + PAUSE_SECONDS
RINGBACK: Final = _make_ringback()
"""Mu-law: one second of 425 Hz and four of silence (ITU-T E.180)."""
