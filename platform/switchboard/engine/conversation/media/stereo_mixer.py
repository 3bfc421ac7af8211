"""Mixer of both sides of a call, as both were heard, for recordings and for supervisors who listen."""

from collections import deque
from enum import IntEnum

import numpy as np

from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import SILENCE_CODE, Samples, decode_audio

RATE = 8000
MAX_DRIFT = RATE // 2
"""Samples by which the caller's audio may lag behind the clock before silence is inserted: carriers may send nothing
while muted."""


class Channel(IntEnum):
    """Column of a party in the frames."""

    CALLER = 0
    AGENT = 1


class StereoMixer:
    """Two channels, the caller left, the agent right. Positions count samples since the call's audio began."""

    def __init__(self, encoding: Encoding, start: int = 0) -> None:
        self._encoding = encoding
        self._caller = bytearray()
        self._silence = (0, 0)
        self._agent: deque[tuple[int, Samples]] = deque()
        self._silenced: list[tuple[Channel, int, int]] = []
        self.position = start

    def add_caller_audio(self, audio: bytes, position: int) -> None:
        """Add audio that the caller had spoken by a position."""
        gap = position - len(audio) - self.position - len(self._caller)
        if gap > MAX_DRIFT:
            self._silence = len(self._caller), gap
            self._caller += bytes((SILENCE_CODE[self._encoding],)) * gap
        elif gap < 0:
            self._remove_silence(-gap)
        self._caller += audio

    def _remove_silence(self, count: int) -> None:
        """Remove inserted silence: the caller was not muted, the audio was late and belongs there."""
        start, length = self._silence
        late = min(count, length)
        del self._caller[start : start + late]
        self._silence = start, length - late

    def _drop_caller_audio(self, count: int) -> None:
        del self._caller[:count]
        start, end = (max(0, edge - count) for edge in (self._silence[0], sum(self._silence)))
        self._silence = start, end - start

    def add_agent_audio(self, audio: bytes, position: int) -> None:
        """Add audio that the caller will hear from a position on."""
        self._agent.append((position, decode_audio(audio, self._encoding)))

    def cut_agent_audio(self, position: int) -> None:
        """Remove the agent's audio from a position on: the carrier was told to drop it."""
        while self._agent and self._agent[-1][0] >= position:
            self._agent.pop()
        if self._agent:
            start, samples = self._agent[-1]
            self._agent[-1] = (start, samples[: max(0, position - start)])

    def silence(self, channel: Channel, start: int, end: int) -> None:
        """Replace what was said between two positions by silence, as far as it has not been taken yet."""
        self._silenced.append((channel, start, end))

    def drop_late_caller_audio(self, max_samples: int) -> None:
        """Keep at most this many of the caller's samples; otherwise audio that arrived late would stay late."""
        self._drop_caller_audio(max(0, len(self._caller) - max_samples))

    def take(self, until: int) -> Samples:
        """Take both channels up to a position, one row for each sample.

        Caller audio that has not arrived yet is silence.
        """
        count = max(0, until - self.position)
        frames = np.zeros((count, 2), dtype=np.int16)
        heard = decode_audio(bytes(self._caller[:count]), self._encoding)
        frames[: len(heard), 0] = heard
        self._drop_caller_audio(count)
        start, end = self.position, self.position + count
        while self._agent and self._agent[0][0] < end:
            position, samples = self._agent.popleft()
            offset = max(0, position - start)
            samples = samples[max(0, start - position) :]
            now, later = samples[: count - offset], samples[count - offset :]
            frames[offset : offset + len(now), 1] = now
            if len(later):
                self._agent.appendleft((end, later))
                break
        for channel, first, last in self._silenced:
            frames[max(0, first - start) : max(0, last - start), channel] = 0
        self._silenced = [silenced for silenced in self._silenced if silenced[2] > end]
        self.position = end
        return frames
