"""Requests that the peer sends within a dialog."""

import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from aiosipua.message import SipRequest, SipResponse

from switchboard_telephony_sip.signaling.dialog_events import OfferRefused
from switchboard_telephony_sip.signaling.messages import ALLOW, SDP, SUPPORTED, build_response, read_cseq, read_sdp
from switchboard_telephony_sip.signaling.outgoing import CallTimeout
from switchboard_telephony_sip.signaling.peers import PeerUnreachable
from switchboard_telephony_sip.signaling.server_transactions import ServerTransaction
from switchboard_telephony_sip.signaling.session_timers import MIN_SESSION_SECONDS, SessionTooShort, accept_session
from switchboard_telephony_sip.signaling.transfers import (
    SIPFRAG,
    is_refer_event,
    is_subscription_over,
    read_notified_status,
    read_refer_to,
)

if TYPE_CHECKING:
    from switchboard_telephony_sip.signaling.dialogs import Dialog

REFER_SECONDS = 60


class DialogRequests:
    """Handlers of one dialog, by method."""

    def __init__(self, dialog: "Dialog") -> None:
        self._dialog = dialog
        self._answering: ServerTransaction | None = None
        """The offer that has no final response yet."""
        self._handlers: dict[str, Callable[[ServerTransaction], None]] = {
            "INVITE": self._receive_offer,
            "UPDATE": self._receive_offer,
            "BYE": self._receive_bye,
            "INFO": lambda transaction: self._spawn(self._handle_info, transaction),
            "REFER": self._receive_refer,
            "NOTIFY": self._receive_notify,
            "OPTIONS": lambda transaction: self.respond(transaction, 200),
        }

    def receive(self, transaction: ServerTransaction) -> None:
        """Answer a request; one that is older than the last gets 500 (RFC 3261, section 12.2.2)."""
        number, method = read_cseq(transaction.request)
        state = self._dialog.state
        if self._dialog.is_ended:
            self.respond(transaction, 481)
            return
        if number <= state.remote_cseq:
            self.respond(transaction, 500)
            return
        state.remote_cseq = number
        state.source = transaction.source
        handler = self._handlers.get(method)
        if handler is None:
            self.respond(transaction, 405)
        else:
            handler(transaction)

    def respond(self, transaction: ServerTransaction, status: int, *headers: tuple[str, str], body: str = "") -> None:
        transaction.respond(self._build_reply(transaction, status, headers, body))

    def _build_reply(
        self, transaction: ServerTransaction, status: int, headers: Sequence[tuple[str, str]], body: str
    ) -> SipResponse:
        base = [("Server", self._dialog.endpoint.user_agent)]
        if status in (200, 202, 405):
            base += [("Allow", ALLOW), ("Supported", SUPPORTED)]
        if status in (200, 202) and transaction.request.method in ("INVITE", "UPDATE", "REFER"):
            base.append(("Contact", self._dialog.endpoint.build_contact(transaction.reply_to)))
        response = build_response(transaction.request, status, tag=self._dialog.local_tag, headers=[*base, *headers])
        response.text = body
        return response

    def _spawn(
        self, handle: Callable[[ServerTransaction], Coroutine[None, None, None]], transaction: ServerTransaction
    ) -> None:
        self._dialog.endpoint.spawn(handle(transaction))

    def _receive_bye(self, transaction: ServerTransaction) -> None:
        self.respond(transaction, 200)
        self._dialog.end()
        self._spawn(self._report_bye, transaction)

    async def _report_bye(self, _transaction: ServerTransaction) -> None:
        await (await self._dialog.wait_for_events()).on_bye()

    async def _handle_info(self, transaction: ServerTransaction) -> None:
        request = transaction.request
        kind = (request.headers.get_first("content-type") or "").partition(";")[0].strip().lower()
        status = 500
        try:
            events = await self._dialog.wait_for_events()
            # An INFO without a body asks only whether the dialog is alive (RFC 6086 deprecates it).
            status = await events.on_info(kind, request.text) if request.body else 200
        finally:
            self.respond(transaction, status)

    def _receive_offer(self, transaction: ServerTransaction) -> None:
        if self._dialog.is_inviting:
            self.respond(transaction, 491)
        elif self._answering is not None:
            self.respond(transaction, 500, ("Retry-After", str(random.randint(0, 10))))  # noqa: S311 -- not a secret
        else:
            self._answering = transaction
            self._spawn(self._handle_offer, transaction)

    async def _handle_offer(self, transaction: ServerTransaction) -> None:
        try:
            await self._answer_offer(transaction)
        except OfferRefused:
            self.respond(transaction, 488)
        except SessionTooShort:
            self.respond(transaction, 422, ("Min-SE", str(MIN_SESSION_SECONDS)))
        except CallTimeout:
            self._dialog.endpoint.spawn(self._dialog.bye())
            await (await self._dialog.wait_for_events()).on_expired()
        finally:
            self._settle(transaction)
            self.respond(transaction, 500)  # Does nothing after another final response.

    async def _answer_offer(self, transaction: ServerTransaction) -> None:
        dialog, request = self._dialog, transaction.request
        interval = accept_session(request)
        events = await dialog.wait_for_events()
        offer = read_sdp(request)
        is_refresh = request.method == "UPDATE" and offer is None
        answer = "" if is_refresh else await events.on_offer(offer) if offer else dialog.local_sdp
        if transaction.is_final or dialog.is_ended:
            return
        dialog.state.update_target(request)
        headers = []
        if interval is not None:
            headers = [("Session-Expires", interval.format_header(is_caller=False)), ("Require", "timer")]
            dialog.session.restart(interval)
        if not is_refresh:
            headers.append(("Content-Type", SDP))
            dialog.local_sdp, dialog.remote_sdp = answer, offer or dialog.remote_sdp
        if request.method == "UPDATE":
            self.respond(transaction, 200, *headers, body=answer)
            return
        response = self._build_reply(transaction, 200, headers, answer)
        self._settle(transaction)  # The next offer may come right behind the ACK, before this task goes on.
        acknowledged = await dialog.acknowledgments.deliver(transaction, response)
        if offer is None and acknowledged:
            dialog.remote_sdp = acknowledged
            await events.on_answer(acknowledged)

    def _settle(self, transaction: ServerTransaction) -> None:
        if self._answering is transaction:
            self._answering = None

    def _receive_refer(self, transaction: ServerTransaction) -> None:
        target = read_refer_to(transaction.request)
        if target is None:
            self.respond(transaction, 400)
            return
        self.respond(transaction, 202)
        self._spawn(self._handle_refer, transaction)

    async def _handle_refer(self, transaction: ServerTransaction) -> None:
        found = read_refer_to(transaction.request)
        if found is None:
            return
        target, replaces = found
        await self._notify(transaction.request, 100, "Trying", f"active;expires={REFER_SECONDS}")
        status = 500
        try:
            events = await self._dialog.wait_for_events()
            status = await events.on_refer(target, str(replaces) if replaces else None)
        finally:
            reason = "OK" if status < 300 else "Refused"
            await self._notify(transaction.request, status, reason, "terminated;reason=noresource")

    async def _notify(self, refer: SipRequest, status: int, reason: str, subscription: str) -> None:
        """Report the progress of a transfer (RFC 3515, section 2.4.4), unless the peer wants no reports (RFC 4488)."""
        wanted = (refer.headers.get_first("refer-sub") or "").strip().lower() != "false"
        if not wanted or self._dialog.is_ended:
            return
        number, _ = read_cseq(refer)
        headers = [
            ("Event", f"refer;id={number}"),
            ("Subscription-State", subscription),
            ("Content-Type", f"{SIPFRAG};version=2.0"),
            ("Contact", self._dialog.endpoint.build_contact(self._dialog.state.find_next_hop())),
        ]
        with suppress(CallTimeout, PeerUnreachable):
            await self._dialog.request("NOTIFY", headers, f"SIP/2.0 {status} {reason}\r\n")

    def _receive_notify(self, transaction: ServerTransaction) -> None:
        request = transaction.request
        if not is_refer_event(request):
            self.respond(transaction, 489)
            return
        status = read_notified_status(request)
        known = status is None or self._dialog.take_notification(status)
        if is_subscription_over(request):
            known = self._dialog.take_notification(None) and known
        self.respond(transaction, 200 if known else 481)
