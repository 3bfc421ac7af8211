"""A simulated person rings one of our numbers."""

import io
import wave
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import soxr
from switchboard.plugins import CallProgress, ProviderError, SimulatedCall, SpokenLine

from switchboard_offline.loopback.callbacks import Calling, Connect, Ended, Forward, Post, Undelivered, read_answer
from switchboard_offline.loopback.g711 import encode
from switchboard_offline.loopback.leg import Leg, Party
from switchboard_offline.loopback.line import FarEnd, OtherPerson
from switchboard_offline.loopback.persons import Directory, Person, talker, voice
from switchboard_offline.loopback.phone import FRAME_SECONDS, Phone


async def render(line: SpokenLine) -> bytes:
    """A line as mu-law audio. Raises `ProviderError` for a WAV that cannot be read."""
    if line.text is not None:
        return await voice(line.text)
    assert line.wav is not None  # noqa: S101  SpokenLine sees to it
    return _read_wav(line.wav)


def _read_wav(path: Path) -> bytes:
    try:
        with wave.open(io.BytesIO(path.read_bytes())) as recorded:
            if recorded.getsampwidth() != 2:
                raise ProviderError(f"{path} is not 16-bit PCM", retryable=False)
            samples = np.frombuffer(recorded.readframes(recorded.getnframes()), "<i2").reshape(-1, recorded.getnchannels())
            rate = recorded.getframerate()
    except (OSError, EOFError, wave.Error) as error:
        raise ProviderError(f"{path} cannot be read as WAV: {error}", retryable=False) from error
    mono = samples.astype(np.float32).mean(axis=1)
    at_8k = soxr.resample(mono, rate, 8000) if rate != 8000 else mono
    return encode(np.clip(np.rint(at_8k), -32_768, 32_767).astype("<i2").tobytes())


class Simulation:
    """One such call, in the hands of its leg."""

    def __init__(self, lines: Sequence[bytes], directory: Directory, progress: Callable[[CallProgress], None]) -> None:
        self._lines = lines
        self._directory = directory
        self._progress = progress
        self._refused: str | None = None
        self._answered = False
        self._hung_up_by: Party | None = None
        self._first_line_ended: int | None = None
        self._first_reply: int | None = None

    async def ring(self, leg: Leg, post: Post, events_url: str, call: Calling) -> Ended:
        """Announce the call, do what the platform says, and hold it to its end."""
        self._progress(CallProgress("ringing"))
        try:
            answer = read_answer(await post.deliver(events_url, call))
        except (Undelivered, ValueError) as error:
            self._refused = str(error) if isinstance(error, Undelivered) else f"the platform's answer was not understood: {error}"
            return Ended(leg.call_id, "failed", error_message=self._refused)
        if isinstance(answer, Connect):
            return await self._talk(leg, await leg.open_media(answer.media_url))
        if isinstance(answer, Forward):
            subscriber = self._directory.subscriber(answer.to_number)
            if subscriber.outcome is None:
                return await self._talk(leg, OtherPerson(subscriber.person))
            self._refused = f"the number that the call was forwarded to does not answer: {subscriber.outcome}"
            return Ended(leg.call_id, subscriber.outcome, 0, subscriber.error_message, subscriber.error_code)
        self._refused = answer.reason
        return Ended(leg.call_id, "busy" if answer.reason == "busy" else "failed", error_message="the call was rejected")

    async def _talk(self, leg: Leg, far: FarEnd) -> Ended:
        self._answered = True
        self._progress(CallProgress("connected"))
        self._hung_up_by = await leg.converse(self._person(leg.phone), far)
        return Ended(leg.call_id, "completed", leg.seconds)

    def _person(self, phone: Phone) -> Person:
        def tell(progress: CallProgress) -> None:
            if progress.line == 1:
                self._first_line_ended = phone.last_said
            elif progress.stage == "agent_speaking" and self._first_line_ended is not None and self._first_reply is None:
                self._first_reply = phone.last_heard
            self._progress(progress)

        return talker(self._lines, tell)

    def result(self, leg: Leg) -> SimulatedCall:
        """How it went, once the leg is over."""
        phone = leg.phone
        reply_ms: int | None = None
        if self._first_line_ended is not None and self._first_reply is not None:
            reply_ms = round((self._first_reply - self._first_line_ended) * FRAME_SECONDS * 1000)
        return SimulatedCall(
            carrier_call_id=leg.call_id,
            answered=self._answered,
            duration_seconds=round(phone.now * FRAME_SECONDS, 2),
            first_reply_ms=reply_ms,
            heard_seconds=round(phone.voiced_frames * FRAME_SECONDS, 2),
            hung_up_by=self._hung_up_by,
            refused_reason=None if self._answered else self._refused or leg.fault or "the call ended before it was answered",
            said=bytes(phone.said),
            heard=bytes(phone.heard),
        )
