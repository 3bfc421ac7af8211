"""Server transactions of SIP (RFC 3261, section 17.2, with the corrections of RFC 6026)."""

import asyncio

from aiosipua.message import SipRequest, SipResponse

from switchboard_telephony_sip.signaling.messages import read_cseq, read_tag, read_via
from switchboard_telephony_sip.signaling.peers import Peer, PeerUnreachable
from switchboard_telephony_sip.signaling.transactions import T1, T2, T4, TIMEOUT, Wire

MAGIC_COOKIE = "z9hG4bK"
ServerKey = tuple[str, ...]


def find_server_key(request: SipRequest, method: str) -> ServerKey:
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


class ServerTransaction:
    """One request that was received, with the responses to it; a repeated request gets the last response again."""

    def __init__(self, wire: Wire, request: SipRequest, source: Peer, reply_to: Peer) -> None:
        self.request, self.source = request, source
        self.reply_to = reply_to
        self.key = find_server_key(request, request.method)
        self.last_response: SipResponse | None = None
        self._wire = wire
        self._is_invite = request.method == "INVITE"
        self._is_reliable = reply_to.transport != "udp"
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []
        self._is_acknowledged = False

    @property
    def is_final(self) -> bool:
        return self.last_response is not None and self.last_response.status_code >= 200

    def respond(self, response: SipResponse) -> None:
        """Send a response; after a final one, only 2xx responses to an INVITE are sent again, by the dialog."""
        if self.is_final:
            return
        self.last_response = response
        self._transmit()
        if not self.is_final:
            return
        if not self._is_invite:
            self._end_later(0.0 if self._is_reliable else TIMEOUT)  # timer J
        elif response.status_code < 300:
            self._end_later(TIMEOUT)  # timer L
        else:
            self._end_later(TIMEOUT)  # timer H
            if not self._is_reliable:
                self._timers.append(self._loop.call_later(T1, self._retransmit, T1))  # timer G

    def repeat_success(self) -> None:
        """Send the 2xx response again, until the ACK comes: the dialog's timer calls it."""
        self._transmit()

    def receive_again(self) -> None:
        """Answer a repeated request. The dialog repeats 2xx responses to an INVITE."""
        if self.last_response is None or self._is_acknowledged:
            return
        if not (self._is_invite and 200 <= self.last_response.status_code < 300):
            self._transmit()

    def receive_ack(self) -> None:
        """Stop repeating a refusal (timer I)."""
        if self.is_final and not self._is_acknowledged:
            self._is_acknowledged = True
            self._cancel_timers()
            self._end_later(0.0 if self._is_reliable else T4)

    def end(self) -> None:
        self._cancel_timers()
        self._wire.end_transaction(self.key)

    def _retransmit(self, interval: float) -> None:
        longer = min(interval * 2, T2)
        self._timers.append(self._loop.call_later(longer, self._retransmit, longer))
        self._transmit()

    def _transmit(self) -> None:
        if self.last_response is not None:
            self._wire.transmit(self.last_response, self.reply_to, _ignore)

    def _end_later(self, seconds: float) -> None:
        self._timers.append(self._loop.call_later(seconds, self.end))

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()


def find_reply_address(request: SipRequest, source: Peer) -> Peer:
    """Return where responses go (RFC 3261, section 18.2.2, and RFC 3581), and note it in the topmost Via."""
    via = read_via(request)
    port = source.port if "rport" in via.params or source.transport != "udp" else via.port or 5060
    # RFC 3261 asks for `received` only where it differs from the sender's own word; always is allowed, and simpler.
    values = [value for value in request.headers.get("via")[0].split(";") if not _is_written_here(value)]
    stamped = ";".join([*values, f"received={source.host}"])
    if "rport" in via.params:
        stamped += f";rport={source.port}"
    rest = request.headers.get("via")[1:]
    request.headers.set_single("Via", stamped)
    for value in rest:
        request.headers.append("Via", value)
    return Peer(source.transport, source.host, port)


def _is_written_here(parameter: str) -> bool:
    return parameter.partition("=")[0].strip().lower() in ("received", "rport")


def _ignore(_error: PeerUnreachable) -> None:
    """Ignore a failure: a response is repeated only if its request is."""
