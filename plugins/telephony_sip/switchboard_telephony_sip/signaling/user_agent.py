"""The SIP user agent of a gateway: places and takes calls, registers, and sends OPTIONS and MESSAGE."""

import asyncio
from collections.abc import Sequence

from aiosipua.message import SipRequest, SipResponse

from switchboard_telephony_sip.signaling.admission import ScannerGuard, ScannerLimits, TrunkQuotas
from switchboard_telephony_sip.signaling.dialog_state import DialogState
from switchboard_telephony_sip.signaling.dialogs import Dialog, DialogTable
from switchboard_telephony_sip.signaling.digest import SipCredentials, answer_challenge, is_stale
from switchboard_telephony_sip.signaling.endpoint import SipEndpoint
from switchboard_telephony_sip.signaling.messages import (
    ALLOW,
    MIN_SESSION_SECONDS,
    SDP,
    SUPPORTED,
    USER_AGENT,
    read_sdp,
    read_session,
    read_uri_text,
    request_session,
)
from switchboard_telephony_sip.signaling.outgoing import (
    CallRedirected,
    CallRefused,
    InviteAttempt,
    OutgoingInvite,
)
from switchboard_telephony_sip.signaling.peers import ListenAddress, Peer, resolve_peer
from switchboard_telephony_sip.signaling.reception import Reception, UserAgentEvents
from switchboard_telephony_sip.signaling.registration import Registration, RegistrationAccount

MAX_ATTEMPTS = 5
"""One without credentials, one with them, one after a stale nonce, and two with a longer session."""


class SipUserAgent:
    """User agent over all listeners.

    `advertised_host` is written into Via and Contact instead of the listeners' hosts. `trusted_certificates` is the
    path of a PEM file with the authorities of peers' TLS certificates, by default those of the system.
    """

    def __init__(
        self,
        listeners: Sequence[ListenAddress],
        events: UserAgentEvents,
        *,
        advertised_host: str | None = None,
        limits: ScannerLimits | None = None,
        trusted_certificates: str | None = None,
    ) -> None:
        read_clock = asyncio.get_running_loop().time
        self.guard = ScannerGuard(limits or ScannerLimits(), read_clock)
        self.quotas = TrunkQuotas(read_clock)
        self._dialogs: DialogTable = {}
        self.reception = Reception(events, self.guard, self.quotas, self._dialogs)
        self.endpoint = SipEndpoint(
            listeners, self.reception, advertised_host=advertised_host, trusted_certificates=trusted_certificates
        )
        self.reception.endpoint = self.endpoint
        self.is_started = False

    @property
    def dialogs(self) -> list[Dialog]:
        """The dialogs that have not ended."""
        return list(self._dialogs.values())

    async def start(self) -> None:
        """Bind the listeners; raises `OSError` if an address is not free."""
        await self.endpoint.start()
        self.is_started = True

    async def stop(self) -> None:
        """Close all sockets; calls are not hung up."""
        await self.endpoint.stop()

    # Requests of ours

    async def invite(self, invite: OutgoingInvite) -> Dialog:
        """Place a call and return it when it is answered. Cancel the task to give up.

        The call counts for its trunk until it ends. Raises `CallRefused`, `CallRedirected`, `PeerUnreachable`, or
        `TrunkBusy`.
        """
        release_slot = self.quotas.acquire_slot(invite.quota) if invite.quota else lambda: None
        call = _Call(self.endpoint, invite)
        try:
            dialog = await call.place()
        except BaseException:
            if call.attempt is None:
                release_slot()
            else:
                call.attempt.on_settled(release_slot)
            raise
        dialog.on_end(release_slot)
        dialog.enter(self._dialogs)
        return dialog

    async def options(self, peer: Peer, uri: str) -> int:
        """Ask whether a peer is alive, and return its status; raises `PeerUnreachable`."""
        return await self._request("OPTIONS", peer, f"sip:switchboard@{uri.partition(':')[2].rpartition('@')[2]}", uri)

    async def message(
        self, peer: Peer, from_uri: str, to_uri: str, text: str, credentials: SipCredentials | None = None
    ) -> int:
        """Send a text message (RFC 3428), and return the status; raises `PeerUnreachable`."""
        kind = ("Content-Type", "text/plain;charset=UTF-8")
        return await self._request("MESSAGE", peer, from_uri, to_uri, kind, text=text, credentials=credentials)

    async def _request(
        self,
        method: str,
        peer: Peer,
        from_uri: str,
        to_uri: str,
        *headers: tuple[str, str],
        text: str = "",
        credentials: SipCredentials | None = None,
    ) -> int:
        hop = await resolve_peer(peer)
        state = DialogState.begin(f"<{from_uri}>", f"<{to_uri}>", to_uri, hop, credentials=credentials)
        response = await self.endpoint.request(state, hop, method, [("User-Agent", USER_AGENT), *headers], text)
        return response.status_code

    def register(self, account: RegistrationAccount) -> Registration:
        """Begin to keep an account registered."""
        return Registration(self.endpoint, account)


class _Call:
    """Attempts of one call, which have Call-ID and From tag in common."""

    def __init__(self, endpoint: SipEndpoint, invite: OutgoingInvite) -> None:
        self._endpoint, self._invite = endpoint, invite
        self._requests = DialogState.begin(
            invite.caller,
            invite.callee,
            invite.target,
            invite.peer,
            credentials=invite.credentials,
            call_id=invite.call_id,
        )
        self._answers: list[tuple[str, str]] = []
        self._min_session = MIN_SESSION_SECONDS
        self._has_longer_session = False
        self.attempt: InviteAttempt | None = None

    async def place(self) -> Dialog:
        peer = await resolve_peer(self._invite.peer)
        for _ in range(MAX_ATTEMPTS):
            request = self._build_invite(peer)
            attempt = self.attempt = InviteAttempt(
                self._endpoint,
                request,
                peer,
                lambda response: self._invite.on_progress(response.status_code, read_sdp(response)),
            )
            response = await attempt.wait(self._invite.first_response_seconds)
            if response.status_code < 300:
                return self._establish(attempt, response)
            if not self._adapt(response, attempt.request):
                break
        if response.status_code < 400:
            contacts = [read_uri_text(value) for value in response.headers.get("contact")]
            raise CallRedirected(response.status_code, contacts)
        raise CallRefused(response)

    def _build_invite(self, peer: Peer) -> SipRequest:
        invite = self._invite
        headers = [
            ("Contact", self._endpoint.build_contact(peer, invite.contact_user)),
            ("User-Agent", USER_AGENT),
            ("Allow", ALLOW),
            ("Supported", SUPPORTED),
            *request_session(invite.session_seconds, self._min_session),
            *invite.headers,
            *self._answers,
            ("Content-Type", SDP),
        ]
        return self._requests.build_request("INVITE", headers, invite.sdp)

    def _adapt(self, response: SipResponse, request: SipRequest) -> bool:
        """Answer a challenge, or lengthen the session's interval; return whether to try again."""
        if response.status_code == 422 and not self._has_longer_session:
            wanted = response.headers.get_first("min-se") or ""
            self._has_longer_session = True
            self._answers = []  # A nonce count is not accepted again.
            self._min_session = int(wanted[:9]) if wanted.isascii() and wanted.isdigit() else MIN_SESSION_SECONDS
            return self._min_session > MIN_SESSION_SECONDS
        if self._answers and not is_stale(response):
            return False
        answer = answer_challenge(response, self._invite.credentials, request)
        self._answers = [answer] if answer else []
        return answer is not None

    def _establish(self, attempt: InviteAttempt, response: SipResponse) -> Dialog:
        state = DialogState.create_from_response(attempt.request, response, attempt.peer)
        state.authorization, state.credentials = self._answers, self._invite.credentials
        state.contact_user = self._invite.contact_user
        dialog = Dialog(self._endpoint, state, response, is_caller=True)
        dialog.local_sdp = self._invite.sdp
        attempt.acknowledge(state, response)
        dialog.session.restart(read_session(response))
        return dialog
