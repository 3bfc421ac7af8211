"""One call of a gateway: a SIP dialog with its audio, connected to the platform's media socket or to another dialog."""

import asyncio
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import structlog

from switchboard_telephony_sip.callbacks import EndedNotice, LineQuality
from switchboard_telephony_sip.gateway.dialing import AnsweredLeg, DialFailed
from switchboard_telephony_sip.gateway.directory import TrunkLine
from switchboard_telephony_sip.gateway.media_link import MediaLink, MediaSocketFailed
from switchboard_telephony_sip.gateway.notices import NoticeQueue
from switchboard_telephony_sip.gateway.outcomes import CANCELED, COMPLETED, CallEnd
from switchboard_telephony_sip.gateway.tones import RINGBACK, RINGBACK_SECONDS
from switchboard_telephony_sip.media import MediaSession, NoCommonMedia
from switchboard_telephony_sip.signaling import Dialog, DialogEvents, IncomingInvite, OfferRefused

logger = structlog.get_logger()
SILENT_SECONDS: Final = 120.0
"""A far end that sends no audio for so long is gone. Some send none while they hold a call."""
LOOK_SECONDS: Final = 5.0
HEARD_SECONDS: Final = 0.2
"""Time in which the last audio passes the far end's jitter buffer, which a BYE empties. Those of telephones hold 40 to
120 ms."""
INFO_DIGITS: Final = ("application/dtmf-relay", "application/dtmf")


class LegEvents(DialogEvents):
    """Reactions of one dialog to its far end. `over` is set when the far end has hung up or is gone."""

    def __init__(self, media: MediaSession) -> None:
        self.over = asyncio.Event()
        self._media = media

    async def on_offer(self, sdp: str) -> str:
        try:
            return self._media.answer(sdp)
        except NoCommonMedia as error:
            raise OfferRefused(str(error)) from error

    async def on_bye(self) -> None:
        self.over.set()

    async def on_expired(self) -> None:
        self.over.set()

    async def on_info(self, content_type: str, body: str) -> int:
        if content_type.partition(";")[0].strip().lower() not in INFO_DIGITS:
            return 415
        self._media.take_info_digit(body)
        return 200


@dataclass(slots=True)
class _Leg:
    dialog: Dialog
    media: MediaSession
    events: LegEvents


def _attach(dialog: Dialog, media: MediaSession) -> _Leg:
    events = LegEvents(media)
    dialog.events = events
    return _Leg(dialog, media, events)


class GatewayCall:
    """A call. Its owner runs `converse` once the dialog is answered, and `finish` in any case."""

    def __init__(self, place: str, account_key: str, notices: NoticeQueue) -> None:
        self.call_id = f"{uuid4().hex}@{place}"
        self.account_key = account_key
        self.notices = notices
        self.hung_up = asyncio.Event()
        """Set to end the call, in any state."""
        self.line: TrunkLine | None = None
        self._leg: _Leg | None = None
        self._changed = asyncio.Event()
        self._target: asyncio.Future[AnsweredLeg] | None = None
        self._answered_at: float | None = None

    @property
    def seconds(self) -> int:
        """Duration since the answer, in whole seconds."""
        if self._answered_at is None:
            return 0
        return round(asyncio.get_running_loop().time() - self._answered_at)

    def attach(self, line: TrunkLine, dialog: Dialog, media: MediaSession) -> None:
        """Take the answered dialog and its audio."""
        self.line = line
        self._leg = _attach(dialog, media)
        self._answered_at = asyncio.get_running_loop().time()

    @property
    def dialog(self) -> Dialog | None:
        return None if self._leg is None else self._leg.dialog

    @property
    def is_connected(self) -> bool:
        """Return whether the call is answered, and connected to the platform."""
        return self._leg is not None and self._target is None and not self.hung_up.is_set()

    def hang_up(self) -> None:
        """End the call, in any state."""
        self.hung_up.set()
        self._changed.set()

    async def press(self, digits: str) -> None:
        """Press keys. Raises `ValueError` for others."""
        if self._leg is not None:
            await self._leg.media.send_digits(digits)

    def connect_to(self, target: "asyncio.Future[AnsweredLeg]") -> None:
        """Leave the platform's socket for a call that rings, or was answered."""
        self._target = target
        self._changed.set()

    async def take_over(self, invite: IncomingInvite) -> None:
        """Continue in the dialog of an INVITE that replaces this call's (RFC 3891)."""
        leg = self._leg
        if leg is None or invite.sdp is None:
            invite.reject(481)
            return
        try:
            answer = leg.media.answer(invite.sdp)
        except NoCommonMedia:
            invite.reject(488)
            return
        self._leg = _attach(await invite.answer(answer), leg.media)
        self._changed.set()

    # the conversation

    async def converse(self, link: MediaLink, max_seconds: float) -> CallEnd:
        """Connect the call to the platform until one side ends it, then hang up.

        A call that was moved to another number ends when either party hangs up.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + max_seconds
        running = asyncio.create_task(link.run())
        try:
            end = await self._wait_for_end(running, until)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await link.close(stopped=True)
        if self._target is not None and end is None:
            end = await self._bridge(self._target, until)
        return end or COMPLETED

    async def bridge(self, target: "asyncio.Future[AnsweredLeg]", max_seconds: float) -> CallEnd:
        """Connect the answered call to a target without the platform, until either party hangs up."""
        self._target = target
        return await self._bridge(target, asyncio.get_running_loop().time() + max_seconds)

    async def _wait_for_end(self, running: "asyncio.Future[None]", until: float) -> CallEnd | None:
        """Wait until the far end or the platform ends the call, or it is moved. Return its end, None if it is moved."""
        loop = asyncio.get_running_loop()
        while True:
            leg = self._leg
            assert leg is not None  # noqa: S101  the call is answered
            seconds = min(LOOK_SECONDS, max(0.0, until - loop.time()))
            await _wait_for_any(running, leg.events.over, self._changed, seconds=seconds)
            if self.hung_up.is_set() or loop.time() >= until:
                return COMPLETED
            if leg is not self._leg:  # another dialog took the call over
                self._changed.clear()
                continue
            if leg.events.over.is_set():
                return COMPLETED
            if self._changed.is_set():
                self._changed.clear()
                return None
            if running.done():
                return _read_media_end(running)
            if leg.media.is_silent_for > SILENT_SECONDS:
                return CallEnd("failed", f"the far end sent no audio for {SILENT_SECONDS:.0f} seconds", "media")

    async def _bridge(self, target: "asyncio.Future[AnsweredLeg]", until: float) -> CallEnd:
        """Connect the caller to the target, with a ringing tone until it answers."""
        assert self._leg is not None  # noqa: S101  the call is answered
        while not target.done():
            self._leg.media.play(RINGBACK)
            await _wait_for_any(target, self._leg.events.over, self._changed, seconds=RINGBACK_SECONDS)
            if self._leg.events.over.is_set() or self.hung_up.is_set():
                target.cancel()
                await asyncio.gather(target, return_exceptions=True)
                return COMPLETED
        self._leg.media.clear()
        try:
            answered = target.result()
        except (DialFailed, asyncio.CancelledError):
            return COMPLETED  # the platform has handed the call over
        other = _attach(answered.dialog, answered.media)
        self._leg.media.join(other.media)
        try:
            return await self._wait_for_end(asyncio.create_task(_wait_for(other.events.over)), until) or COMPLETED
        finally:
            other.events.over.set()
            await other.dialog.bye()
            await other.media.close()

    async def finish(self, end: CallEnd) -> None:
        """Report the end to the platform, hang up, and release the audio."""
        leg, quality = self._leg, None
        if leg is not None and (measured := leg.media.quality).packets_received:
            quality = LineQuality(measured.loss_share, measured.jitter_ms, measured.mos)
        if leg is None and self.hung_up.is_set():
            end = CANCELED
        self.notices.post(EndedNotice(self.call_id, end.outcome, self.seconds, end.message, end.code, quality))
        if leg is not None:
            if not leg.events.over.is_set():
                await asyncio.sleep(HEARD_SECONDS)
            await leg.dialog.bye()
            await leg.media.close()
        await self.notices.close()


def _read_media_end(running: "asyncio.Future[None]") -> CallEnd:
    error = running.exception()
    if isinstance(error, MediaSocketFailed):
        return CallEnd("failed", str(error), "media")
    if error is not None:
        raise error
    return COMPLETED


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()


async def _wait_for_any(
    future: "asyncio.Future[None] | asyncio.Future[AnsweredLeg]", *events: asyncio.Event, seconds: float
) -> None:
    """Wait until the future is done, or one of the events is set, or the time is over."""
    waiting = [asyncio.create_task(_wait_for(event)) for event in events]
    try:
        await asyncio.wait({future, *waiting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
