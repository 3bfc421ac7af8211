"""Recording of a call as a stereo WAV file, the caller left, the agent right, written while the call goes on."""

import asyncio
import fcntl
import struct
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from switchboard.engine.conversation.media.stereo_mixer import RATE, Channel, StereoMixer
from switchboard.plugin_sdk import Encoding

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
