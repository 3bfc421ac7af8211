"""One timer of 20 ms for the audio of all calls of a process."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from switchboard_telephony_sip.media.frames import FRAME_SECONDS

MOST_MISSED_TICKS: Final = 10
"""Ticks that are made up for after the process was held up; longer gaps are left out."""

Tick = Callable[[float], None]


class MediaPacer:
    """Calls each participant every 20 ms with the time that the tick was due, in seconds of `time.monotonic`.

    Each call runs in a callback of its own of the event loop, so that the failure of one stops no other. `on_lateness`
    gets the seconds by which each tick began late.
    """

    def __init__(self, on_lateness: Callable[[float], None] | None = None) -> None:
        self._on_lateness = on_lateness
        self._participants: dict[object, Tick] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def add(self, participant: object, tick: Tick) -> None:
        self._participants[participant] = tick
        if self._timer is None:
            self._due = time.monotonic()
            self._schedule()

    def remove(self, participant: object) -> None:
        self._participants.pop(participant, None)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, self._due + FRAME_SECONDS - time.monotonic()), self._run)

    def _run(self) -> None:
        if not self._participants:
            self._timer = None
            return
        now = time.monotonic()
        behind = int((now - self._due) / FRAME_SECONDS)
        if behind > MOST_MISSED_TICKS:
            self._due += (behind - 1) * FRAME_SECONDS
        self._due += FRAME_SECONDS
        if self._on_lateness is not None:
            self._on_lateness(now - self._due)
        loop = asyncio.get_running_loop()
        for tick in self._participants.values():
            loop.call_soon(tick, self._due)
        self._schedule()
