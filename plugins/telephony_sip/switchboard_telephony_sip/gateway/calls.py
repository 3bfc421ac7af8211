"""One call of a gateway: a SIP dialog with its audio, connected to the platform's media socket or to another dialog."""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final
from uuid import uuid4

from aiosipua.headers import parse_uri
from switchboard.plugin_sdk import CallEnded, CallQuality

from switchboard_telephony_sip.gateway.dialing import FIRST_RESPONSE_SECONDS, CallInviter, DialFailed
from switchboard_telephony_sip.gateway.legs import DECLINED, Leg, adopt_answer, give_up, wait_for_any
from switchboard_telephony_sip.gateway.media_link import MediaLink
from switchboard_telephony_sip.gateway.notices import NoticeQueue
from switchboard_telephony_sip.gateway.outcomes import CANCELED, COMPLETED, CallEnd
from switchboard_telephony_sip.media.frames import SAMPLE_RATE
from switchboard_telephony_sip.media.session_description import NoCommonMedia
from switchboard_telephony_sip.media.tones import make_sines
from switchboard_telephony_sip.signaling.admission import TrunkBusy
from switchboard_telephony_sip.signaling.dialogs import Dialog
from switchboard_telephony_sip.signaling.incoming import IncomingInvite
from switchboard_telephony_sip.signaling.outgoing import CallRedirected, CallRefused, OutgoingInvite
from switchboard_telephony_sip.signaling.peers import PeerUnreachable, read_peer

SILENT_SECONDS: Final = 120.0
"""A far end that sends no audio for so long is gone. Some send none while they hold a call."""
LOOK_SECONDS: Final = 5.0
HEARD_SECONDS: Final = 0.2
"""Time in which the last audio passes the far end's jitter buffer, which a BYE empties. Those of telephones hold 40 to
120 ms."""
RINGBACK_SECONDS: Final = 5.0
RINGBACK: Final = make_sines((425,), 4000, SAMPLE_RATE) + b"\xff" * (4 * SAMPLE_RATE)
"""Mu-law: one second of 425 Hz and four of silence (ITU-T E.180)."""


class GatewayCall:
    """A call. Its owner runs `converse` once the dialog is answered, and `finish` in any case."""

    def __init__(self, place: str, account_key: str, notices: NoticeQueue) -> None:
        self.call_id = f"{uuid4().hex}@{place}"
        self.account_key = account_key
        self.notices = notices
        self.hung_up = asyncio.Event()
        """Set to end the call, in any state."""
        self.leg: Leg | None = None
        self._changed = asyncio.Event()
        self._target: asyncio.Future[Leg] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._answered_at: float | None = None

    def attach(self, leg: Leg) -> None:
        """Take the answered leg."""
        self.leg = leg
        self._answered_at = asyncio.get_running_loop().time()

    @property
    def is_connected(self) -> bool:
        """Return whether the call is answered, connected to the platform, and not over."""
        is_live = self.leg is not None and not self.leg.events.over.is_set() and not self.hung_up.is_set()
        return is_live and self._target is None

    def hang_up(self) -> None:
        """End the call, in any state."""
        self.hung_up.set()
        self._changed.set()

    async def press(self, digits: str) -> None:
        """Press keys. Raises `ValueError` for others."""
        if self.leg is not None:
            await self.leg.media.press(digits)

    def connect_to(self, target: "asyncio.Future[Leg]") -> None:
        """Leave the platform's socket for a call that rings, or was answered, which then belongs to this one."""
        self._target = target
        self._changed.set()

    async def take_over(self, invite: IncomingInvite) -> None:
        """Continue in the dialog of an INVITE that replaces this call's (RFC 3891)."""
        if self.leg is None or invite.sdp is None:
            invite.reject(481)
            return
        try:
            answer = self.leg.media.answer(invite.sdp)
        except NoCommonMedia:
            invite.reject(488)
            return
        self._continue_in(await invite.answer(answer))

    async def follow_referral(self, agent: CallInviter, target: str, replaces: str) -> int:
        """Continue in another dialog of the call's trunk, as the far end's REFER asks (RFC 5589, section 7).

        `Require` keeps a trunk that ignores Replaces from dialing a number instead. Returns the SIP status.
        """
        leg, uri = self.leg, parse_uri(target)
        if leg is None or not leg.line.has_host(uri.host):
            return DECLINED
        invite = OutgoingInvite(
            target,
            leg.line.peers[0] if uri.port is None else read_peer(uri, leg.line.trunk.transport),
            leg.dialog.state.local.partition(";tag=")[0],
            f"<{target}>",
            leg.media.create_offer(),
            (("Replaces", replaces), ("Require", "replaces")),
            leg.line.credentials,
            first_response_seconds=FIRST_RESPONSE_SECONDS,
            contact_user=leg.line.trunk.username,
        )
        try:
            dialog = await agent.invite(invite)
            await adopt_answer(dialog, leg.media)
        except CallRefused as error:
            return error.status
        except (CallRedirected, PeerUnreachable, TrunkBusy):
            return 480
        except NoCommonMedia:
            return 488
        self._continue_in(dialog)
        return 200

    def _continue_in(self, dialog: Dialog) -> None:
        """Continue in another dialog, to which the audio goes already."""
        if self.leg is not None:
            before = self.leg
            self.leg = Leg.attach(before.line, dialog, before.media)
            self.leg.events.follow_referral = before.events.follow_referral
            self._changed.set()

    # the conversation

    async def converse(self, link: MediaLink, max_seconds: float) -> CallEnd:
        """Connect the call to the platform until one side ends it, then hang up. Raises `MediaSocketFailed`.

        A call that was moved to another number ends when either party hangs up.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + max_seconds
        running = asyncio.create_task(link.run())
        try:
            end = await self._wait_for_end(running, until, target=None)
        finally:
            self._closing = asyncio.create_task(_close(link, running))
        if self._target is not None and end is None:
            end = await self._bridge(self._target, until)
        return end or COMPLETED

    async def bridge(self, target: "asyncio.Future[Leg]", max_seconds: float) -> CallEnd:
        """Connect the answered call to a target without the platform, until either party hangs up."""
        self._target = target
        return await self._bridge(target, asyncio.get_running_loop().time() + max_seconds)

    async def _wait_for_end(
        self, running: "asyncio.Future[Any]", until: float, *, target: "asyncio.Future[Leg] | None"
    ) -> CallEnd | None:
        """Wait until the far end or `running` ends the call. Return its end, None if it has another target now."""
        loop = asyncio.get_running_loop()
        while True:
            leg = self.leg
            assert leg is not None  # noqa: S101  the call is answered
            seconds = min(LOOK_SECONDS, max(0.0, until - loop.time()))
            await wait_for_any(running, leg.events.over, self._changed, seconds=seconds)
            self._changed.clear()
            if self.hung_up.is_set() or loop.time() >= until:
                return COMPLETED
            if self._target is not target:
                return None
            if leg is not self.leg:  # another dialog took the call over
                continue
            if leg.events.over.is_set():
                return COMPLETED
            if running.done():
                running.result()
                return COMPLETED
            if leg.media.is_silent_for > SILENT_SECONDS:
                return CallEnd("failed", f"the far end sent no audio for {SILENT_SECONDS:.0f} seconds", "media")

    async def _bridge(self, target: "asyncio.Future[Leg]", until: float) -> CallEnd:
        """Connect the caller to the target, with a ringing tone until it answers. `finish` hangs up the target."""
        assert self.leg is not None  # noqa: S101  the call is answered
        media = self.leg.media
        while not target.done():
            media.play(RINGBACK)
            await wait_for_any(target, self.leg.events.over, self._changed, seconds=RINGBACK_SECONDS)
            self._changed.clear()
            if self.leg.events.over.is_set() or self.hung_up.is_set():
                return COMPLETED
        media.clear()
        try:
            other = target.result()
        except (DialFailed, asyncio.CancelledError):
            return COMPLETED  # the platform has handed the call over
        media.join(other.media)
        gone = asyncio.create_task(other.events.over.wait())
        try:
            return await self._wait_for_end(gone, until, target=target) or COMPLETED
        finally:
            gone.cancel()

    async def finish(self, end: CallEnd) -> None:
        """Report the end to the platform, hang up, and release the audio."""
        leg, quality = self.leg, None
        if leg is not None and (measured := leg.media.quality).packets_received:
            quality = CallQuality(measured.loss_share, measured.jitter_ms, measured.mos)
        if leg is None and self.hung_up.is_set():
            end = CANCELED
        self.hung_up.set()
        seconds = 0
        if self._answered_at is not None:
            seconds = round(asyncio.get_running_loop().time() - self._answered_at)
        ended = CallEnded(self.call_id, end.outcome, seconds, end.message, end.code, quality=quality)
        self.notices.post(ended)
        ending: list[Awaitable[None]] = [] if leg is None else [_hang_up(leg)]
        if self._closing is not None:
            ending.append(self._closing)
        if self._target is not None:
            ending.append(give_up(self._target))
        await asyncio.gather(*ending)
        await self.notices.close()


async def _close(link: MediaLink, running: "asyncio.Task[None]") -> None:
    """Close the platform's socket while the call goes on or ends: the platform may take a moment."""
    await link.close(stopped=True)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def _hang_up(leg: Leg) -> None:
    if not leg.events.over.is_set():
        await asyncio.sleep(HEARD_SECONDS)
    await leg.release()
