"""Both sides of a call on one time line, as both were heard: recordings are made from it, and what monitors hear."""

from collections import deque

import numpy as np

from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import SILENCE_CODE, Samples, decode_audio

RATE = 8000
MAX_DRIFT = RATE // 2
"""How far the caller's audio may lag behind the clock (a carrier that sends nothing while muted) before silence is put in."""


class StereoMixer:
    """Two channels, the caller left, the agent's side right. Positions count in samples since the call's audio began."""

    def __init__(self, encoding: Encoding, start: int = 0) -> None:
        """What lies before `start` was taken already."""
        self._encoding = encoding
        self._caller = bytearray()
        self._silence = (0, 0)
        self._agent: deque[tuple[int, Samples]] = deque()
        self.taken = start

    def caller(self, audio: bytes, position: int) -> None:
        """What came from the caller by a position; it has been said before."""
        gap = position - len(audio) - self.taken - len(self._caller)
        if gap > MAX_DRIFT:
            self._silence = len(self._caller), gap
            self._caller += bytes((SILENCE_CODE[self._encoding],)) * gap
        elif gap < 0:
            self._take_back(-gap)
        self._caller += audio

    def _take_back(self, count: int) -> None:
        """Nobody was muted, the audio was late, and what comes now belongs where silence was put in."""
        start, length = self._silence
        late = min(count, length)
        del self._caller[start : start + late]
        self._silence = start, length - late

    def _drop(self, count: int) -> None:
        """So much of the caller's audio is gone from the beginning."""
        del self._caller[:count]
        start, end = (max(0, edge - count) for edge in (self._silence[0], sum(self._silence)))
        self._silence = start, end - start

    def agent(self, audio: bytes, position: int) -> None:
        """What the caller will hear of the agent's side from a position on."""
        self._agent.append((position, decode_audio(audio, self._encoding)))

    def cut(self, position: int) -> None:
        """Nothing of the agent's side is heard from here on: the carrier was told to drop it."""
        while self._agent and self._agent[-1][0] >= position:
            self._agent.pop()
        if self._agent:
            start, samples = self._agent[-1]
            self._agent[-1] = (start, samples[: max(0, position - start)])

    def catch_up(self, most: int) -> None:
        """Forget the caller's audio beyond so many samples that wait to be taken: what came late would stay late."""
        self._drop(max(0, len(self._caller) - most))

    def take(self, until: int) -> Samples:
        """Both channels up to a position, a row for each sample; what of the caller has not come by then is silence."""
        count = max(0, until - self.taken)
        frames = np.zeros((count, 2), dtype=np.int16)
        heard = decode_audio(bytes(self._caller[:count]), self._encoding)
        frames[: len(heard), 0] = heard
        self._drop(count)
        start, end = self.taken, self.taken + count
        while self._agent and self._agent[0][0] < end:
            position, samples = self._agent.popleft()
            offset = max(0, position - start)
            samples = samples[max(0, start - position) :]
            now, later = samples[: count - offset], samples[count - offset :]
            frames[offset : offset + len(now), 1] = now
            if len(later):
                self._agent.appendleft((end, later))
                break
        self.taken = end
        return frames
