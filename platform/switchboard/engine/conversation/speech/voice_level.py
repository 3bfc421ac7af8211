"""Level of a speaker's voice, which shows more exactly than voice activity detection when the voice ends and begins."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from switchboard.plugin_sdk.audio import Samples

STEP: Final = 64
STEP_SECONDS: Final = STEP / 8000
"""Length of the steps whose power is measured: four of them are a window of voice activity detection."""
AUDIBLE: Final = 10 ** (-24 / 10)
"""Power of a sound, beside the mean of the voice, from which it may belong to the voice, which fades as it ends."""
ABOVE_NOISE: Final = 10 ** (14 / 10)
"""Power beside the quietest recent step from which a sound is more than noise, whose steps differ by about 10 dB."""
MEASURABLE: Final = 10 ** (-12 / 10)
"""Power beside the voice below which a sound must already count as more than noise; otherwise noise hides the ends."""
VOICE_MEMORY_WINDOWS: Final = 16
NOISE_RISE: Final = 10 ** (0.17 / 10)
"""Factor of a window by which the noise may rise: 10 dB in 2 seconds, so that pauses between words keep it down."""
SILENCE: Final = 1e-9


class VoiceLevel:
    """Level of one speaker's voice above the noise of the line, in powers of samples from -1 to 1.

    `quiet_seconds` is the time from the last audible step to the end of the last window. It is None where noise hides
    the ends of the voice.
    """

    def __init__(self) -> None:
        self._voice = 0.0
        self._noise = 1.0
        self._threshold = 0.0
        self._quiet_seconds = 0.0

    @property
    def quiet_seconds(self) -> float | None:
        return self._quiet_seconds if self._is_measurable else None

    @property
    def _is_measurable(self) -> bool:
        return self._threshold <= self._voice * MEASURABLE

    def add_window(self, steps: Sequence[float], *, is_voice: bool) -> None:
        """Add the mean powers of a window's steps. `is_voice` if voice activity detection takes it for speech."""
        if is_voice:
            power = sum(steps) / len(steps)
            self._voice += (power - self._voice) / (VOICE_MEMORY_WINDOWS if self._voice else 1)
        self._noise = max(SILENCE, min(self._noise * NOISE_RISE, *steps))
        self._threshold = max(self._voice * AUDIBLE, self._noise * ABOVE_NOISE)
        steps_since = next((behind for behind, power in enumerate(reversed(steps)) if power >= self._threshold), None)
        if steps_since is None:
            self._quiet_seconds += len(steps) * STEP_SECONDS
        else:
            self._quiet_seconds = steps_since * STEP_SECONDS

    def is_audible(self, steps: Sequence[float]) -> bool:
        """Return whether steps that follow the last window have a sound that is as loud as the voice may be."""
        return self._is_measurable and any(power >= self._threshold for power in steps)


def measure_steps(windows: Samples) -> list[list[float]]:
    """Measure the mean power of each whole step; `windows` and the result have a row for each call."""
    steps = windows.shape[1] // STEP
    audio = windows[:, : steps * STEP].astype(np.float32) / np.float32(32768)
    powers: list[list[float]] = np.square(audio).reshape(len(windows), steps, STEP).mean(axis=2).tolist()
    return powers
