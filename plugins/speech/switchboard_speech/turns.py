"""Streams of vendors that judge turns themselves: their messages repeat the words of the turn so far."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import aiohttp
from switchboard.plugin_sdk import PHONE_MULAW, ProviderError, Transcript, TurnReport, TurnState

from switchboard_speech.connection import VendorConnection
from switchboard_speech.streams import SILENCE, ChunkedStream

SILENCE_SECONDS: Final = 0.08
PAUSE: Final = SILENCE * round(SILENCE_SECONDS * PHONE_MULAW.bytes_per_second)
PAUSE_SECONDS: Final = 0.3
"""Audio after the vendor's judgment that is silence for sure: the engine finalizes after 0.2 seconds without voice."""


class RepeatedTurn:
    """A vendor's turn. `report` is its state, None before the first turn."""

    def __init__(self) -> None:
        self.report: TurnReport | None = None
        self._index = -1
        self._transcript = ""
        self._words: Sequence[str] = ()
        self._taken = 0

    @property
    def has_paused(self) -> bool:
        """Return whether the vendor takes the turn for complete, or for probably complete."""
        return self.report is not None and self.report.state != "ongoing"

    @property
    def has_ended(self) -> bool:
        """Return whether the vendor takes the turn for complete."""
        return self.report is not None and self.report.state == "end"

    def update(
        self, index: int, transcript: str, words: Sequence[str], state: TurnState | None, probability: float
    ) -> bool:
        """Take a message about a turn; without a `state` only new words change it. Return whether anything changed."""
        if index == self._index and self.has_ended:
            return False  # The same words once more, formatted.
        if index != self._index:
            self._index, self._taken, self._words = index, 0, ()
        has_words = list(words) != list(self._words)
        self._transcript, self._words = transcript, words
        if state is None and has_words:
            state = "ongoing"
        if state is None:
            return False
        has_changed = self.report is None or self.report.state != state
        self.report = TurnReport(state, min(1.0, max(0.0, probability)))
        return has_words or has_changed

    def get_rest(self) -> str:
        """Return the words that were not taken."""
        return " ".join(self._words[self._taken :]) if self._taken else self._transcript

    def take_rest(self) -> str:
        """Return the words that were not taken, and take them."""
        rest, self._taken = self.get_rest(), len(self._words)
        return rest


class TurnStream(ChunkedStream):
    """Stream whose turns the vendor judges.

    A vendor judges the audio that it gets, and the engine sends none in a pause: silence is sent until the turn ends,
    for at most `pause_seconds`. A subclass sets `heard_until`, the seconds of audio that the vendor has judged.
    """

    def __init__(
        self, connection: VendorConnection, socket: aiohttp.ClientWebSocketResponse, pause_seconds: float
    ) -> None:
        super().__init__(connection, socket)
        self.turn = RepeatedTurn()
        self.heard_until = 0.0
        self.finalized_at = 0.0
        self._pause_seconds = pause_seconds
        self._silence: asyncio.Task[None] | None = None

    async def send(self, audio: bytes) -> None:
        self._stop_silence()
        await super().send(audio)

    async def await_judgment(self, seconds: float) -> None:
        """Let the vendor judge the pause; the utterance is final after this many seconds without its judgment."""
        await self.send_rest()
        self.finalized_at = self.sent_seconds
        self.expect_end(seconds)
        if self.is_judged():
            self.confirm_end()
        if self.is_finalizing or not self.turn.has_ended:
            self._stop_silence()
            self._silence = asyncio.create_task(self._send_silence())

    def is_judged(self) -> bool:
        """Return whether the vendor has taken the turn for complete after the last word."""
        return self.turn.has_paused and self.heard_until >= self.finalized_at - PAUSE_SECONDS

    def handle_turn(self) -> None:
        """Report a turn that has changed."""
        if self.is_finalizing and self.is_judged():
            self.confirm_end()
        elif self.turn.has_ended:
            self.add_transcript(Transcript(self.turn.take_rest(), is_final=True, turn=self.turn.report))
        else:
            self.add_transcript(Transcript(self.turn.get_rest(), is_final=False, turn=self.turn.report))
        if self.turn.has_ended and not self.is_finalizing:
            self._stop_silence()

    def confirm_end(self) -> None:
        """Confirm `finalize()` with the words so far."""
        self.add_transcript(Transcript(self.turn.take_rest(), is_final=True, finalized=True, turn=self.turn.report))

    async def handle_pause_over(self) -> None:
        """Handle a pause that the vendor has not taken for the end of the turn."""

    async def close(self) -> None:
        self._stop_silence()
        await super().close()

    async def _send_silence(self) -> None:
        with suppress(ProviderError):  # The reader reports the lost stream.
            for _ in range(round(self._pause_seconds / SILENCE_SECONDS)):
                await asyncio.sleep(SILENCE_SECONDS)
                await super().send(PAUSE)
            await self.handle_pause_over()

    def _stop_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
