"""Client transactions of SIP (RFC 3261, section 17.1, with the corrections of RFC 6026), and the timers' values."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from aiosipua.message import SipRequest, SipResponse

from switchboard_telephony_sip.signaling.messages import read_via
from switchboard_telephony_sip.signaling.peers import Peer, PeerUnreachable

T1, T2, T4 = 0.5, 4.0, 5.0
"""Seconds: estimate of the round trip, longest interval between retransmissions, and longest life of a message."""
TIMEOUT = 64 * T1
"""Seconds of timers B, D, F, H, J, L, and M."""


class TransactionTimeout(Exception):
    """No final response came within 32 seconds."""


class Wire(Protocol):
    """The sending side of the transaction layer."""

    def transmit(
        self, message: SipRequest | SipResponse, peer: Peer, on_failure: Callable[[PeerUnreachable], None]
    ) -> None: ...

    def end_transaction(self, key: tuple[str, ...]) -> None: ...


ClientKey = tuple[str, ...]


def key_of(message: SipRequest | SipResponse, method: str) -> ClientKey:
    """Return the key under which a client transaction waits for its responses (section 17.1.3)."""
    return read_via(message).branch or "", method


class ClientTransaction:
    """One request that was sent, with its retransmissions.

    `on_response` gets each provisional and final response, for an INVITE also repeated 2xx responses. `on_failure` gets
    `TransactionTimeout` or `PeerUnreachable`, instead of a final response.
    """

    def __init__(
        self,
        wire: Wire,
        request: SipRequest,
        peer: Peer,
        on_response: Callable[[SipResponse], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.request, self.peer = request, peer
        self.key = key_of(request, request.method)
        self._wire = wire
        self._on_response, self._on_failure = on_response, on_failure
        self._is_invite = request.method == "INVITE"
        self._is_reliable = peer.transport != "udp"
        self._loop = asyncio.get_running_loop()
        self._retransmission: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._has_provisional = False
        self._final: SipResponse | None = None
        self._ack: SipRequest | None = None
        self._is_over = False

    def start(self) -> None:
        self._deadline = self._loop.call_later(TIMEOUT, self._expire)
        if not self._is_reliable:
            self._retransmission = self._loop.call_later(T1, self._retransmit, T1)
        self._wire.transmit(self.request, self.peer, self.fail)

    def _retransmit(self, interval: float) -> None:
        """Repeat the request: an INVITE at doubled intervals (timer A), others up to every four seconds (timer E)."""
        longer = interval * 2 if self._is_invite else min(interval * 2, T2)
        if self._has_provisional:
            longer = T2
        self._retransmission = self._loop.call_later(longer, self._retransmit, longer)
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
            self._ack = build_ack_of_refusal(self.request, response)
            self._wire.transmit(self._ack, self.peer, _ignore)
        # Timers D, K, and M keep the transaction for repeated responses.
        stay = TIMEOUT if self._is_invite else T4
        if self._is_reliable and not (self._is_invite and response.status_code < 300):
            stay = 0.0
        self._deadline = self._loop.call_later(stay, self.end)
        self._on_response(response)

    def _receive_again(self, response: SipResponse) -> None:
        if self._ack is not None and response.status_code >= 300:
            self._wire.transmit(self._ack, self.peer, _ignore)
        elif self._is_invite and 200 <= response.status_code < 300:
            self._on_response(response)

    def _expire(self) -> None:
        self.fail(TransactionTimeout(f"{self.peer} did not answer {self.request.method}"))

    def fail(self, error: Exception) -> None:
        """End without a final response."""
        if self._final is None and not self._is_over:
            self.end()
            self._on_failure(error)

    def end(self) -> None:
        self._is_over = True
        self._cancel_timers()
        self._wire.end_transaction(self.key)

    def _cancel_timers(self) -> None:
        for timer in (self._retransmission, self._deadline):
            if timer is not None:
                timer.cancel()


def build_ack_of_refusal(invite: SipRequest, response: SipResponse) -> SipRequest:
    """Build the ACK of a final response other than 2xx, which is part of the transaction (section 17.1.1.3)."""
    return build_in_transaction("ACK", invite, response.headers.get_first("to") or "")


def build_cancel(invite: SipRequest) -> SipRequest:
    """Build the CANCEL of an INVITE (section 9.1)."""
    return build_in_transaction("CANCEL", invite, invite.headers.get_first("to") or "")


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


def _ignore(_error: PeerUnreachable) -> None:
    """Ignore a failure: the other end repeats its response, or gives up."""
