"""The call to the target of a warm transfer, from its ringing until it is connected or over."""

import asyncio
from typing import Final
from uuid import uuid4

from switchboard.plugin_sdk import ACCEPT_KEY, ACCEPT_PROMPTS, ACCEPT_SECONDS, TransferTargetGone, TransferTargetReady

from switchboard_telephony_sip.gateway.dialing import DialFailed
from switchboard_telephony_sip.gateway.legs import Leg, give_up, wait_for_any
from switchboard_telephony_sip.gateway.notices import NoticeQueue
from switchboard_telephony_sip.gateway.outcomes import CANCELED, COMPLETED, CallEnd
from switchboard_telephony_sip.media.frames import SAMPLE_RATE

CONNECT_SECONDS: Final = 30.0
"""Time in which the platform connects a target that has accepted. After it, the platform is gone or does something
else.
"""


class TransferTarget:
    """Call to a target, who hears an introduction and presses a key. `run` it as a task."""

    def __init__(self, place: str, account_key: str, notices: NoticeQueue) -> None:
        self.call_id = f"{uuid4().hex}@{place}"
        self.account_key = account_key
        self._notices = notices
        self._accepted = asyncio.Event()
        self._hung_up = asyncio.Event()
        self._connected = asyncio.Event()
        self._leg: Leg | None = None

    def hang_up(self) -> None:
        """End the call, unless the target has been connected."""
        self._hung_up.set()

    @property
    def waiting_leg(self) -> Leg | None:
        """The leg of a target who has accepted and is not connected yet; else None."""
        is_over = self._hung_up.is_set() or self._connected.is_set()
        if self._leg is None or not self._accepted.is_set() or is_over or self._leg.events.over.is_set():
            return None
        return self._leg

    def hand_over(self) -> None:
        """Leave the leg to the call that it is connected to."""
        self._connected.set()

    async def run(self, dialing: "asyncio.Task[Leg]", introduction: bytes) -> None:
        """Introduce the caller, in mu-law, to whoever answers, and tell the platform whether the target accepts."""
        end = CANCELED
        try:
            end = await self._introduce(dialing, introduction)
        finally:
            if not self._connected.is_set():
                self._notices.post(TransferTargetGone(self.call_id, end.outcome))
                await give_up(dialing)
            await self._notices.close()

    async def _introduce(self, dialing: "asyncio.Task[Leg]", introduction: bytes) -> CallEnd:
        await wait_for_any(dialing, self._hung_up)
        if not dialing.done():
            return CANCELED
        try:
            leg = self._leg = dialing.result()
        except DialFailed as error:
            return error.end
        leg.media.on_digit = self._take_digit
        for _ in range(ACCEPT_PROMPTS):
            leg.media.play(introduction)
            seconds = len(introduction) / SAMPLE_RATE + ACCEPT_SECONDS
            await wait_for_any(self._accepted, self._hung_up, leg.events.over, seconds=seconds)
            if self._accepted.is_set() or self._hung_up.is_set() or leg.events.over.is_set():
                break
        leg.media.clear()
        if self.waiting_leg is not None:
            self._notices.post(TransferTargetReady(self.call_id))
            await wait_for_any(self._connected, self._hung_up, leg.events.over, seconds=CONNECT_SECONDS)
        return COMPLETED

    def _take_digit(self, digit: str) -> None:
        if digit == ACCEPT_KEY:
            self._accepted.set()
