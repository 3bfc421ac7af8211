"""A simulated caller's side of an inbound call: announce it, follow the platform's reply, and hold the call to its end.

One of the callers speaks given lines, for `switchboard phone dial` and simulations.
"""

import io
import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import soxr
from switchboard.plugin_sdk import (
    CallEnded,
    CallProgress,
    IncomingCall,
    ProviderError,
    SimulatedCall,
    SpokenLine,
    encode_audio,
    find_client_identity,
)
from switchboard.plugin_sdk.telephony_events import CallOutcome

from switchboard_offline.loopback.callbacks import (
    ConnectReply,
    ForwardReply,
    NoticeSender,
    NoticeUndelivered,
    read_reply,
)
from switchboard_offline.loopback.clients import RingRequest, ring_client
from switchboard_offline.loopback.leg import LoopbackLeg, Party
from switchboard_offline.loopback.line import FarEnd, OtherPerson
from switchboard_offline.loopback.persons import Directory, Person, Subscriber, create_talker, synthesize_mulaw
from switchboard_offline.loopback.phone import FRAME_SECONDS

FORWARD_RING_SECONDS: Final = 30.0


class Caller:
    """One inbound call. `person` returns the behavior of the caller once connected. `refused` is the reason why the
    call was not answered.
    """

    def __init__(self, directory: Directory, person: Callable[[LoopbackLeg], Person]) -> None:
        self.person = person
        self._directory = directory
        self.refused: str | None = None
        self.answered = False
        self.hung_up_by: Party | None = None

    async def ring(self, leg: LoopbackLeg, post: NoticeSender, events_url: str, call: IncomingCall) -> CallEnded:
        """Announce the call, follow the platform's reply, and hold the call to its end."""
        try:
            answer = read_reply(await post.deliver(events_url, call))
        except (NoticeUndelivered, ValueError) as error:
            prefix = "" if isinstance(error, NoticeUndelivered) else "the platform's response was not understood: "
            self.refused = f"{prefix}{error}"
            return CallEnded(leg.call_id, "failed", error_message=self.refused)
        if isinstance(answer, ConnectReply):
            return await self._talk(leg, await leg.open_media(answer.media_url))
        if isinstance(answer, ForwardReply):
            subscriber = await self._find_subscriber(leg, post, answer)
            if subscriber is None:
                return CallEnded(leg.call_id, "canceled")
            if subscriber.outcome is None:
                return await self._talk(leg, OtherPerson(subscriber.person))
            self.refused = f"the number that the call was forwarded to does not answer: {subscriber.outcome}"
            return CallEnded(leg.call_id, subscriber.outcome, 0, subscriber.error_message, subscriber.error_code)
        self.refused = answer.reason
        outcome: CallOutcome = "busy" if answer.reason == "busy" else "failed"
        return CallEnded(leg.call_id, outcome, error_message="the call was rejected")

    async def _find_subscriber(self, leg: LoopbackLeg, post: NoticeSender, forward: ForwardReply) -> Subscriber | None:
        identity = find_client_identity(forward.to_number)
        if identity is None or not forward.clients_port:
            return self._directory.subscriber(forward.to_number)
        request = RingRequest(leg.call_id, identity, forward.caller_id, FORWARD_RING_SECONDS)
        return await leg.ring_unless_canceled(ring_client(post, forward.clients_port, request))

    async def _talk(self, leg: LoopbackLeg, far: FarEnd) -> CallEnded:
        self.answered = True
        self.hung_up_by = await leg.converse(self.person(leg), far)
        return CallEnded(leg.call_id, "completed", leg.seconds)


async def render_line(line: SpokenLine) -> bytes | str:
    """Return a line as mu-law audio, or the keys to press. Raises `ProviderError` for an unreadable WAV file."""
    if line.keys is not None:
        return line.keys
    if line.text is not None:
        return await synthesize_mulaw(line.text)
    assert line.wav is not None  # noqa: S101  SpokenLine validates it
    return _read_wav(line.wav)


def _read_wav(path: Path) -> bytes:
    try:
        with wave.open(io.BytesIO(path.read_bytes())) as recorded:
            if recorded.getsampwidth() != 2:
                raise ProviderError(f"{path} is not 16-bit PCM", retryable=False)
            samples = np.frombuffer(recorded.readframes(recorded.getnframes()), "<i2").reshape(
                -1, recorded.getnchannels()
            )
            rate = recorded.getframerate()
    except (OSError, EOFError, wave.Error) as error:
        raise ProviderError(f"{path} cannot be read as WAV: {error}", retryable=False) from error
    mono = samples.astype(np.float32).mean(axis=1)
    at_8k = soxr.resample(mono, rate, 8000) if rate != 8000 else mono
    return encode_audio(np.clip(np.rint(at_8k), -32_768, 32_767).astype(np.int16), "mulaw")


class ScriptedCaller(Caller):
    """A caller who speaks lines, and the result of the call."""

    def __init__(
        self, lines: Sequence[bytes | str], directory: Directory, progress: Callable[[CallProgress], None]
    ) -> None:
        super().__init__(directory, self._speak)
        self._lines = lines
        self._progress = progress
        self._first_line_ended: int | None = None
        self._first_reply: int | None = None

    def _speak(self, leg: LoopbackLeg) -> Person:
        phone = leg.phone
        self._progress(CallProgress("connected"))

        def tell(progress: CallProgress) -> None:
            if progress.line == 1:
                self._first_line_ended = phone.last_said
            elif (
                progress.stage == "agent_speaking" and self._first_line_ended is not None and self._first_reply is None
            ):
                self._first_reply = phone.last_heard
            self._progress(progress)

        return create_talker(self._lines, tell)

    def result(self, leg: LoopbackLeg) -> SimulatedCall:
        """Return the result of the call, once the leg is over."""
        phone, reply_ms = leg.phone, None
        if self._first_line_ended is not None and self._first_reply is not None:
            reply_ms = round((self._first_reply - self._first_line_ended) * FRAME_SECONDS * 1000)
        refused_reason = self.refused or leg.fault or "the call ended before it was answered"
        return SimulatedCall(
            carrier_call_id=leg.call_id,
            answered=self.answered,
            duration_seconds=round(phone.now * FRAME_SECONDS, 2),
            first_reply_ms=reply_ms,
            heard_seconds=round(phone.audible_frames * FRAME_SECONDS, 2),
            hung_up_by=self.hung_up_by,
            refused_reason=None if self.answered else refused_reason,
            said=bytes(phone.said),
            heard=bytes(phone.heard),
        )
