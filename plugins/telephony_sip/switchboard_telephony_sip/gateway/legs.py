"""A leg of a call: an answered dialog on a trunk, with its audio."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from switchboard_telephony_sip.gateway.directory import TrunkLine
from switchboard_telephony_sip.media.session import MediaSession
from switchboard_telephony_sip.media.session_description import NoCommonMedia
from switchboard_telephony_sip.signaling.dialogs import Dialog, DialogEvents, OfferRefused

INFO_DIGITS: Final = ("application/dtmf-relay", "application/dtmf")
DECLINED: Final = 603
FollowReferral = Callable[[str, str], Awaitable[int]]
"""Continues a call in the dialog that its far end names: target and Replaces. Returns the SIP status of that."""


class LegEvents(DialogEvents):
    """Reactions of one dialog to its far end. `over` is set when the far end has hung up or is gone."""

    def __init__(self, media: MediaSession) -> None:
        self.over = asyncio.Event()
        self.follow_referral: FollowReferral | None = None
        self._media = media

    async def on_offer(self, sdp: str) -> str:
        try:
            return self._media.answer(sdp)
        except NoCommonMedia as error:
            raise OfferRefused(str(error)) from error

    def renew_offer(self) -> str:
        return self._media.renew_offer()

    def take_answer(self, sdp: str) -> None:
        with suppress(NoCommonMedia):
            self._media.accept_answer(sdp)

    async def on_bye(self) -> None:
        self.over.set()

    async def on_expired(self) -> None:
        self.over.set()

    async def on_info(self, content_type: str, body: str) -> int:
        if content_type not in INFO_DIGITS:
            return 415
        self._media.take_info_digit(body)
        return 200

    async def on_refer(self, target: str, replaces: str | None) -> int:
        """Follow an attended transfer. A blind transfer would dial a number of the far end's choice at our cost."""
        if replaces is None or self.follow_referral is None:
            return DECLINED
        return await self.follow_referral(target, replaces)


@dataclass(frozen=True, slots=True)
class Leg:
    """One side of a call."""

    line: TrunkLine
    dialog: Dialog
    media: MediaSession
    events: LegEvents

    @classmethod
    def attach(cls, line: TrunkLine, dialog: Dialog, media: MediaSession) -> Self:
        """Take an answered dialog and its audio."""
        events = LegEvents(media)
        dialog.events = events
        return cls(line, dialog, media, events)

    async def release(self) -> None:
        """Hang up, and give the ports back; again without effect."""
        await asyncio.gather(self.dialog.bye(), self.media.close())


async def adopt_answer(dialog: Dialog, media: MediaSession) -> None:
    """Adopt the far end's answer to our offer. Hang up and raise `NoCommonMedia` for an answer that cannot be used."""
    try:
        media.accept_answer(dialog.remote_sdp)
    except NoCommonMedia:
        await dialog.bye()
        raise


async def give_up(dialing: "asyncio.Future[Leg]") -> None:
    """Cancel a call that rings, or hang up what was answered meanwhile."""
    dialing.cancel()
    (result,) = await asyncio.gather(dialing, return_exceptions=True)
    if isinstance(result, Leg):
        await result.release()


async def wait_for_any(*awaited: "asyncio.Event | asyncio.Future[Any]", seconds: float | None = None) -> None:
    """Wait until one of the events is set or one of the futures is done, or the time, in seconds, is over."""
    waiting = [asyncio.create_task(event.wait()) for event in awaited if isinstance(event, asyncio.Event)]
    futures = [future for future in awaited if not isinstance(future, asyncio.Event)]
    try:
        await asyncio.wait([*futures, *waiting], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
