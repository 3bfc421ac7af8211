"""Sound in the place of audio that did not come: concealment of lost packets, and comfort noise."""

import random
from collections import deque
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from switchboard.plugin_sdk.audio import decode_audio, encode_audio

from switchboard_telephony_sip.media.frames import SAMPLE_RATE

SILENT_LEVEL: Final = 127
"""Level of comfort noise that is silence, in -dBov."""

_HISTORY_FRAMES: Final = 3
_SHORTEST_PITCH, _LONGEST_PITCH = 40, 120
_TEMPLATE: Final = 160
_KEEP, _END = 80, 480
"""Samples of a loss at full volume, and samples after which it is silent: 10 ms and 60 ms, as in G.711 Appendix I."""

Wave = npt.NDArray[np.float32]


class Concealer:
    """Packet-loss concealment as in G.711 Appendix I: the last pitch period is repeated and fades.

    Unlike the appendix it delays nothing: the seam at the beginning of a loss relies on the signal's period. Only a
    loss costs time; other frames pass as they are.
    """

    def __init__(self) -> None:
        self._history: deque[bytes] = deque(maxlen=_HISTORY_FRAMES)
        self._period: Wave | None = None
        self._concealed = 0

    def pass_frame(self, mulaw: bytes) -> bytes:
        """Return a received frame, whose beginning is blended with the concealment of a loss before it."""
        if self._concealed:
            mulaw = self._blend(mulaw)
            self._concealed, self._period = 0, None
        self._history.append(mulaw)
        return mulaw

    def conceal(self, samples: int) -> bytes:
        """Return mu-law for samples that did not come."""
        if self._concealed >= _END:
            return b"\xff" * samples
        if not self._concealed:
            self._period = self._find_period()
        wave = self._continue(samples)
        self._concealed += samples
        return encode_audio(wave.astype(np.int16), "mulaw")

    def _continue(self, samples: int) -> Wave:
        if self._period is None:
            return np.zeros(samples, np.float32)
        times = np.arange(self._concealed, self._concealed + samples)
        fade = np.clip(1 - (times - _KEEP) / (_END - _KEEP), 0, 1).astype(np.float32)
        return self._period[times % len(self._period)] * fade

    def _blend(self, mulaw: bytes) -> bytes:
        samples = min(len(mulaw), 32 if self._concealed <= 160 else 80)
        ramp = np.linspace(0, 1, samples, dtype=np.float32)
        wave = decode_audio(mulaw[:samples], "mulaw") * ramp + self._continue(samples) * (1 - ramp)
        return encode_audio(wave.astype(np.int16), "mulaw") + mulaw[samples:]

    def _find_period(self) -> Wave | None:
        """Return the last pitch period, its end bent so that it joins its beginning; None without enough history."""
        history = decode_audio(b"".join(self._history), "mulaw").astype(np.float32)
        if len(history) < _TEMPLATE + _LONGEST_PITCH + _LONGEST_PITCH // 4:
            return None
        template = history[-_TEMPLATE:]
        first = len(history) - _TEMPLATE - _LONGEST_PITCH
        windows = np.lib.stride_tricks.sliding_window_view(history[first:-_SHORTEST_PITCH], _TEMPLATE)
        scores = windows @ template / (np.sqrt(np.einsum("ij,ij->i", windows, windows)) + 1)
        pitch = _LONGEST_PITCH - int(np.argmax(scores))
        seam = pitch // 4
        period = history[-pitch:].copy()
        ramp = np.linspace(0, 1, seam, dtype=np.float32)
        period[-seam:] = period[-seam:] * (1 - ramp) + history[-pitch - seam : -pitch] * ramp
        return period


def make_noise(level: int, samples: int) -> bytes:
    """Return comfort noise as mu-law. `level` is in -dBov (RFC 3389): 0 is the loudest, 127 silence."""
    if level >= SILENT_LEVEL:
        return b"\xff" * samples
    noise = _noise_of_level(level)
    start = random.randrange(len(noise) - samples)  # noqa: S311 - noise needs no secrecy
    return noise[start : start + samples]


@lru_cache(maxsize=8)
def _noise_of_level(level: int) -> bytes:
    volume = min(32768 * 10 ** (-level / 20), 8000)
    wave = np.random.default_rng(level).normal(0, volume, SAMPLE_RATE)
    return encode_audio(np.clip(wave, -32768, 32767).astype(np.int16), "mulaw")
