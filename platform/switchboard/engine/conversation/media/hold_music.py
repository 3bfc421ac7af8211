"""Music for callers who wait: a slow arpeggio, rendered once for each encoding."""

from functools import cache

import numpy as np
import numpy.typing as npt

from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import encode_audio

RATE, NOTE_SECONDS, LEVEL = 8000, 0.5, 3500
CHORDS = ((262, 330, 392, 523), (220, 262, 330, 440), (175, 220, 262, 349), (196, 247, 294, 392))


@cache
def render_hold_music(encoding: Encoding) -> bytes:
    """Render 16 seconds of music, which can be repeated without a gap, as 8 kHz G.711."""
    notes = [chord[step] for chord in CHORDS for step in (0, 1, 2, 3, 2, 1, 2, 3)]
    return encode_audio(np.concatenate([_render_note(hertz) for hertz in notes]), encoding)


def _render_note(hertz: int) -> npt.NDArray[np.int16]:
    moments = np.arange(int(NOTE_SECONDS * RATE)) / RATE
    loudness = np.minimum(1, moments / 0.03) * np.minimum(1, (NOTE_SECONDS - moments) / 0.15) * np.exp(-1.5 * moments)
    wave = np.sin(2 * np.pi * hertz * moments) + 0.3 * np.sin(4 * np.pi * hertz * moments)
    return np.asarray(wave * loudness * LEVEL, dtype=np.int16)
