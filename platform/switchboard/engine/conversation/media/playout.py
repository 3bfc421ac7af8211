"""Outgoing audio of a call: paced slightly ahead of the clock, with marks in their places, dropped at once on barge-in.

Held audio is not sent: the carrier plays what it has, at most `MAX_LEAD_SECONDS`, and the rest follows when it goes on.
Nothing is dropped and sent again, so nothing is lost or repeated, and marks stay true.

The clock decides how much the caller has heard: everything that was sent plays without a gap. A mark that comes back
can only show that playing ended sooner, so a mark that never comes back delays nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from switchboard.engine.conversation.call import Clock, MediaSocket
from switchboard.engine.conversation.media.recording import MAX_DRIFT, Channel, StereoMixer
from switchboard.plugin_sdk import Frame, MediaCodec

BYTES_PER_SECOND = 8000
LEAD_SECONDS = 0.3
MESSAGE_BYTES = 800
MAX_LEAD_SECONDS = LEAD_SECONDS + MESSAGE_BYTES / BYTES_PER_SECOND


class Playout:
    """Sender of one media socket. Counts bytes of 8 kHz G.711: one byte is an eighth of a millisecond.

    `on_sent` is called whenever audio was handed to the socket. `mixers` get both sides of the call.
    """

    def __init__(self, socket: MediaSocket, codec: MediaCodec, clock: Clock, on_sent: Callable[[], None]) -> None:
        self._socket = socket
        self._codec = codec
        self._clock = clock
        self._on_sent = on_sent
        self._items: deque[bytearray | str] = deque()
        self._urgent: deque[Frame] = deque()
        self._wake = asyncio.Event()
        self._started_at = socket.opened_at
        self._play_end = 0.0
        self._marks = 0
        self._held = False
        self._sent = 0
        self.queued = 0
        self.mixers: list[StereoMixer] = []

    def add(self, audio: bytes) -> None:
        """Play audio after everything that was added before."""
        if self._items and isinstance(self._items[-1], bytearray):
            self._items[-1] += audio
        else:
            self._items.append(bytearray(audio))
        self.queued += len(audio)
        self._wake.set()

    def add_mark(self) -> None:
        """Ask the carrier to report when everything that was added has been played."""
        self._marks += 1
        self._items.append(str(self._marks))
        self._wake.set()

    def handle_mark(self, mark: str) -> None:
        """Handle a mark that has come back."""
        if mark == str(self._marks) and not self._items:
            self._play_end = min(self._play_end, self._clock())

    def mix_caller_audio(self, audio: bytes, received_at: float) -> None:
        """Give incoming audio to the mixers."""
        for mixer in self.mixers:
            mixer.add_caller_audio(audio, self.position_at(received_at))

    def silence(self, channel: Channel, start: float, end: float) -> None:
        """Silence what a party said between two moments of the engine's clock in all mixers."""
        for mixer in self.mixers:
            mixer.silence(channel, self.hold_position(start), self.position_at(end))

    def hold_position(self, moment: float) -> int:
        """Convert the beginning of speech to a position before it: audio may lie earlier than it arrived."""
        return max(0, self.position_at(moment) - MAX_DRIFT)

    def hold(self) -> None:
        """Send nothing more until `resume` or `clear`."""
        self._held = True

    def resume(self) -> None:
        """Go on where the audio was held."""
        self._held = False
        self._wake.set()

    def clear(self) -> int:
        """Drop everything that has not been heard; return how many of all bytes ever added have been heard."""
        now = self._clock()
        heard = self.count_heard(now)
        self._held = False
        self._marks += 1  # the carrier returns the marks that it drops, which say nothing about later audio
        self._items.clear()
        self._urgent.append(self._codec.clear())
        self._wake.set()
        for mixer in self.mixers:
            mixer.cut_agent_audio(self.position_at(now))
        self._play_end = now
        self._sent = self.queued = heard
        return heard

    def count_heard(self, now: float) -> int:
        """Return how many of all bytes ever added have been heard."""
        return self._sent - round(max(0.0, self._play_end - now) * BYTES_PER_SECOND)

    def count_pending(self, now: float) -> int:
        """Return how many bytes are still to be heard."""
        return self.queued - self.count_heard(now)

    def is_playing(self, now: float) -> bool:
        """Return whether the caller hears something or is about to."""
        return bool(self._items) or self._play_end > now

    def position_at(self, moment: float) -> int:
        """Convert a moment of the engine's clock to a position in the recording."""
        return max(0, round((moment - self._started_at) * BYTES_PER_SECOND))

    def tick(self, now: float) -> None:
        """Wake the sender if audio has become due."""
        if self._items and self._play_end - now < LEAD_SECONDS:
            self._wake.set()

    async def run(self) -> None:
        """Send until canceled. Raises `ConnectionError` when the socket is closed."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while (message := self._next_message()) is not None:
                await self._socket.send(message)

    def _next_message(self) -> Frame | None:
        if self._urgent:
            return self._urgent.popleft()
        if self._held or not self._items:
            return None
        item = self._items[0]
        if isinstance(item, str):
            self._items.popleft()
            return self._codec.mark(item)
        now = self._clock()
        if self._play_end - now >= LEAD_SECONDS:
            return None
        audio = bytes(item[:MESSAGE_BYTES])
        del item[:MESSAGE_BYTES]
        if not item:
            self._items.popleft()
        start = max(self._play_end, now)
        self._play_end = start + len(audio) / BYTES_PER_SECOND
        for mixer in self.mixers:
            mixer.add_agent_audio(audio, self.position_at(start))
        self._sent += len(audio)
        self._on_sent()
        return self._codec.encode(audio)
