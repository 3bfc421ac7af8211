"""Recognition of the beep of an answering machine: a steady tone, as no voice is."""

from typing import Final

import numpy as np
import numpy.typing as npt

from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import decode_audio

FRAME: Final = 160
"""Samples of 20 milliseconds at 8 kHz, so that a bin of the spectrum is 50 Hz wide."""
LOWEST, HIGHEST = 8, 44
"""Bins from 400 to 2200 Hz, which have the beeps of machines; hum and ringback (in part) are below."""
PURITY: Final = 0.9
"""Least share of a frame's energy in the tone's bin and its neighbors."""
QUIETEST: Final = 300.0
"""Least root mean square of a frame, of 32768: about -41 dBFS."""
FRAMES: Final = 10
"""Least length of a beep, in frames: 200 milliseconds. Vowels do not stay in one bin for so long."""


class BeepDetector:
    """Finds the end of a beep in the audio of one call."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._rest = b""
        self._bin = 0
        self._frames = 0
        self._window = np.hanning(FRAME)

    def has_heard_beep(self, audio: bytes) -> bool:
        """Take the next audio, and return whether a beep ended within it."""
        self._rest += audio
        ended = False
        while len(self._rest) >= FRAME:
            frame, self._rest = self._rest[:FRAME], self._rest[FRAME:]
            ended = self._add_frame(decode_audio(frame, self._encoding).astype(np.float64)) or ended
        return ended

    def _add_frame(self, samples: npt.NDArray[np.float64]) -> bool:
        tone = self._find_tone(samples)
        if tone is not None and (not self._frames or abs(tone - self._bin) <= 1):
            self._bin, self._frames = tone, self._frames + 1
            return False
        was_beep = self._frames >= FRAMES
        self._bin, self._frames = tone or 0, int(tone is not None)
        return was_beep

    def _find_tone(self, samples: npt.NDArray[np.float64]) -> int | None:
        """Return the bin of a pure tone; None if the frame has no pure tone."""
        if np.sqrt(np.mean(samples**2)) < QUIETEST:
            return None
        spectrum = np.abs(np.fft.rfft(samples * self._window)) ** 2
        peak = int(spectrum.argmax())
        if not LOWEST <= peak <= HIGHEST or spectrum[peak - 1 : peak + 2].sum() < PURITY * spectrum[1:].sum():
            return None
        return peak
