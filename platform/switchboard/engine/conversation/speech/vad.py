"""Voice activity detection: Silero over all calls in one batch, and a state machine for each call.

The model is version 5, from the wheel of its authors (https://github.com/snakers4/silero-vad, MIT). All thresholds here
and in `turns` were measured with it. Version 6 judges 4 % of the windows of `bench/turn_recordings` differently.

The parameters mean the same as Pipecat's.

A window is 256 samples at 8 kHz, 32 ms. It counts as speech when Silero's confidence reaches `vad_confidence` and the
smoothed loudness reaches `vad_min_volume`: 0.6 is -50 LUFS, 0.7 is -40 (BS.1770 over the last 400 ms,
(LUFS + 110) / 100).
"""

from collections import deque
from collections.abc import Sequence
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnxruntime

from switchboard.plugin_sdk.audio import Samples

# Level of a speaker's voice, which shows more exactly than voice activity detection when the voice ends and begins.

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


Floats = npt.NDArray[np.float32]

SAMPLE_RATE = 8000
WINDOW = 256
WINDOW_SECONDS = WINDOW / SAMPLE_RATE
CONTEXT = 32
STATE = 128
STOP_SECONDS = 0.2
LOUDNESS_WINDOWS = 13
SMOOTHING = 0.2
GATE_LUFS = -70.0
LEAD_WINDOWS = 14
"""Windows before the first voice that belong to speech: its soft beginning, in which Silero is not certain yet. Voice
that stopped within them, such as a short first word, is a part of the speech, too."""
MAX_ONSET_WINDOWS = round(2.0 / WINDOW_SECONDS)
QUIET_MARGIN = 0.05
RESET_WINDOWS = round(2.0 / WINDOW_SECONDS)
RESET_CONFIDENCE, RESET_QUIET_WINDOWS = 0.1, 5


class SpeechChange(Enum):
    """Change of the voice activity by one window."""

    NONE = 0
    STARTED = 1
    STOPPED = 2


class VoiceActivity:
    """Voice activity of one speaker: Silero's memory, the loudness, the level, and whether there is speech."""

    def __init__(self, *, confidence: float, start_seconds: float, min_volume: float) -> None:
        self.configure(confidence=confidence, start_seconds=start_seconds, min_volume=min_volume)
        self._stop_windows = round(STOP_SECONDS / WINDOW_SECONDS)
        self._energies: deque[float] = deque(maxlen=LOUDNESS_WINDOWS)
        self._count = 0
        self._since_reset = 0
        self._quiet_windows = 0
        self._onset: int | None = None
        self._pause = 0
        self.volume = 0.0
        self.speaking = False
        self.level = VoiceLevel()
        self.memory = np.zeros((2, STATE), dtype=np.float32)
        self.context = np.zeros(CONTEXT, dtype=np.float32)

    def configure(self, *, confidence: float, start_seconds: float, min_volume: float) -> None:
        """Set from which confidence and volume audio counts as voice, and from which length voice as speech."""
        self._confidence = confidence
        self._min_volume = min_volume
        self._start_windows = max(1, round(start_seconds / WINDOW_SECONDS))

    @property
    def is_starting(self) -> bool:
        """Return whether there is a voice that has not lasted long enough yet to count as speech."""
        return not self.speaking and self._count > 0

    @property
    def pre_roll_windows(self) -> int:
        """Return how many of the last windows belong to the speech that begins, or may begin."""
        return LEAD_WINDOWS + (self._onset or 0)

    def add_energy(self, energy: float) -> bool:
        """Add a window's weighted energy; return whether Silero must run: it is loud enough, or a change is pending."""
        self._energies.append(energy)
        self.volume += SMOOTHING * (self._loudness() - self.volume)
        return self.speaking or self._count > 0 or self.volume >= self._min_volume - QUIET_MARGIN

    def update(self, confidence: float, steps: Sequence[float]) -> SpeechChange:
        """Update the state with Silero's confidence in a window, and with the mean powers of its steps."""
        self._maybe_reset(confidence)
        voiced = confidence >= self._confidence and self.volume >= self._min_volume
        self.level.add_window(steps, is_voice=voiced and self.speaking)
        self._follow_onset(voiced)
        if voiced == self.speaking:
            self._count = 0
            return SpeechChange.NONE
        self._count += 1
        if self._count < (self._stop_windows if self.speaking else self._start_windows):
            return SpeechChange.NONE
        self._count = 0
        self.speaking = voiced
        return SpeechChange.STARTED if voiced else SpeechChange.STOPPED

    def _follow_onset(self, voiced: bool) -> None:
        """Count the windows since the first voice that did not count as speech, for as long as its pauses are short."""
        if self.speaking:
            self._onset = None
            return
        self._pause = 0 if voiced else self._pause + 1
        if self._pause > LEAD_WINDOWS or (self._onset is None and not voiced):
            self._onset = None
        else:
            self._onset = min((self._onset or 0) + 1, MAX_ONSET_WINDOWS)

    def _loudness(self) -> float:
        if len(self._energies) < LOUDNESS_WINDOWS:
            return 0.0
        mean = sum(self._energies) / LOUDNESS_WINDOWS
        lufs = -0.691 + 10 * np.log10(mean) if mean > 0 else -np.inf
        return 0.0 if lufs < GATE_LUFS else min(1.0, max(0.0, (float(lufs) + 110) / 100))

    def _maybe_reset(self, confidence: float) -> None:
        self._since_reset += 1
        self._quiet_windows = self._quiet_windows + 1 if confidence < RESET_CONFIDENCE else 0
        if self._since_reset >= RESET_WINDOWS and not self.speaking and self._quiet_windows >= RESET_QUIET_WINDOWS:
            self._since_reset = 0
            self.memory[:] = 0
            self.context[:] = 0


def _k_weights() -> npt.NDArray[np.float64]:
    """Compute |H|² of BS.1770's two K-weighting filters at the bins of a window's Fourier transform.

    The filters' coefficients are recomputed for 8 kHz.
    """
    z = np.exp(-2j * np.pi * np.fft.rfftfreq(WINDOW))
    shelf_k = np.tan(np.pi * 1681.974450955533 / SAMPLE_RATE)
    shelf_q, gain = 0.7071752369554196, 10 ** (3.999843853973347 / 20)
    middle = gain**0.4996667741545416
    a0 = 1 + shelf_k / shelf_q + shelf_k**2
    shelf_b = (
        np.array(
            [
                gain + middle * shelf_k / shelf_q + shelf_k**2,
                2 * (shelf_k**2 - gain),
                gain - middle * shelf_k / shelf_q + shelf_k**2,
            ]
        )
        / a0
    )
    shelf_a = np.array([1, 2 * (shelf_k**2 - 1) / a0, (1 - shelf_k / shelf_q + shelf_k**2) / a0])
    pass_k, pass_q = np.tan(np.pi * 38.13547087602444 / SAMPLE_RATE), 0.5003270373238773
    a0 = 1 + pass_k / pass_q + pass_k**2
    pass_b, pass_a = (
        np.array([1.0, -2.0, 1.0]),
        np.array([1, 2 * (pass_k**2 - 1) / a0, (1 - pass_k / pass_q + pass_k**2) / a0]),
    )
    powers = np.stack([np.ones_like(z), z, z**2])
    response = (shelf_b @ powers) / (shelf_a @ powers) * (pass_b @ powers) / (pass_a @ powers)
    weights = np.abs(response) ** 2 * 2
    weights[0] /= 2
    weights[-1] /= 2
    return np.asarray(weights / WINDOW**2, dtype=np.float64)


def _model_path() -> Path:
    """Return the path of the model without importing silero_vad, which needs PyTorch."""
    found = find_spec("silero_vad")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("the voice activity detection has no model: pip install --no-deps silero-vad==5.1.2")
    return Path(found.submodule_search_locations[0]) / "data" / "silero_vad.onnx"


class VoiceDetector:
    """Silero for all calls of the process, in one run over all windows that are ready."""

    def __init__(self) -> None:
        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._model = onnxruntime.InferenceSession(str(_model_path()), options, providers=["CPUExecutionProvider"])
        self._rate = np.array(SAMPLE_RATE, dtype=np.int64)
        self._weights = _k_weights()

    def detect(self, calls: Sequence[VoiceActivity], windows: npt.NDArray[np.int16]) -> list[SpeechChange]:
        """Detect voice activity in one window of each call; `windows` has a row of 256 samples for each."""
        audio: Floats = windows.astype(np.float32) / np.float32(32768)
        energies = np.square(np.abs(np.fft.rfft(audio, axis=1))) @ self._weights
        loud = [index for index, call in enumerate(calls) if call.add_energy(float(energies[index]))]
        confidences = np.zeros(len(calls), dtype=np.float32)
        if loud:
            confidences[loud] = self._infer([calls[index] for index in loud], audio[loud])
        for call, window in zip(calls, audio, strict=True):
            call.context = window[-CONTEXT:]
        return [
            call.update(float(confidence), powers)
            for call, confidence, powers in zip(calls, confidences, measure_steps(windows), strict=True)
        ]

    def _infer(self, calls: Sequence[VoiceActivity], audio: Floats) -> Floats:
        contexts = np.stack([call.context for call in calls])
        memory = np.stack([call.memory for call in calls], axis=1)
        inputs = {"input": np.concatenate([contexts, audio], axis=1), "state": memory, "sr": self._rate}
        confidences, memory = self._model.run(None, inputs)
        for index, call in enumerate(calls):
            call.memory = memory[:, index]
        return np.asarray(confidences[:, 0], dtype=np.float32)
