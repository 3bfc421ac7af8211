"""Recording of a call as a stereo WAV file, the caller left, the agent right, written while the call goes on."""

import asyncio
import fcntl
import struct
from collections import deque
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO

import numpy as np

from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import SILENCE_CODE, Samples, decode_audio

# Mixer of both sides of a call, as both were heard, for recordings and for supervisors who listen.

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
        elif gap < 0:  # the caller was not muted: the audio was late, and belongs where silence was inserted
            start, length = self._silence
            late = min(-gap, length)
            del self._caller[start : start + late]
            self._silence = start, length - late
        self._caller += audio

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


HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
HOLD_BACK_SAMPLES = 2 * RATE
"""The latest samples are not written before the call's end: caller audio that arrives late still finds its place
there."""


def build_wav_header(frames: int) -> bytes:
    """Build the header of a stereo 16-bit WAV file with this number of frames."""
    size = frames * 4
    return HEADER.pack(b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, 1, 2, RATE, RATE * 4, 4, 16, b"data", size)


class Recording(StereoMixer):
    """Mixer that writes to a file, in threads, never in the event loop.

    The file is locked until it is closed. A recording whose file cannot be written is dropped, and the call goes on:
    `error` says why, the file is deleted, and later writes change nothing.

    With `awaits_consent` nothing is written, and the caller's audio is dropped, until `allow_caller` is called. The
    agent's audio is kept in memory until then: some laws want the notice in the recording (RCW 9.73.030(3), Conn. Gen.
    Stat. § 52-570d(a)(2)).
    """

    def __init__(self, path: Path, encoding: Encoding, *, awaits_consent: bool = False) -> None:
        super().__init__(encoding)
        self.path = path
        self.awaits_consent = awaits_consent
        self.error: str | None = None
        self._file: BinaryIO | None = None
        self._writing = asyncio.Lock()
        self._appending: asyncio.Task[None] | None = None
        self._closed = False

    def allow_caller(self, position: int) -> None:
        """Record the caller from a position on; audio from before that arrives later is silenced."""
        self.awaits_consent = False
        self.silence(Channel.CALLER, 0, position)

    def add_caller_audio(self, audio: bytes, position: int) -> None:
        """Add audio that the caller had spoken by a position, unless the caller has not consented."""
        if not self.awaits_consent:
            super().add_caller_audio(audio, position)

    async def write(self, position: int, hold_from: int | None = None) -> None:
        """Write everything that cannot change any more at this position of the call.

        From `hold_from` on, speech may still have to be silenced.
        """
        settled = position - HOLD_BACK_SAMPLES
        await self._write(settled if hold_from is None else min(settled, hold_from))

    async def _write(self, until: int) -> None:
        async with self._writing:
            if until <= self.position or self._closed or self.error or self.awaits_consent:
                return
            frames = self.take(until)
            await self._wait_for_append()
            self._appending = asyncio.create_task(asyncio.to_thread(self._append, frames.tobytes()))
            await self._wait_for_append()

    async def close(self, until: int) -> None:
        """Write the rest and close the file; a second call changes nothing."""
        await self._write(until)
        async with self._writing:
            # The engine's clock may ask for another write while the call is being closed; it would overwrite the file.
            self._closed = True
            await self._wait_for_append()
            await asyncio.to_thread(self._close_file)

    async def _wait_for_append(self) -> None:
        """Wait for the writing thread, which goes on when the task that waits for it is canceled."""
        if self._appending is not None:
            await asyncio.shield(self._appending)

    def _append(self, data: bytes) -> None:
        try:
            if self._file is None:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = self.path.open("wb")
                # The lock says that the file is not complete; the kernel releases it when this process dies.
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.seek(0)
            self._file.write(build_wav_header(self.position))
            self._file.seek(0, 2)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            self._drop(error)

    def _close_file(self) -> None:
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._drop(error)

    def _drop(self, error: OSError) -> None:
        self.error = error.strerror or type(error).__name__
        file, self._file = self._file, None
        with suppress(OSError):
            if file is not None:
                file.close()
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
