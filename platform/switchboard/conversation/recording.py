"""A call's recording: stereo WAV, the caller left, the agent right, as both were heard; written while the call goes on."""

import asyncio
import struct
from collections import deque
from pathlib import Path
from typing import BinaryIO

import numpy as np

from switchboard.conversation.g711 import Samples, decode
from switchboard.plugins import Encoding

RATE = 8000
HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
MAX_DRIFT = RATE // 2
"""How far the caller's audio may lag behind the clock (a carrier that sends nothing while muted) before silence is put in."""
HELD_BACK = 2 * RATE
"""What is not written before the call's end: audio that was delayed on its way to us still finds its place there."""


def wav_header(frames: int) -> bytes:
    """The header of a stereo 16-bit WAV file of so many frames."""
    size = frames * 4
    return HEADER.pack(b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, 1, 2, RATE, RATE * 4, 4, 16, b"data", size)


class Recording:
    """Both sides on one time line, in samples since the audio began. Files are written in threads, never in the event loop."""

    def __init__(self, path: Path, encoding: Encoding) -> None:
        self._path = path
        self._encoding = encoding
        self._caller = bytearray()
        self._silence = (0, 0)
        self._agent: deque[tuple[int, Samples]] = deque()
        self._written = 0
        self._file: BinaryIO | None = None
        self._writing = asyncio.Lock()
        self._appending: asyncio.Task[None] | None = None
        self._closed = False

    def caller(self, audio: bytes, position: int) -> None:
        """What came from the caller by a position; it has been said before."""
        gap = position - len(audio) - self._written - len(self._caller)
        if gap > MAX_DRIFT:
            self._silence = len(self._caller), gap
            self._caller += bytes([0xFF if self._encoding == "mulaw" else 0xD5]) * gap
        elif gap < 0:
            self._take_back(-gap)
        self._caller += audio

    def _take_back(self, count: int) -> None:
        """Nobody was muted, the audio was late, and what comes now belongs where silence was put in."""
        start, length = self._silence
        late = min(count, length)
        del self._caller[start : start + late]
        self._silence = start, length - late

    def agent(self, audio: bytes, position: int) -> None:
        """What the caller will hear of the agent from a position on."""
        self._agent.append((position, decode(audio, self._encoding)))

    def cut(self, position: int) -> None:
        """Nothing of the agent is heard from here on: the carrier was told to drop it."""
        while self._agent and self._agent[-1][0] >= position:
            self._agent.pop()
        if self._agent:
            start, samples = self._agent[-1]
            self._agent[-1] = (start, samples[: max(0, position - start)])

    async def write(self, now: int) -> None:
        """Write what is known for good by a position."""
        await self._write(now - HELD_BACK)

    async def _write(self, until: int) -> None:
        async with self._writing:
            count = until - self._written
            if count <= 0 or self._closed:
                return
            frames = self._mix(count)
            await self._appended()
            self._appending = asyncio.create_task(asyncio.to_thread(self._append, frames.tobytes()))
            await self._appended()

    async def close(self, until: int) -> None:
        """Write the rest and close the file; harmless when done twice."""
        await self._write(until)
        async with self._writing:
            # The engine's clock may ask for another write while the call is being put away: it would begin the file anew.
            self._closed = True
            await self._appended()
            if self._file is not None:
                await asyncio.to_thread(self._file.close)
                self._file = None

    async def _appended(self) -> None:
        """Wait for the thread that writes: it goes on when whoever waits for it is cancelled."""
        if self._appending is not None:
            await asyncio.shield(self._appending)

    def _mix(self, count: int) -> Samples:
        frames = np.zeros((count, 2), dtype=np.int16)
        heard = decode(bytes(self._caller[:count]), self._encoding)
        frames[: len(heard), 0] = heard
        del self._caller[:count]
        silent_from, silent_to = (max(0, edge - count) for edge in (self._silence[0], sum(self._silence)))
        self._silence = silent_from, silent_to - silent_from
        start, end = self._written, self._written + count
        while self._agent and self._agent[0][0] < end:
            position, samples = self._agent.popleft()
            offset = max(0, position - start)
            samples = samples[max(0, start - position) :]
            now, later = samples[: count - offset], samples[count - offset :]
            frames[offset : offset + len(now), 1] = now
            if len(later):
                self._agent.appendleft((end, later))
                break
        self._written = end
        return frames

    def _append(self, data: bytes) -> None:
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = self._path.open("wb")
        self._file.seek(0)
        self._file.write(wav_header(self._written))
        self._file.seek(0, 2)
        self._file.write(data)
        self._file.flush()
