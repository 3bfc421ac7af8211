"""What goes out to the caller: paced a little ahead of the clock, with marks in their places, dropped at once when the caller breaks in.

How much has been heard is known by the clock: all that was sent plays without a gap. A mark that comes back can only say that it is over
sooner; one that never comes back holds nothing up.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from switchboard.engine.conversation.call import MediaSocket
from switchboard.engine.conversation.media.stereo_mixer import StereoMixer
from switchboard.plugin_sdk import Frame, MediaCodec

BYTES_PER_SECOND = 8000
LEAD_SECONDS = 0.3
MESSAGE_BYTES = 800


class Playout:
    """The outgoing side of one media socket. Counts in bytes of 8 kHz G.711: one is an eighth of a millisecond."""

    def __init__(self, socket: MediaSocket, codec: MediaCodec, clock: Callable[[], float]) -> None:
        self._socket = socket
        self._codec = codec
        self._clock = clock
        self._items: deque[bytearray | str] = deque()
        self._urgent: deque[Frame] = deque()
        self._wake = asyncio.Event()
        self._began = socket.opened
        self._play_end = 0.0
        self._marks = 0
        self._sent = 0
        self.queued = 0
        self.timelines: list[StereoMixer] = []
        self.on_sent: Callable[[int], None] = lambda _offset: None

    def add(self, audio: bytes) -> None:
        """Play this after what was added before."""
        if self._items and isinstance(self._items[-1], bytearray):
            self._items[-1] += audio
        else:
            self._items.append(bytearray(audio))
        self.queued += len(audio)
        self._wake.set()

    def mark(self) -> None:
        """Ask to be told when all that was added has been played."""
        self._marks += 1
        self._items.append(str(self._marks))
        self._wake.set()

    def reached(self, mark: str) -> None:
        """A mark has come back."""
        if mark == str(self._marks) and not self._items:
            self._play_end = min(self._play_end, self._clock())

    def clear(self) -> int:
        """Drop what has not been heard; answers how many bytes have been, of all that were ever added."""
        now = self._clock()
        heard = self.heard(now)
        self._items.clear()
        self._urgent.append(self._codec.clear())
        self._wake.set()
        for timeline in self.timelines:
            timeline.cut(self.position(now))
        self._play_end = now
        self._sent = self.queued = heard
        return heard

    def heard(self, now: float) -> int:
        """How many bytes of all that were ever added have been heard."""
        return self._sent - round(max(0.0, self._play_end - now) * BYTES_PER_SECOND)

    def ahead(self, now: float) -> int:
        """How many bytes are still to be heard."""
        return self.queued - self.heard(now)

    def is_playing(self, now: float) -> bool:
        """Whether the caller hears something, or is about to."""
        return bool(self._items) or self._play_end > now

    def position(self, moment: float) -> int:
        """A moment on the recording's time line."""
        return max(0, round((moment - self._began) * BYTES_PER_SECOND))

    def tick(self, now: float) -> None:
        """Wake the sender when something has become due."""
        if self._items and self._play_end - now < LEAD_SECONDS:
            self._wake.set()

    async def run(self) -> None:
        """Send, until cancelled. Raises `ConnectionError` when the socket is gone."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while (message := self._next()) is not None:
                await self._socket.send(message)

    def _next(self) -> Frame | None:
        if self._urgent:
            return self._urgent.popleft()
        if not self._items:
            return None
        item = self._items[0]
        if isinstance(item, str):
            self._items.popleft()
            return self._codec.mark(item)
        now = self._clock()
        if self._play_end - now >= LEAD_SECONDS:
            return None
        return self._codec.encode(self._take(item, now))

    def _take(self, item: bytearray, now: float) -> bytes:
        audio = bytes(item[:MESSAGE_BYTES])
        del item[:MESSAGE_BYTES]
        if not item:
            self._items.popleft()
        start = max(self._play_end, now)
        self._play_end = start + len(audio) / BYTES_PER_SECOND
        for timeline in self.timelines:
            timeline.agent(audio, self.position(start))
        self._sent += len(audio)
        self.on_sent(self._sent)
        return audio
