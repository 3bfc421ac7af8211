"""An established call of either direction (RFC 3261, sections 12 to 15), its session timer, and the table of calls."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias
from urllib.parse import quote

from aiosipua.message import SipMessage, SipRequest, SipResponse
from aiosipua.session_timer import watchdog_delay

from switchboard_telephony_sip.signaling.dialog_state import DialogKey, DialogState
from switchboard_telephony_sip.signaling.digest import answer_challenge
from switchboard_telephony_sip.signaling.endpoint import SipEndpoint
from switchboard_telephony_sip.signaling.messages import (
    ALLOW,
    MIN_SESSION_SECONDS,
    SDP,
    SIPFRAG,
    SUPPORTED,
    USER_AGENT,
    ReplacesHeader,
    SessionInterval,
    SessionTooShort,
    accept_session,
    build_response,
    list_options,
    read_cseq,
    read_notified_status,
    read_refer_to,
    read_sdp,
    read_session,
)
from switchboard_telephony_sip.signaling.outgoing import CallRefused, InviteAttempt
from switchboard_telephony_sip.signaling.peers import PeerUnreachable
from switchboard_telephony_sip.signaling.transactions import (
    T1,
    T2,
    TIMEOUT,
    ServerTransaction,
    TransactionTimeout,
    ignore,
)

MAX_GLARES: Final = 5
REFER_SECONDS: Final = 60
REFER_EVENT: Final = re.compile(r"refer[ \t]*(?:;.*)?", re.IGNORECASE)


class OfferRefused(Exception):
    """The owner cannot accept an offer (488)."""


class DialogEvents:
    """Reactions of a call's owner to its peer; those that are not overridden refuse or ignore."""

    async def on_offer(self, sdp: str) -> str:
        """Return the answer to a new offer: hold, resumption, or a change of codec. Raises `OfferRefused`."""
        raise OfferRefused

    def renew_offer(self) -> str | None:
        """Return an offer for a re-INVITE without one; None repeats our present description."""
        return None

    def take_answer(self, sdp: str) -> None:
        """Adopt the answer to a later offer of ours, from an ACK or a 2xx. One that cannot be used changes nothing."""

    async def on_bye(self) -> None:
        """Take note that the peer has hung up."""

    async def on_info(self, content_type: str, body: str) -> int:
        """Return the status for an INFO, such as a digit."""
        return 415

    async def on_refer(self, target: str, replaces: str | None) -> int:
        """Transfer the call as the peer asks, and return the final status of the new call.

        `replaces` is the value of a Replaces header for the new INVITE.
        """
        return 603

    async def on_expired(self) -> None:
        """Take note that the call has ended, because the peer is silent or has lost it."""


class Acknowledgments:
    """ACKs for which a dialog waits, by their CSeq number.

    The callee repeats a 2xx response to INVITE until its ACK comes (RFC 3261, section 13.3.1.4).
    """

    def __init__(self) -> None:
        self._awaited: dict[int, asyncio.Future[str | None]] = {}

    async def deliver(self, transaction: ServerTransaction, response: SipResponse) -> str | None:
        """Send a 2xx response until its ACK comes; return the ACK's SDP. Raises `TransactionTimeout`."""
        number, _ = read_cseq(transaction.request)
        ack: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._awaited[number] = ack
        transaction.respond(response)
        interval = T1
        try:
            async with asyncio.timeout(TIMEOUT):
                while not ack.done():
                    await asyncio.wait((ack,), timeout=interval)
                    if not ack.done():
                        transaction.transmit()
                    interval = min(interval * 2, T2)
        except TimeoutError as error:
            raise TransactionTimeout("the peer did not acknowledge the answer") from error
        finally:
            del self._awaited[number]
        return ack.result()

    def receive(self, number: int, sdp: str | None) -> None:
        """Take the ACK of the response to the INVITE with this number."""
        ack = self._awaited.get(number)
        if ack is not None and not ack.done():
            ack.set_result(sdp)

    def give_up(self) -> None:
        """Wait no longer: the dialog has ended."""
        for number in self._awaited:
            self.receive(number, None)


class Dialog:
    """A call. Its owner sets `events` at once; what arrives before waits for that.

    `local_sdp` and `remote_sdp` are the latest descriptions of both sides. `remote_headers` are those of the INVITE
    that came in, or of the 2xx response.
    """

    def __init__(
        self, endpoint: SipEndpoint, state: DialogState, established_by: SipMessage, *, is_caller: bool
    ) -> None:
        self.endpoint, self.state, self.is_caller = endpoint, state, is_caller
        self.remote_headers = established_by.headers
        self.local_sdp, self.remote_sdp = "", read_sdp(established_by) or ""
        self.is_ended = False
        self.is_inviting = False
        self._events: asyncio.Future[DialogEvents] = asyncio.get_running_loop().create_future()
        self._on_end: list[Callable[[], object]] = []
        self.acknowledgments = Acknowledgments()
        self._offers = asyncio.Lock()
        self._referral: asyncio.Queue[int | None] | None = None
        self._answering: ServerTransaction | None = None
        """The peer's offer that has no final response yet."""
        self.session = DialogSession(self, established_by)

    @property
    def call_id(self) -> str:
        return self.state.call_id

    @property
    def local_tag(self) -> str:
        return self.state.key[1]

    @property
    def remote_tag(self) -> str:
        return self.state.key[2]

    @property
    def events(self) -> DialogEvents:
        return self._events.result()

    @events.setter
    def events(self, events: DialogEvents) -> None:
        self._events.set_result(events)

    async def wait_for_events(self) -> DialogEvents:
        return await asyncio.shield(self._events)

    def on_end(self, callback: Callable[[], object]) -> None:
        """Call back once, when the dialog has ended, for bookkeeping; the owner uses `events`."""
        if self.is_ended:
            callback()
        else:
            self._on_end.append(callback)

    def enter(self, table: "DialogTable") -> None:
        """List the call in a table until it ends."""
        key = self.state.key
        table[key] = self
        self.on_end(lambda: table.pop(key, None))

    def end(self) -> None:
        """Take the dialog as ended, without a message."""
        if self.is_ended:
            return
        self.is_ended = True
        self.session.stop()
        self.acknowledgments.give_up()
        self.take_notification(None)
        for callback in self._on_end:
            callback()

    # Requests of ours

    async def bye(self) -> None:
        """Hang up; returns when the peer has answered, or is silent for 32 seconds."""
        if self.is_ended:
            return
        self.end()
        with suppress(PeerUnreachable):
            await self.request("BYE")

    async def reinvite(self, sdp: str) -> str:
        """Offer a new description, give the answer to the owner, and return it; repeats an offer that gets 491.

        Raises `CallRefused` or `PeerUnreachable`; the call goes on as before.
        """
        async with self._offers:
            for _ in range(MAX_GLARES):
                response = await self._invite(sdp)
                if response.status_code != 491:
                    break
                # Section 14.1: the caller waits longer, so that the offers do not cross again.
                shortest, longest = (2.1, 4.0) if self.is_caller else (0.0, 2.0)
                await asyncio.sleep(random.uniform(shortest, longest))  # noqa: S311 -- not a secret
            if response.status_code >= 300:
                raise CallRefused(response)
            self.local_sdp = sdp
            if (answer := read_sdp(response)) is not None:
                self.remote_sdp = answer
                (await self.wait_for_events()).take_answer(answer)
            return self.remote_sdp

    async def refer(self, target: str, *, replaces: "Dialog | None" = None) -> AsyncIterator[int]:
        """Ask the peer to call `target`, in place of the other end of `replaces`; yield the statuses that it notifies.

        Raises `CallRefused` if the peer does not accept. The iterator ends with a final status, or with the dialog.
        """
        if self._referral is not None:
            raise RuntimeError("a transfer is under way")
        referral: asyncio.Queue[int | None] = asyncio.Queue()
        self._referral = referral
        refer_to = f"<{target}>"
        if replaces is not None:  # An attended transfer (RFC 3891, section 2).
            taken_over = ReplacesHeader(replaces.call_id, replaces.remote_tag, replaces.local_tag)
            refer_to = f"<{target}?Replaces={quote(str(taken_over), safe='')}>"
        local_uri = self.state.local.partition(";tag=")[0]
        try:
            headers = [("Refer-To", refer_to), ("Referred-By", local_uri), self.build_contact()]
            response = await self.request("REFER", headers)
            if response.status_code >= 300:
                raise CallRefused(response)
            while (status := await referral.get()) is not None:
                yield status
                if status >= 200:
                    return
        finally:
            self._referral = None

    def take_notification(self, status: int | None) -> bool:
        """Pass on the status of a transfer, None at the end of the subscription; return whether there is a transfer."""
        if self._referral is None:
            return False
        self._referral.put_nowait(status)
        return True

    async def request(self, method: str, headers: Iterable[tuple[str, str]] = (), body: str = "") -> SipResponse:
        """Send a request in the dialog, answer a challenge, and return the final response.

        The dialog ends with 408, 481, and silence (section 12.2.1.2). Raises `PeerUnreachable`.
        """
        try:
            response = await self.endpoint.request(self.state, self.state.find_next_hop(), method, headers, body)
        except TransactionTimeout:
            self.lose()
            raise
        if response.status_code in (408, 481):
            self.lose()
        return response

    async def _invite(self, sdp: str) -> SipResponse:
        self.is_inviting = True
        headers = [self.build_contact(), ("Allow", ALLOW), ("Supported", SUPPORTED), ("Content-Type", SDP)]
        headers += self.session.list_headers()
        try:
            answers: list[tuple[str, str]] = []
            for _ in range(2):
                request = self.state.build_request("INVITE", [*headers, *answers], sdp)
                hop = self.state.find_next_hop()
                attempt = InviteAttempt(self.endpoint, request, hop, ignore, dismisses_success=False)
                response = await attempt.wait()
                if (answer := answer_challenge(response, self.state.credentials, request)) is None:
                    break
                answers = [answer]
            if response.status_code < 300:
                self.state.update_target(response)
                attempt.acknowledge(self.state, response)
                self.session.restart(read_session(response))
            elif response.status_code in (408, 481):
                self.lose()
            return response
        finally:
            self.is_inviting = False

    def build_contact(self) -> tuple[str, str]:
        return "Contact", self.endpoint.build_contact(self.state.find_next_hop(), self.state.contact_user)

    def lose(self) -> None:
        """End a dialog that the peer has lost."""
        if not self.is_ended:
            self.end()
            self.endpoint.spawn(self._report_loss())

    async def _report_loss(self) -> None:
        await (await self.wait_for_events()).on_expired()

    # Requests of the peer

    def receive(self, transaction: ServerTransaction) -> None:
        """Answer a request; one that is older than the last gets 500 (RFC 3261, section 12.2.2)."""
        number, method = read_cseq(transaction.request)
        if self.is_ended:
            self._respond(transaction, 481)
            return
        if number <= self.state.remote_cseq:
            self._respond(transaction, 500)
            return
        self.state.remote_cseq, self.state.source = number, transaction.source
        match method:
            case "INVITE" | "UPDATE":
                self._receive_offer(transaction)
            case "BYE":
                self._respond(transaction, 200)
                self.end()
                self.endpoint.spawn(self._report_bye())
            case "INFO":
                self.endpoint.spawn(self._handle_info(transaction))
            case "REFER":
                self._receive_refer(transaction)
            case "NOTIFY":
                self._receive_notify(transaction)
            case _:
                self._respond(transaction, 200 if method == "OPTIONS" else 405)

    def _respond(self, transaction: ServerTransaction, status: int, *headers: tuple[str, str], sdp: str = "") -> None:
        transaction.respond(self._build_reply(transaction, status, headers, sdp))

    def _build_reply(
        self, transaction: ServerTransaction, status: int, headers: Sequence[tuple[str, str]], sdp: str
    ) -> SipResponse:
        base = [("Server", USER_AGENT)]
        if status in (200, 202, 405):
            base += [("Allow", ALLOW), ("Supported", SUPPORTED)]
        if status in (200, 202) and transaction.request.method in ("INVITE", "UPDATE", "REFER"):
            base.append(("Contact", self.endpoint.build_contact(transaction.reply_to)))
        return build_response(transaction.request, status, tag=self.local_tag, headers=[*base, *headers], sdp=sdp)

    async def _report_bye(self) -> None:
        await (await self.wait_for_events()).on_bye()

    async def _handle_info(self, transaction: ServerTransaction) -> None:
        request = transaction.request
        kind = (request.headers.get_first("content-type") or "").partition(";")[0].strip().lower()
        status = 500
        try:
            events = await self.wait_for_events()
            # An INFO without a body asks only whether the dialog is alive (RFC 6086 deprecates it).
            status = await events.on_info(kind, request.text) if request.body else 200
        finally:
            self._respond(transaction, status)

    def _receive_offer(self, transaction: ServerTransaction) -> None:
        if self.is_inviting:
            self._respond(transaction, 491)
        elif self._answering is not None:
            self._respond(transaction, 500, ("Retry-After", str(random.randint(0, 10))))  # noqa: S311 -- not a secret
        else:
            self._answering = transaction
            self.endpoint.spawn(self._handle_offer(transaction))

    async def _handle_offer(self, transaction: ServerTransaction) -> None:
        try:
            await self._answer_offer(transaction)
        except OfferRefused:
            self._respond(transaction, 488)
        except SessionTooShort:
            self._respond(transaction, 422, ("Min-SE", str(MIN_SESSION_SECONDS)))
        except TransactionTimeout:
            self.endpoint.spawn(self.bye())
            await (await self.wait_for_events()).on_expired()
        finally:
            self._settle(transaction)
            self._respond(transaction, 500)  # Does nothing after another final response.

    async def _answer_offer(self, transaction: ServerTransaction) -> None:
        request = transaction.request
        interval = accept_session(request)
        events = await self.wait_for_events()
        offer = read_sdp(request)
        is_refresh = request.method == "UPDATE" and offer is None
        if is_refresh:
            answer = ""
        elif offer is not None:
            answer = await events.on_offer(offer)
        else:
            answer = events.renew_offer() or self.local_sdp
        if transaction.is_final or self.is_ended:
            return
        self.state.update_target(request)
        headers = []
        if interval is not None:
            headers = [("Session-Expires", interval.format_header(is_caller=False)), ("Require", "timer")]
            self.session.restart(interval)
        if not is_refresh:
            self.local_sdp, self.remote_sdp = answer, offer or self.remote_sdp
        if request.method == "UPDATE":
            self._respond(transaction, 200, *headers, sdp=answer)
            return
        response = self._build_reply(transaction, 200, headers, answer)
        self._settle(transaction)  # The next offer may come right behind the ACK, before this task goes on.
        acknowledged = await self.acknowledgments.deliver(transaction, response)
        # A later offer, right behind the ACK, has its answer already.
        if offer is None and acknowledged and self.local_sdp == answer:
            self.remote_sdp = acknowledged
            events.take_answer(acknowledged)

    def _settle(self, transaction: ServerTransaction) -> None:
        if self._answering is transaction:
            self._answering = None

    def _receive_refer(self, transaction: ServerTransaction) -> None:
        found = read_refer_to(transaction.request)
        if found is None:
            self._respond(transaction, 400)
            return
        self._respond(transaction, 202)
        self.endpoint.spawn(self._handle_refer(transaction.request, *found))

    async def _handle_refer(self, request: SipRequest, target: str, replaces: ReplacesHeader | None) -> None:
        await self._notify(request, 100, "Trying", f"active;expires={REFER_SECONDS}")
        status = 500
        try:
            events = await self.wait_for_events()
            status = await events.on_refer(target, str(replaces) if replaces else None)
        finally:
            reason = "OK" if status < 300 else "Refused"
            await self._notify(request, status, reason, "terminated;reason=noresource")

    async def _notify(self, refer: SipRequest, status: int, reason: str, subscription: str) -> None:
        """Report the progress of a transfer (RFC 3515, section 2.4.4), unless the peer wants no reports (RFC 4488)."""
        wanted = (refer.headers.get_first("refer-sub") or "").strip().lower() != "false"
        if not wanted or self.is_ended:
            return
        number, _ = read_cseq(refer)
        headers = [
            ("Event", f"refer;id={number}"),
            ("Subscription-State", subscription),
            ("Content-Type", f"{SIPFRAG};version=2.0"),
            self.build_contact(),
        ]
        with suppress(PeerUnreachable):
            await self.request("NOTIFY", headers, f"SIP/2.0 {status} {reason}\r\n")

    def _receive_notify(self, transaction: ServerTransaction) -> None:
        request = transaction.request
        if not REFER_EVENT.fullmatch((request.headers.get_first("event") or "").strip()):
            self._respond(transaction, 489)
            return
        status = read_notified_status(request)
        known = status is None or self.take_notification(status)
        if (request.headers.get_first("subscription-state") or "").strip().lower().startswith("terminated"):
            known = self.take_notification(None) and known
        self._respond(transaction, 200 if known else 481)


class DialogSession:
    """The session timer of one dialog (RFC 4028): refresh at half of the interval, or expiry without one.

    Without an agreed interval there is no timer.
    """

    def __init__(self, dialog: Dialog, established_by: SipMessage) -> None:
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
        with suppress(CallRefused, PeerUnreachable):
            if not self._peer_has_update:
                await dialog.reinvite(dialog.local_sdp)
                return
            headers = [dialog.build_contact(), ("Supported", SUPPORTED), *self.list_headers()]
            response = await dialog.request("UPDATE", headers)
            if response.status_code < 300:
                self.restart(read_session(response))

    async def _expire(self) -> None:
        self._dialog.lose()
        with suppress(PeerUnreachable):
            await self._dialog.request("BYE", [("Reason", 'SIP;cause=408;text="Session timer"')])


DialogTable: TypeAlias = dict[DialogKey, Dialog]
"""The established calls of a user agent, by Call-ID, local tag, and remote tag."""
