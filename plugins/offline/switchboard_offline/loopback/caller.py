"""Somebody who rings us with something to say."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Self

from switchboard.plugins import CallProgress, SpokenLine

from switchboard_offline.loopback.line import Line
from switchboard_offline.loopback.people import PATIENCE_SECONDS, PAUSE_SECONDS, from_wav, spoken

GREETING_SECONDS = 4.0
"""How long the caller waits for the agent to speak first."""


class Caller:
    """Says each line when the agent has stopped talking, hears the last answer out, and hangs up."""

    def __init__(self, lines: Sequence[tuple[str, bytes]], progress: Callable[[CallProgress], None]) -> None:
        self._lines = lines
        self._progress = progress
        self._began: float | None = None
        self._ended: float | None = None
        self.first_reply_ms: int | None = None

    @classmethod
    async def prepare(cls, lines: Sequence[SpokenLine], progress: Callable[[CallProgress], None]) -> Self:
        """Speak all lines beforehand. Raises `ProviderError` for a WAV file that cannot be read."""
        ready = []
        for line in lines:
            audio = await asyncio.to_thread(from_wav, line.wav) if line.wav is not None else await asyncio.to_thread(spoken, line.text or "")
            ready.append((line.text or str(line.wav), audio))
        return cls(ready, progress)

    @property
    def duration_seconds(self) -> float:
        """How long the caller was connected."""
        if self._began is None:
            return 0.0
        return (self._ended or time.monotonic()) - self._began

    async def behave(self, line: Line) -> None:
        """The call, from the caller's side."""
        self._began = time.monotonic()
        self._progress(CallProgress("connected"))
        try:
            if await line.voiced_since(0.0, at_most=GREETING_SECONDS) is not None:
                await line.quiet(PAUSE_SECONDS, at_most=PATIENCE_SECONDS)
            for text, audio in self._lines:
                await self._say(line, text, audio)
        finally:
            self._ended = time.monotonic()

    async def _say(self, line: Line, text: str, audio: bytes) -> None:
        if line.over.is_set():
            return
        self._progress(CallProgress("speaking", text))
        await line.say(audio)
        spoken_at = time.monotonic()
        self._progress(CallProgress("listening"))
        answered_at = await line.voiced_since(spoken_at, at_most=PATIENCE_SECONDS)
        if answered_at is not None and self.first_reply_ms is None:
            self.first_reply_ms = round((answered_at - spoken_at) * 1000)
        await line.quiet(PAUSE_SECONDS, at_most=PATIENCE_SECONDS)
