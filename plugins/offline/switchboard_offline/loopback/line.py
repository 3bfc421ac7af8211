"""A phone line: the audio between a person and whoever is at the other end, in real time, 20 ms at a time.

What the other end sent is played against an absolute clock, as a carrier plays it: marks are told when they are reached, or at once on
`clear`. Everything that was really heard is kept, in both directions.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

import numpy as np

from switchboard_offline.loopback.g711 import decode

FRAME_SECONDS = 0.02
FRAME_BYTES = 160
SILENCE = b"\xff" * FRAME_BYTES
VOICED_LEVEL = 600


class Line:
    """One end of a call. `send_audio`, `send_digit` and `send_mark` carry to the other end what the person does and what was reached."""

    def __init__(self) -> None:
        self.send_audio: Callable[[bytes], Awaitable[None]] | None = None
        self.send_digit: Callable[[str], Awaitable[None]] | None = None
        self.send_mark: Callable[[str], Awaitable[None]] | None = None
        self.heard = bytearray()
        self.spoken = bytearray()
        self.over = asyncio.Event()
        self.voiced_at: float | None = None
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._marks: deque[tuple[int, str]] = deque()
        self._received = self._played = 0
        self._spoke = asyncio.Event()
        self._stepped = asyncio.Condition()

    # --- the other end ---

    def play(self, audio: bytes) -> None:
        """Audio from the other end, to be heard after what came before."""
        self._incoming += audio
        self._received += len(audio)

    def mark(self, name: str) -> None:
        """To be told when all that came so far has been heard."""
        self._marks.append((self._received, name))

    async def clear(self) -> None:
        """Drop what has not been heard."""
        self._incoming.clear()
        self._received = self._played
        await self._reach(all_of_them=True)

    # --- the person ---

    async def say(self, audio: bytes) -> None:
        """Speak mu-law audio; returns when it has been spoken, or the line is dead."""
        self._outgoing += audio
        self._spoke.clear()
        await self._first(self._spoke)

    async def press(self, digit: str) -> None:
        """Press a key."""
        if self.send_digit is not None:
            await self.send_digit(digit)

    async def quiet(self, seconds: float, *, at_most: float) -> bool:
        """Wait until the other end has spoken and then been silent for so long; False when that took too long or the line is dead."""
        begin = time.monotonic()
        while not self.over.is_set() and time.monotonic() - begin < at_most:
            if self.voiced_at is not None and time.monotonic() - self.voiced_at >= seconds and not self._incoming:
                return True
            await self._step()
        return False

    async def voiced_since(self, moment: float, *, at_most: float) -> float | None:
        """When the other end was first heard after a moment; None when that took too long or the line is dead."""
        begin = time.monotonic()
        while not self.over.is_set() and time.monotonic() - begin < at_most:
            if self.voiced_at is not None and self.voiced_at > moment:
                return self.voiced_at
            await self._step()
        return None

    def hang_up(self) -> None:
        """The line is dead."""
        self.over.set()

    async def run(self) -> None:
        """Carry audio until the line is dead."""
        due = time.monotonic()
        while not self.over.is_set():
            due = max(due + FRAME_SECONDS, time.monotonic() - FRAME_SECONDS)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self._carry()
        async with self._stepped:
            self._stepped.notify_all()

    async def _carry(self) -> None:
        frame = bytes(self._outgoing[:FRAME_BYTES]).ljust(FRAME_BYTES, b"\xff")
        del self._outgoing[:FRAME_BYTES]
        self.spoken += frame
        if self.send_audio is not None:
            await self.send_audio(frame)
        if not self._outgoing:
            self._spoke.set()
        heard = bytes(self._incoming[:FRAME_BYTES])
        del self._incoming[:FRAME_BYTES]
        self._played += len(heard)
        heard = heard.ljust(FRAME_BYTES, b"\xff")
        self.heard += heard
        if np.abs(decode(heard)).max() > VOICED_LEVEL:
            self.voiced_at = time.monotonic()
        await self._reach()
        async with self._stepped:
            self._stepped.notify_all()

    async def _reach(self, *, all_of_them: bool = False) -> None:
        while self._marks and (all_of_them or self._marks[0][0] <= self._played):
            _, name = self._marks.popleft()
            if self.send_mark is not None:
                await self.send_mark(name)

    async def _step(self) -> None:
        async with self._stepped:
            await self._stepped.wait()

    async def _first(self, event: asyncio.Event) -> None:
        waits = [asyncio.create_task(event.wait()), asyncio.create_task(self.over.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
