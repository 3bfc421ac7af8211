"""A person's telephone: mu-law audio in both directions, in frames of 20 ms, 160 bytes each, and its timing."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

FRAME_BYTES: Final = 160
"""20 ms."""
SILENT_FRAME: Final = b"\xff" * FRAME_BYTES
AUDIBLE_LEVEL: Final = 0x20
"""A peak of about -38 dB below full scale: above a line's noise, below anybody's voice."""
_LEVELS: Final = bytes(~code & 0x7F for code in range(256))


def is_audible(frame: bytes) -> bool:
    """Return whether anything can be heard in the frame."""
    return max(frame.translate(_LEVELS), default=0) >= AUDIBLE_LEVEL


def split_frames(audio: bytes) -> list[bytes]:
    """Cut audio into frames of 20 ms, the last one padded with silence."""
    return [audio[at : at + FRAME_BYTES].ljust(FRAME_BYTES, b"\xff") for at in range(0, len(audio), FRAME_BYTES)]


FRAME_SECONDS: Final = 0.02
PAUSE_SECONDS: Final = 0.6
"""Silence after which the other side is considered to have finished."""
RECORDED_BYTES: Final = 8000 * 600
"""Ten minutes of each direction are recorded."""


class Phone:
    """One end of a line, driven by the line's clock, which calls `speak` and `hear` every 20 ms.

    Times are counted in frames since the answer.
    """

    def __init__(self, machine_beeped: Callable[[], None] = lambda: None) -> None:
        self.machine_beeped = machine_beeped
        self.said = bytearray()
        self.heard = bytearray()
        self.pressed: deque[str] = deque()
        self.now = 0
        self.audible_frames = 0
        self.last_heard: int | None = None
        self.last_said: int | None = None
        self.on_heard: Callable[[bytes], None] = lambda _frame: None
        self._queue: deque[bytes] = deque()
        self._tick = asyncio.Event()

    # the line's side

    def speak(self) -> bytes:
        """Return the next 20 ms to be spoken."""
        if not self._queue:
            return SILENT_FRAME
        frame = self._queue.popleft()
        if is_audible(frame):
            self.last_said = self.now
        return frame

    def hear(self, said: bytes, heard: bytes) -> None:
        """Process 20 ms of audio in both directions."""
        if is_audible(heard):
            self.last_heard = self.now
            self.audible_frames += 1
        if len(self.heard) < RECORDED_BYTES:
            self.said += said
            self.heard += heard
        self.on_heard(heard)
        self.now += 1
        self._tick.set()

    # the person's side

    async def say(self, audio: bytes) -> None:
        """Speak mu-law audio; returns when it has been spoken."""
        self.add(split_frames(audio))
        while self._queue:
            await self.wait()

    def add(self, said: list[bytes]) -> None:
        """Queue frames to be spoken after the others."""
        self._queue.extend(said)

    @property
    def unsaid(self) -> int:
        """Number of frames still to be spoken."""
        return len(self._queue)

    def press(self, digits: str) -> None:
        """Press keys."""
        self.pressed.extend(digits)

    async def wait(self, seconds: float = FRAME_SECONDS) -> None:
        """Wait for this time on the line's clock."""
        until = self.now + round(seconds / FRAME_SECONDS)
        while self.now < until:
            self._tick.clear()
            await self._tick.wait()

    async def wait_for_voice(self, patience: float) -> bool:
        """Wait until new sound is heard; returns False if there is none within `patience` seconds."""
        start, until = self.now, self.now + round(patience / FRAME_SECONDS)
        while self.last_heard is None or self.last_heard < start:
            if self.now >= until:
                return False
            await self.wait()
        return True

    async def wait_for_pause(self) -> None:
        """Wait until nothing has been heard for `PAUSE_SECONDS`."""
        while self.last_heard is not None and self.now - self.last_heard <= PAUSE_SECONDS / FRAME_SECONDS:
            await self.wait()

    async def listen(self, patience: float) -> bool:
        """Wait until the other side has spoken and stopped; returns False if it says nothing within `patience`
        seconds.
        """
        spoke = await self.wait_for_voice(patience)
        await self.wait_for_pause()
        return spoke
