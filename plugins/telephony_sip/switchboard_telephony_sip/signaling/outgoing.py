"""An INVITE that was sent, from its first response to the ACK (RFC 3261, sections 9.1 and 13.2)."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from aiosipua.message import SipRequest, SipResponse

from switchboard_telephony_sip.signaling.admission import TrunkQuota
from switchboard_telephony_sip.signaling.dialog_state import DialogState
from switchboard_telephony_sip.signaling.digest import SipCredentials
from switchboard_telephony_sip.signaling.endpoint import SipEndpoint
from switchboard_telephony_sip.signaling.messages import read_cseq, read_tag
from switchboard_telephony_sip.signaling.peers import Peer, PeerUnreachable
from switchboard_telephony_sip.signaling.transactions import TIMEOUT, TransactionTimeout, build_in_transaction, ignore


@dataclass(frozen=True, slots=True)
class OutgoingInvite:
    """A call to place.

    `caller` and `callee` are From and To values, such as `"Ada" <sip:+1555@host>`. `on_progress` gets status and SDP
    of each provisional response, from 180 on. A peer that sends no response within `first_response_seconds` is given
    up, so that the next trunk can be tried. `session_seconds` is the interval of RFC 4028.
    """

    target: str
    peer: Peer
    caller: str
    callee: str
    sdp: str
    headers: tuple[tuple[str, str], ...] = ()
    credentials: SipCredentials | None = None
    quota: TrunkQuota | None = None
    on_progress: Callable[[int, str | None], None] = lambda _status, _sdp: None
    first_response_seconds: float = TIMEOUT
    session_seconds: int = 1800
    contact_user: str = ""
    call_id: str = ""


class CallRefused(Exception):
    """A final response of 400 or more."""

    def __init__(self, response: SipResponse) -> None:
        super().__init__(f"{response.status_code} {response.reason_phrase}")
        self.status = response.status_code
        self.headers = {name.lower(): list(values) for name, values in response.headers.items()}


class CallRedirected(Exception):
    """A 3xx response, with the URIs of its Contact headers in the peer's order."""

    def __init__(self, status: int, contacts: list[str]) -> None:
        super().__init__(f"{status}: {', '.join(contacts)}")
        self.status, self.contacts = status, contacts


class InviteAttempt:
    """One INVITE transaction with its later 2xx responses, each of which needs an ACK.

    2xx responses of other branches of a forked call, and those that cross a cancellation, are answered with ACK and
    BYE.
    """

    def __init__(
        self,
        endpoint: SipEndpoint,
        request: SipRequest,
        peer: Peer,
        on_progress: Callable[[SipResponse], None],
        *,
        dismisses_success: bool = True,
    ) -> None:
        self.request, self.peer = request, peer
        self.final: asyncio.Future[SipResponse] = asyncio.get_running_loop().create_future()
        self._endpoint = endpoint
        self._on_progress = on_progress
        self._dismisses_success = dismisses_success
        self._has_response = self._is_abandoned = self._is_canceled = False
        self._acks: dict[str, tuple[SipRequest, Peer]] = {}
        self._on_settled: Callable[[], None] | None = None
        self._transaction = endpoint.send_request(request, peer, self._take_response, self._take_failure)

    async def wait(self, first_response_seconds: float = TIMEOUT) -> SipResponse:
        """Return the final response. A canceled task cancels the call, too.

        Raises `PeerUnreachable` if there is no response at all, so that no telephone rings.
        """
        limit = asyncio.get_running_loop().call_later(first_response_seconds, self._give_up_silence)
        try:
            return await asyncio.shield(self.final)
        except asyncio.CancelledError:
            self._abandon()
            raise
        finally:
            limit.cancel()

    def on_settled(self, callback: Callable[[], None]) -> None:
        """Call back when an abandoned call is over at the peer, too."""
        if self._is_abandoned and not self.final.done():
            self._on_settled = callback
        else:
            callback()

    def _give_up_silence(self) -> None:
        if not self._has_response:
            self._transaction.fail(PeerUnreachable(f"{self.peer} does not answer"))

    def _take_response(self, response: SipResponse) -> None:
        self._has_response = True
        status = response.status_code
        if status < 200:
            if self._is_abandoned:
                self._send_cancel()
            elif status > 100 and not self.final.done():
                self._on_progress(response)
            return
        is_first = not self.final.done()
        if is_first:
            self.final.set_result(response)
        if 200 <= status < 300:
            self._take_success(response, is_first=is_first)
        self._settle()

    def _take_success(self, response: SipResponse, *, is_first: bool) -> None:
        tag = read_tag(response.headers.get_first("to"))
        ack = self._acks.get(tag)
        # A repetition may come before the task that places the call has gone on, and sent the ACK.
        is_fork = not is_first and tag != read_tag(self.final.result().headers.get_first("to"))
        if ack is not None:
            self._endpoint.transmit(*ack, ignore)
        elif self._is_abandoned or is_fork:
            self._dismiss(response)

    def _take_failure(self, error: PeerUnreachable) -> None:
        if not self.final.done():
            self.final.set_exception(error)
            self.final.exception()  # Nobody may wait for an abandoned call.
        self._settle()

    def _settle(self) -> None:
        if self._on_settled is not None:
            self._on_settled()
            self._on_settled = None

    def acknowledge(self, state: DialogState, response: SipResponse) -> None:
        """Send the ACK of a 2xx response, and again for each repetition of the response."""
        number, _ = read_cseq(self.request)
        ack = state.build_request("ACK", state.authorization, cseq=number)
        hop = state.find_next_hop()
        try:
            self._endpoint.stamp_via(ack, hop)
        except PeerUnreachable:
            return  # Contact names a transport that the gateway does not have; the session times out.
        self._acks[read_tag(response.headers.get_first("to"))] = ack, hop
        self._endpoint.transmit(ack, hop, ignore)

    def _abandon(self) -> None:
        """Cancel the call, once the peer has sent a response (section 9.1); a 2xx that crosses is followed by BYE."""
        self._is_abandoned = True
        if self.final.done():
            if not self.final.exception() and self.final.result().status_code < 300:
                self._dismiss(self.final.result())
        elif self._has_response:
            self._send_cancel()

    def _send_cancel(self) -> None:
        if self._is_canceled:
            return
        self._is_canceled = True
        cancel = build_in_transaction("CANCEL", self.request, self.request.headers.get_first("to") or "")
        self._endpoint.send_request(cancel, self.peer, ignore, ignore)
        # A peer that answers the CANCEL and never the INVITE (section 9.1).
        asyncio.get_running_loop().call_later(
            TIMEOUT, self._transaction.fail, TransactionTimeout("the canceled call has no end")
        )

    def _dismiss(self, response: SipResponse) -> None:
        """End a dialog that nobody wants."""
        state = DialogState.create_from_response(self.request, response, self.peer)
        self.acknowledge(state, response)
        if self._dismisses_success:
            with suppress(PeerUnreachable):
                self._endpoint.send_request(state.build_request("BYE"), state.find_next_hop(), ignore, ignore)
