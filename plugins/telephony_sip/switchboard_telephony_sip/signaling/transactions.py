"""Transactions of SIP (RFC 3261, section 17, with the corrections of RFC 6026)."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from aiosipua.message import SipRequest, SipResponse

from switchboard_telephony_sip.signaling.messages import read_cseq, read_tag, read_via
from switchboard_telephony_sip.signaling.peers import Peer, PeerUnreachable

T1, T2, T4 = 0.5, 4.0, 5.0
"""Seconds: estimate of the round trip, longest interval between retransmissions, and longest life of a message."""
TIMEOUT = 64 * T1
"""Seconds of timers B, D, F, H, J, L, and M."""


MAGIC_COOKIE = "z9hG4bK"
TransactionKey = tuple[str, ...]


class TransactionTimeout(PeerUnreachable):
    """No final response, or no ACK of ours, came within 32 seconds."""


class Wire(Protocol):
    """The sending side of the transaction layer."""

    def transmit(
        self, message: SipRequest | SipResponse, peer: Peer, on_failure: Callable[[PeerUnreachable], None]
    ) -> None: ...

    def end_transaction(self, key: TransactionKey) -> None: ...


def ignore(_: object) -> None:
    """Ignore a response that nobody needs, or a failure: the other end repeats its own message, or gives up."""


def key_of(message: SipRequest | SipResponse, method: str) -> TransactionKey:
    """Return the key under which a client transaction waits for its responses (section 17.1.3)."""
    return read_via(message).branch or "", method


class _Transaction:
    """A request with the timers of its transaction."""

    def __init__(self, wire: Wire, request: SipRequest, peer: Peer, key: TransactionKey) -> None:
        self.request, self.key = request, key
        self._wire = wire
        self._is_invite = request.method == "INVITE"
        self._is_reliable = peer.transport != "udp"
        self._timers: list[asyncio.TimerHandle] = []

    def end(self) -> None:
        self._cancel_timers()
        self._wire.end_transaction(self.key)

    def _call_later(self, seconds: float, callback: Callable[..., None], *arguments: object) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, callback, *arguments))

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()


class ClientTransaction(_Transaction):
    """One request that was sent, with its retransmissions.

    `on_response` gets each provisional and final response, for an INVITE also repeated 2xx responses. `on_failure` gets
    `PeerUnreachable` instead of a final response.
    """

    def __init__(
        self,
        wire: Wire,
        request: SipRequest,
        peer: Peer,
        on_response: Callable[[SipResponse], None],
        on_failure: Callable[[PeerUnreachable], None],
    ) -> None:
        super().__init__(wire, request, peer, key_of(request, request.method))
        self.peer = peer
        self._on_response, self._on_failure = on_response, on_failure
        self._has_provisional = False
        self._final: SipResponse | None = None
        self._ack: SipRequest | None = None
        self._is_over = False

    def start(self) -> None:
        silence = TransactionTimeout(f"{self.peer} did not answer {self.request.method}")
        self._call_later(TIMEOUT, self.fail, silence)
        if not self._is_reliable:
            self._call_later(T1, self._retransmit, T1)
        self._wire.transmit(self.request, self.peer, self.fail)

    def _retransmit(self, interval: float) -> None:
        """Repeat the request: an INVITE at doubled intervals (timer A), others up to every four seconds (timer E)."""
        longer = interval * 2 if self._is_invite else min(interval * 2, T2)
        if self._has_provisional:
            longer = T2
        self._call_later(longer, self._retransmit, longer)
        self._wire.transmit(self.request, self.peer, self.fail)

    def receive(self, response: SipResponse) -> None:
        if self._final is not None:
            self._receive_again(response)
        elif response.status_code < 200:
            self._has_provisional = True
            if self._is_invite:
                # A called telephone may ring for minutes: the transaction's user limits it.
                self._cancel_timers()
            self._on_response(response)
        else:
            self._finish(response)

    def _finish(self, response: SipResponse) -> None:
        self._final = response
        self._cancel_timers()
        if self._is_invite and response.status_code >= 300:
            # This ACK is part of the transaction (section 17.1.1.3).
            self._ack = build_in_transaction("ACK", self.request, response.headers.get_first("to") or "")
            self._wire.transmit(self._ack, self.peer, ignore)
        # Timers D, K, and M keep the transaction for repeated responses.
        stay = TIMEOUT if self._is_invite else T4
        if self._is_reliable and not (self._is_invite and response.status_code < 300):
            stay = 0.0
        self._call_later(stay, self.end)
        self._on_response(response)

    def _receive_again(self, response: SipResponse) -> None:
        if self._ack is not None and response.status_code >= 300:
            self._wire.transmit(self._ack, self.peer, ignore)
        elif self._is_invite and 200 <= response.status_code < 300:
            self._on_response(response)

    def fail(self, error: PeerUnreachable) -> None:
        """End without a final response."""
        if self._final is None and not self._is_over:
            self.end()
            self._on_failure(error)

    def end(self) -> None:
        self._is_over = True
        super().end()


def build_in_transaction(method: str, invite: SipRequest, to: str) -> SipRequest:
    """Build a request with the branch, route, and CSeq number of an INVITE."""
    request = SipRequest(method=method, uri=invite.uri)
    request.headers.append("Via", invite.headers.get("via")[0])
    for name in ("From", "Call-ID", "Route", "Max-Forwards"):
        for value in invite.headers.get(name):
            request.headers.append(name, value)
    request.headers.append("To", to)
    number = (invite.headers.get_first("cseq") or "").split()[0]
    request.headers.append("CSeq", f"{number} {method}")
    return request


def find_server_key(request: SipRequest, method: str) -> TransactionKey:
    """Return the key of the server transaction to which a request belongs (section 17.2.3).

    `method` is INVITE for an ACK and for the transaction that a CANCEL cancels. Peers of RFC 2543 have no magic
    cookie in their branch, so their transactions are told apart by most of the request.
    """
    via = read_via(request)
    branch = via.branch or ""
    if branch.startswith(MAGIC_COOKIE) and branch != MAGIC_COOKIE:
        return branch, via.host.lower(), str(via.port or ""), method
    number, _ = read_cseq(request)
    headers = request.headers
    sender = read_tag(headers.get_first("from"))
    return (request.uri, sender, headers.get_first("call-id") or "", str(number), via.host, branch, method)


class ServerTransaction(_Transaction):
    """One request that was received, with the responses to it; a repeated request gets the last response again."""

    def __init__(self, wire: Wire, request: SipRequest, source: Peer, reply_to: Peer) -> None:
        super().__init__(wire, request, reply_to, find_server_key(request, request.method))
        self.source, self.reply_to = source, reply_to
        self.last_response: SipResponse | None = None
        self._is_acknowledged = False

    @property
    def is_final(self) -> bool:
        return self.last_response is not None and self.last_response.status_code >= 200

    def respond(self, response: SipResponse) -> None:
        """Send a response; after a final one, only 2xx responses to an INVITE are sent again, by the dialog."""
        if self.is_final:
            return
        self.last_response = response
        self.transmit()
        if self.is_final:
            is_over = self._is_reliable and not self._is_invite
            self._call_later(0.0 if is_over else TIMEOUT, self.end)  # Timer J; L and H for an INVITE.
            if self._is_invite and not self._is_reliable and response.status_code >= 300:
                self._call_later(T1, self._retransmit, T1)  # timer G

    def receive_again(self) -> None:
        """Answer a repeated request. The dialog repeats 2xx responses to an INVITE."""
        if self.last_response is None or self._is_acknowledged:
            return
        if not (self._is_invite and 200 <= self.last_response.status_code < 300):
            self.transmit()

    def receive_ack(self) -> None:
        """Stop repeating a refusal (timer I)."""
        if self.is_final and not self._is_acknowledged:
            self._is_acknowledged = True
            self._cancel_timers()
            self._call_later(0.0 if self._is_reliable else T4, self.end)

    def _retransmit(self, interval: float) -> None:
        longer = min(interval * 2, T2)
        self._call_later(longer, self._retransmit, longer)
        self.transmit()

    def transmit(self) -> None:
        """Send the last response; the dialog's timer repeats a 2xx response until the ACK comes."""
        if self.last_response is not None:
            self._wire.transmit(self.last_response, self.reply_to, ignore)


def find_reply_address(request: SipRequest, source: Peer) -> Peer:
    """Return where responses go (RFC 3261, section 18.2.2, and RFC 3581), and note it in the topmost Via."""
    via = read_via(request)
    port = source.port if "rport" in via.params or source.transport != "udp" else via.port or 5060
    # RFC 3261 asks for `received` only where it differs from the sender's own word; always is allowed, and simpler.
    values = request.headers.get("via")
    ours = [
        part for part in values[0].split(";") if part.partition("=")[0].strip().lower() not in ("received", "rport")
    ]
    ours.append(f"received={source.host}")
    if "rport" in via.params:
        ours.append(f"rport={source.port}")
    values[0] = ";".join(ours)
    return Peer(source.transport, source.host, port)
