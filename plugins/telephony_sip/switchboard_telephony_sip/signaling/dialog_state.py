"""Identifiers, sequence numbers, target, and route of a dialog (RFC 3261, section 12)."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from aiosipua.headers import parse_uri
from aiosipua.message import SipMessage, SipRequest, SipResponse

from switchboard_telephony_sip.signaling.digest import SipCredentials
from switchboard_telephony_sip.signaling.messages import build_request, is_sip_uri, read_cseq, read_tag, read_uri_text
from switchboard_telephony_sip.signaling.peers import Peer, is_ip_address, is_private_address, read_peer

MAX_FORWARDS = "70"
DialogKey = tuple[str, str, str]


def create_tag() -> str:
    return secrets.token_hex(8)


@dataclass(slots=True)
class DialogState:
    """State from which in-dialog requests are built; `local` and `remote` are From and To values with their tags."""

    call_id: str
    local: str
    remote: str
    remote_target: str
    source: Peer
    route_set: list[str] = field(default_factory=list)
    local_cseq: int = 0
    remote_cseq: int = -1
    contact_user: str = ""
    credentials: SipCredentials | None = None
    authorization: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def begin(
        cls,
        caller: str,
        callee: str,
        target: str,
        peer: Peer,
        *,
        credentials: SipCredentials | None,
        call_id: str = "",
    ) -> "DialogState":
        """Return a state for requests outside of dialogs; `caller` and `callee` are From and To values without tags."""
        local = f"{caller};tag={create_tag()}"
        return cls(call_id or secrets.token_hex(16), local, callee, target, peer, credentials=credentials)

    @property
    def key(self) -> DialogKey:
        return self.call_id, read_tag(self.local), read_tag(self.remote)

    @classmethod
    def create_from_response(cls, request: SipRequest, response: SipResponse, peer: Peer) -> "DialogState":
        """Return the caller's side of a dialog, whose INVITE went to `peer`."""
        return cls(
            call_id=request.call_id or "",
            local=request.headers.get_first("from") or "",
            remote=response.headers.get_first("to") or "",
            remote_target=read_target(response) or request.uri,
            route_set=list(reversed(response.headers.get("record-route"))),
            source=peer,
            local_cseq=read_cseq(request)[0],
        )

    @classmethod
    def create_from_request(cls, request: SipRequest, source: Peer, tag: str) -> "DialogState":
        """Return the callee's side of a dialog, whose local tag is `tag`."""
        return cls(
            call_id=request.call_id or "",
            local=f"{request.headers.get_first('to')};tag={tag}",
            remote=request.headers.get_first("from") or "",
            remote_target=read_target(request) or read_uri_text(request.headers.get_first("from") or ""),
            route_set=list(request.headers.get("record-route")),
            source=source,
            remote_cseq=read_cseq(request)[0],
        )

    def update_target(self, message: SipMessage) -> None:
        """Take the Contact of a target refresh (re-INVITE or UPDATE)."""
        self.remote_target = read_target(message) or self.remote_target

    def build_request(
        self, method: str, headers: Iterable[tuple[str, str]] = (), body: str = "", *, cseq: int | None = None
    ) -> SipRequest:
        """Build the next request of the dialog; an ACK has the number of its INVITE (section 12.2.1.1)."""
        if cseq is None:
            self.local_cseq += 1
        uri, routes = self.remote_target, self.route_set
        if routes and "lr" not in parse_uri(read_uri_text(routes[0])).params:
            # A strict router of RFC 2543 takes its own address as the Request-URI.
            uri, routes = read_uri_text(routes[0]), [*routes[1:], f"<{self.remote_target}>"]
        return build_request(
            method,
            uri,
            [
                ("Max-Forwards", MAX_FORWARDS),
                ("From", self.local),
                ("To", self.remote),
                ("Call-ID", self.call_id),
                ("CSeq", f"{self.local_cseq if cseq is None else cseq} {method}"),
                *(("Route", route) for route in routes),
                *headers,
            ],
            body,
        )

    def find_next_hop(self) -> Peer:
        """Return where requests of this dialog go.

        A peer behind a NAT may write its private address into Contact. Where it cannot be reached, requests go to the
        address from which the peer's messages come. Streams are reused.
        """
        named = read_uri_text(self.route_set[0]) if self.route_set else self.remote_target
        hop = read_peer(parse_uri(named), self.source.transport)
        if self.route_set:
            return hop
        is_hidden = is_private_address(hop.host) and not is_private_address(self.source.host)
        is_same_stream = hop.transport == self.source.transport != "udp" and is_ip_address(self.source.host)
        if is_hidden or is_same_stream or not hop.host:
            return self.source
        return hop


def read_target(message: SipMessage) -> str:
    """Return the URI of Contact, or an empty string."""
    contacts = message.headers.get("contact")
    target = read_uri_text(contacts[0]) if contacts else ""
    return target if is_sip_uri(target) else ""
