"""Reception of requests: refusal of strangers, authentication, new calls, and the gateway's side of them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aiosipua.message import SipRequest

from switchboard_telephony_sip.signaling.admission import ScannerGuard, TrunkBusy, TrunkQuota, TrunkQuotas
from switchboard_telephony_sip.signaling.dialogs import Dialog, DialogTable
from switchboard_telephony_sip.signaling.digest import DigestAccount, DigestVerifier
from switchboard_telephony_sip.signaling.endpoint import SipEndpoint
from switchboard_telephony_sip.signaling.incoming import IncomingInvite
from switchboard_telephony_sip.signaling.messages import (
    ALLOW,
    MIN_SESSION_SECONDS,
    SDP,
    MalformedMessage,
    SessionTooShort,
    accept_session,
    build_response,
    list_options,
    read_cseq,
    read_replaces,
    read_sdp,
    read_tag,
)
from switchboard_telephony_sip.signaling.peers import Peer
from switchboard_telephony_sip.signaling.transactions import ServerTransaction

CHALLENGE_WEIGHT = 0.25
"""A first request without credentials is how digest begins; one that never continues is a scan."""
METHODS = ("INVITE", "OPTIONS", "MESSAGE")


@dataclass(frozen=True, slots=True)
class DigestRequired:
    """The request may belong to one of these users, by name, if its digest is right. Several may share a name."""

    realm: str
    accounts: Mapping[str, Sequence[DigestAccount]]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request belongs to one of these trunks, by its address; of several, to the trunk that has the called number.

    `digest`: users of other trunks with this address, who are asked for their passwords if none has the number.
    """

    trunks: Sequence[TrunkQuota]
    digest: DigestRequired | None = None


@dataclass(frozen=True, slots=True)
class UnknownCaller:
    """The request belongs to no trunk. It gets no answer, and its address a strike."""


AuthenticationDecision = Admitted | DigestRequired | UnknownCaller


class TrunkUndecided(Exception):
    """The trunk of a request cannot be found out now. The request is refused with 503."""


class UserAgentEvents(Protocol):
    """Decisions and calls that the user agent hands to the gateway."""

    def is_trunk_address(self, host: str) -> bool:
        """Return whether an address is one of a trunk: it is never ignored, because UDP senders can be forged."""

    def authenticate(self, request: SipRequest, peer: Peer) -> AuthenticationDecision:
        """Decide from memory, without waiting: this is called for each request of a stranger."""

    async def choose_trunk(
        self, request: SipRequest, trunks: Sequence[TrunkQuota], replaces: Dialog | None
    ) -> TrunkQuota | None:
        """Return which of several trunks a request belongs to, by the called number or by the call that it replaces.

        None if it belongs to none of them. Raises `TrunkUndecided`.
        """

    async def on_invite(self, invite: IncomingInvite) -> None:
        """Answer or refuse a call. The task is canceled if the caller gives up; a call that is left open gets 480."""

    async def on_message(self, request: SipRequest, peer: Peer, trunk: TrunkQuota) -> int:
        """Take a text message, and return the status."""


class _Refused(Exception):
    def __init__(self, status: int, *headers: tuple[str, str]) -> None:
        super().__init__(status)
        self.status, self.headers = status, headers


class Reception:
    """Handler of all requests that belong to no transaction yet."""

    endpoint: SipEndpoint

    def __init__(self, events: UserAgentEvents, guard: ScannerGuard, quotas: TrunkQuotas, dialogs: DialogTable) -> None:
        self.accepts_calls = True
        """False while the gateway drains: INVITE and OPTIONS are answered with 503."""
        self._events, self._guard, self._quotas, self._dialogs = events, guard, quotas, dialogs
        self._verifier = DigestVerifier()
        self._ringing: dict[tuple[str, ...], tuple[IncomingInvite, asyncio.Task[None]]] = {}

    def is_welcome(self, host: str) -> bool:
        """Return whether to read a message: always from trunks, and within limits from strangers."""
        return self._is_known(host) or (not self._guard.is_ignored(host) and self._guard.admit_stranger())

    def note_peer(self, host: str) -> None:
        """Read the answers of a host to which the gateway has sent a request."""
        self._guard.trust(host)

    def _is_known(self, host: str) -> bool:
        return self._guard.is_trusted(host) or self._events.is_trunk_address(host)

    def handle_malformed(self, error: MalformedMessage, source: Peer) -> None:
        if not self._is_known(source.host):
            self._guard.strike(source.host)
        elif error.request is not None:
            self.endpoint.reply_statelessly(error.request, source, error.status)

    def handle_stray_request(self, request: SipRequest, source: Peer) -> Callable[[ServerTransaction], None] | None:
        """Return the handler for a new transaction, or None for a request that is refused without one."""
        local_tag = read_tag(request.headers.get_first("to"))
        if local_tag:
            dialog = self._find_dialog(request, local_tag)
            if dialog is None:
                self._refuse(request, source, 481)
            return None if dialog is None else dialog.receive
        admitted = self._authenticate(request, source)
        if admitted is None:
            return None
        if request.method not in METHODS:
            self.endpoint.reply_statelessly(request, source, 405, [("Allow", ALLOW)])
            return None
        return lambda transaction: self._receive(transaction, admitted)

    def _find_dialog(self, request: SipRequest, local_tag: str) -> Dialog | None:
        remote_tag = read_tag(request.headers.get_first("from"))
        return self._dialogs.get((request.call_id or "", local_tag, remote_tag))

    def _refuse(self, request: SipRequest, source: Peer, status: int) -> None:
        """Refuse a request of a trunk; strangers get no answer."""
        if self._is_known(source.host):
            self.endpoint.reply_statelessly(request, source, status)
        else:
            self._guard.strike(source.host)

    def _authenticate(self, request: SipRequest, source: Peer) -> Admitted | None:
        match self._events.authenticate(request, source):
            case Admitted() as admitted:
                return admitted
            case DigestRequired() as required:
                return self._check_digest(request, source, required)
        self._refuse(request, source, 403)
        return None

    def _check_digest(self, request: SipRequest, source: Peer, required: DigestRequired) -> Admitted | None:
        accounts = self._verifier.verify(request, required.realm, required.accounts, source.host)
        if accounts:
            self._guard.trust(source.host)
            return Admitted([account.trunk for account in accounts])
        has_answer = "Authorization" in request.headers
        stale = has_answer and self._verifier.was_stale(request, source.host)
        if has_answer and not stale:
            self._guard.strike(source.host)
        elif not self._is_known(source.host):
            self._guard.strike(source.host, CHALLENGE_WEIGHT)
        self.endpoint.reply_statelessly(request, source, 401, [self._build_challenge(required, source, stale=stale)])
        return None

    def _build_challenge(self, required: DigestRequired, source: Peer, *, stale: bool = False) -> tuple[str, str]:
        return "WWW-Authenticate", self._verifier.build_challenge(required.realm, source.host, stale=stale)

    async def _choose_trunk(
        self, request: SipRequest, source: Peer, admitted: Admitted, replaces: Dialog | None = None
    ) -> TrunkQuota:
        """Return the trunk to which a request belongs. Raises `_Refused`."""
        if len(admitted.trunks) == 1 and admitted.digest is None:
            return admitted.trunks[0]
        try:
            trunk = await self._events.choose_trunk(request, admitted.trunks, replaces)
        except TrunkUndecided:
            raise _Refused(503, ("Retry-After", "1")) from None
        if trunk is not None:
            return trunk
        if admitted.digest is not None:
            raise _Refused(401, self._build_challenge(admitted.digest, source))
        raise _Refused(404)

    def _receive(self, transaction: ServerTransaction, admitted: Admitted) -> None:
        request = transaction.request
        try:
            self._check_extensions(request)
            if request.method == "OPTIONS":
                raise _Refused(200 if self.accepts_calls else 503, ("Accept", SDP), ("Allow", ALLOW))
            if request.method == "MESSAGE":
                self.endpoint.spawn(self._handle_message(transaction, admitted))
            else:
                self._receive_invite(transaction, admitted)
        except _Refused as refusal:
            self._respond(transaction, refusal.status, *refusal.headers)

    def _respond(self, transaction: ServerTransaction, status: int, *headers: tuple[str, str]) -> None:
        transaction.respond(self.endpoint.build_reply(transaction.request, status, *headers))

    def _check_extensions(self, request: SipRequest) -> None:
        unknown = list_options(request, "require") - {"timer", "replaces"}
        if unknown:
            raise _Refused(420, ("Unsupported", ", ".join(sorted(unknown))))
        if request.headers.get_first("content-encoding") not in (None, "identity"):
            raise _Refused(415, ("Accept-Encoding", "identity"))

    async def _handle_message(self, transaction: ServerTransaction, admitted: Admitted) -> None:
        request, source = transaction.request, transaction.source
        reply = _Refused(500)
        try:
            trunk = await self._choose_trunk(request, source, admitted)
            reply = _Refused(await self._events.on_message(request, source, trunk))
        except _Refused as refusal:
            reply = refusal
        finally:
            self._respond(transaction, reply.status, *reply.headers)

    def _receive_invite(self, transaction: ServerTransaction, admitted: Admitted) -> None:
        request = transaction.request
        if not self.accepts_calls:
            raise _Refused(503, ("Retry-After", "5"))
        if request.body and read_sdp(request) is None:
            raise _Refused(415, ("Accept", SDP))
        # Without the header Accept, the caller accepts descriptions.
        accepted = {value.partition(";")[0].strip() for value in list_options(request, "accept")} or {SDP}
        if not {SDP, "application/*", "*/*"} & accepted:
            raise _Refused(406, ("Accept", SDP))
        if any(_identify_call(request) == _identify_call(invite.request) for invite, _ in self._ringing.values()):
            raise _Refused(482)  # A fork of the same call that came by another way (section 8.2.2.2).
        replaces = self._find_replaced(request)
        try:
            session = accept_session(request)
        except SessionTooShort:
            raise _Refused(422, ("Min-SE", str(MIN_SESSION_SECONDS))) from None
        transaction.respond(build_response(request, 100))
        invite = IncomingInvite(self.endpoint, transaction, replaces=replaces, session=session, dialogs=self._dialogs)
        self._begin(transaction, invite, admitted)

    def _begin(self, transaction: ServerTransaction, invite: IncomingInvite, admitted: Admitted) -> None:
        task = self.endpoint.spawn(self._handle_invite(invite, admitted))
        self._ringing[transaction.key] = invite, task

        def finish(ended: "asyncio.Task[None]") -> None:
            self._ringing.pop(transaction.key, None)
            failed = not ended.cancelled() and ended.exception() is not None
            invite.reject(500 if failed else 480)

        task.add_done_callback(finish)

    async def _handle_invite(self, invite: IncomingInvite, admitted: Admitted) -> None:
        try:
            trunk = await self._choose_trunk(invite.request, invite.peer, admitted, invite.replaces)
            invite.enter(trunk, self._quotas.acquire_slot(trunk))
        except _Refused as refusal:
            invite.reject(refusal.status, headers=refusal.headers)
        except TrunkBusy:
            invite.reject(503, headers=[("Retry-After", "1")])
        else:
            await self._events.on_invite(invite)

    def _find_replaced(self, request: SipRequest) -> Dialog | None:
        """Return the call that a new one takes over (RFC 3891, section 3)."""
        value = request.headers.get_first("replaces")
        if value is None:
            return None
        header = read_replaces(value)
        if header is None:
            raise _Refused(400)
        dialog = self._dialogs.get(header.key)
        if dialog is None:
            raise _Refused(481)
        if header.is_early_only:
            raise _Refused(486)
        return dialog

    def handle_ack(self, request: SipRequest) -> None:
        """Take the ACK of a 2xx response."""
        dialog = self._find_dialog(request, read_tag(request.headers.get_first("to")))
        if dialog is not None:
            dialog.acknowledgments.receive(read_cseq(request)[0], read_sdp(request))

    def handle_cancel(self, transaction: ServerTransaction) -> None:
        """Give up a call that was not answered, or an offer within a call."""
        found = self._ringing.get(transaction.key)
        if found is None:
            self._respond(transaction, 487)
            return
        invite, task = found
        invite.reject(487)
        task.cancel()


def _identify_call(request: SipRequest) -> tuple[str | None, str | None, str]:
    return request.call_id, request.headers.get_first("cseq"), read_tag(request.headers.get_first("from"))
