"""The session timer of a dialog (RFC 4028): refresh at half of the interval, or expiry without one."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING

from aiosipua.message import SipMessage
from aiosipua.session_timer import watchdog_delay

from switchboard_telephony_sip.signaling.messages import SUPPORTED, list_options
from switchboard_telephony_sip.signaling.outgoing import CallRefused, CallTimeout
from switchboard_telephony_sip.signaling.peers import PeerUnreachable
from switchboard_telephony_sip.signaling.session_timers import SessionInterval, read_session

if TYPE_CHECKING:
    from switchboard_telephony_sip.signaling.dialogs import Dialog


class DialogSession:
    """Interval of one dialog, and its timers. Without an agreed interval there is no timer."""

    def __init__(self, dialog: "Dialog", established_by: SipMessage) -> None:
        self._dialog = dialog
        self._peer_has_update = "update" in list_options(established_by, "allow")
        self._interval: SessionInterval | None = None
        self._timers: list[asyncio.TimerHandle] = []

    def restart(self, interval: SessionInterval | None) -> None:
        """Begin the interval again, which is the one agreed before if there is no new one."""
        self.stop()
        self._interval = interval or self._interval
        if self._interval is None or self._dialog.is_ended:
            return
        loop, seconds = asyncio.get_running_loop(), self._interval.seconds
        if self._interval.is_ours:
            self._timers.append(loop.call_later(seconds / 2, self._spawn, self._refresh))
        # The side that refreshes ends a session that it cannot refresh, too.
        self._timers.append(loop.call_later(watchdog_delay(seconds), self._spawn, self._expire))

    def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def list_headers(self) -> list[tuple[str, str]]:
        """Return the header that keeps the interval in a request of ours."""
        if self._interval is None:
            return []
        return [("Session-Expires", self._interval.format_header(is_caller=True))]

    def _spawn(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        if not self._dialog.is_ended:
            self._dialog.endpoint.spawn(work())

    async def _refresh(self) -> None:
        """Refresh by UPDATE, or by a re-INVITE with the same description; a failure leaves the session to expire."""
        dialog = self._dialog
        with suppress(CallTimeout, CallRefused, PeerUnreachable):
            if not self._peer_has_update:
                await dialog.reinvite(dialog.local_sdp)
                return
            headers = [dialog.build_contact(), ("Supported", SUPPORTED), *self.list_headers()]
            response = await dialog.request("UPDATE", headers)
            if response.status_code < 300:
                self.restart(read_session(response))

    async def _expire(self) -> None:
        self._dialog.lose()
        with suppress(CallTimeout, PeerUnreachable):
            await self._dialog.request("BYE", [("Reason", 'SIP;cause=408;text="Session timer"')])
