"""A call that came in, until it is answered or refused (RFC 3261, section 13.3)."""

import asyncio
from collections.abc import Callable, Iterable

from aiosipua.message import SipResponse

from switchboard_telephony_sip.signaling.admission import TrunkQuota
from switchboard_telephony_sip.signaling.dialog_state import DialogState, create_tag
from switchboard_telephony_sip.signaling.dialogs import Dialog, DialogTable
from switchboard_telephony_sip.signaling.endpoint import SipEndpoint
from switchboard_telephony_sip.signaling.messages import (
    ALLOW,
    SUPPORTED,
    USER_AGENT,
    SessionInterval,
    build_response,
    list_options,
    read_sdp,
)
from switchboard_telephony_sip.signaling.transactions import ServerTransaction, TransactionTimeout

PROVISIONAL_SECONDS = 60.0
"""Interval at which a provisional response is repeated, so that proxies keep a long ringing call (section 13.3.1.1)."""


class CallCanceled(Exception):
    """The caller has given up before the answer."""


class IncomingInvite:
    """A call that waits for an answer. `trunk` is the one to which the caller belongs, once `enter` was called.

    `sdp` is None if the caller expects the offer in the answer; then `Dialog.remote_sdp` is the caller's answer to it.
    `replaces` is the call that this one takes over (RFC 3891); it is hung up after the answer.
    """

    trunk: TrunkQuota

    def __init__(
        self,
        endpoint: SipEndpoint,
        transaction: ServerTransaction,
        *,
        replaces: Dialog | None,
        session: SessionInterval | None,
        dialogs: DialogTable,
    ) -> None:
        self.request, self.peer, self.replaces = transaction.request, transaction.source, replaces
        self.sdp = read_sdp(transaction.request)
        self._endpoint, self._transaction = endpoint, transaction
        self._session = session
        self._dialogs = dialogs
        self._tag = create_tag()
        self._repetition: asyncio.TimerHandle | None = None
        self._release_slot: Callable[[], None] = lambda: None
        self.is_settled = False

    def enter(self, trunk: TrunkQuota, release_slot: Callable[[], None]) -> None:
        """Count the call as one of a trunk, in a place of its quota, until it is over or was refused."""
        self.trunk, self._release_slot = trunk, release_slot

    def ring(self, sdp: str | None = None) -> None:
        """Report that the telephone rings (180), or early media with its description (183)."""
        if self.is_settled:
            return
        response = self._build_response(180 if sdp is None else 183, self._list_contact(), sdp or "")
        self._transaction.respond(response)
        if self._repetition is not None:
            self._repetition.cancel()
        self._repetition = asyncio.get_running_loop().call_later(PROVISIONAL_SECONDS, self.ring, sdp)

    async def answer(self, sdp: str) -> Dialog:
        """Accept the call and return when the caller has acknowledged.

        Raises `CallCanceled`, or `TransactionTimeout` without an acknowledgment; the call is then hung up.
        """
        if self.is_settled:
            raise CallCanceled
        state = DialogState.create_from_request(self.request, self.peer, self._tag)
        dialog = Dialog(self._endpoint, state, self.request, is_caller=False)
        dialog.local_sdp = sdp
        dialog.enter(self._dialogs)
        headers = [*self._list_contact(), ("Allow", ALLOW), ("Supported", SUPPORTED)]
        if self._session is not None:
            headers.append(("Session-Expires", self._session.format_header(is_caller=False)))
            if "timer" in list_options(self.request, "supported"):
                headers.append(("Require", "timer"))
        response = self._build_response(200, headers, sdp)
        dialog.on_end(self._release_slot)
        self.settle_transaction()
        try:
            acknowledged = await dialog.acknowledgments.deliver(self._transaction, response)
        except (TransactionTimeout, asyncio.CancelledError):
            self._endpoint.spawn(dialog.bye())
            raise
        if self.sdp is None and acknowledged:
            dialog.remote_sdp = acknowledged
        dialog.session.restart(self._session)
        if self.replaces is not None:
            self._endpoint.spawn(self.replaces.bye())
        return dialog

    def reject(self, status: int, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Refuse the call; does nothing after an answer."""
        if not self.is_settled:
            self.settle_transaction()
            self._transaction.respond(self._build_response(status, headers))
            self._release_slot()

    def settle_transaction(self) -> None:
        self.is_settled = True
        if self._repetition is not None:
            self._repetition.cancel()

    def _list_contact(self) -> list[tuple[str, str]]:
        return [("Contact", self._endpoint.build_contact(self._transaction.reply_to))]

    def _build_response(self, status: int, headers: Iterable[tuple[str, str]], sdp: str = "") -> SipResponse:
        headers = [("Server", USER_AGENT), *headers]
        return build_response(self.request, status, tag=self._tag, headers=headers, sdp=sdp)
