"""The answering machine: its default greeting, its beep, and the limits of a message."""

import numpy as np

from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import encode_audio

DEFAULT_GREETING = "We cannot take your call at the moment. Please leave a message after the tone."
SILENCE_SECONDS = 6.0
MAX_SECONDS = 120.0
BEEP_SECONDS, BEEP_HERTZ, BEEP_LEVEL = 0.4, 1000, 8000


def render_beep(encoding: Encoding) -> bytes:
    """Render the beep after which the caller speaks, as 8 kHz G.711."""
    moments = np.arange(int(BEEP_SECONDS * 8000)) / 8000
    return encode_audio((np.sin(2 * np.pi * BEEP_HERTZ * moments) * BEEP_LEVEL).astype(np.int16), encoding)
