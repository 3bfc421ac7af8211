"""The SIP user agent of a gateway: places and takes calls, registers, and sends OPTIONS and MESSAGE."""

import asyncio
import secrets
from collections.abc import Callable, Sequence

from aiosipua.message import SipResponse

from switchboard_telephony_sip.signaling.admission import ScannerGuard, ScannerLimits, TrunkQuotas
from switchboard_telephony_sip.signaling.calling import send_invite
from switchboard_telephony_sip.signaling.dialog_state import MAX_FORWARDS, create_tag
from switchboard_telephony_sip.signaling.dialogs import Dialog, DialogTable
from switchboard_telephony_sip.signaling.digest import SipCredentials, answer_challenge
from switchboard_telephony_sip.signaling.endpoint import SipEndpoint, TracedMessage
from switchboard_telephony_sip.signaling.events import UserAgentEvents
from switchboard_telephony_sip.signaling.messages import build_request
from switchboard_telephony_sip.signaling.outgoing import CallTimeout, OutgoingInvite
from switchboard_telephony_sip.signaling.peers import ListenAddress, Peer, resolve_peer
from switchboard_telephony_sip.signaling.reception import Reception
from switchboard_telephony_sip.signaling.registration import Registration, RegistrationAccount
from switchboard_telephony_sip.signaling.transactions import TransactionTimeout


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
        user_agent: str = "Switchboard",
        limits: ScannerLimits | None = None,
        trusted_certificates: str | None = None,
    ) -> None:
        read_clock = asyncio.get_running_loop().time
        self.guard = ScannerGuard(limits or ScannerLimits(), read_clock)
        self.quotas = TrunkQuotas(read_clock)
        self._dialogs = DialogTable()
        self._reception = Reception(events, self.guard, self.quotas, self._dialogs)
        self.endpoint = SipEndpoint(
            listeners,
            self._reception,
            advertised_host=advertised_host,
            user_agent=user_agent,
            trusted_certificates=trusted_certificates,
        )
        self._reception.endpoint = self.endpoint
        self.is_started = False

    @property
    def accepts_calls(self) -> bool:
        """False while the gateway drains: INVITE and OPTIONS are answered with 503."""
        return self._reception.accepts_calls

    @accepts_calls.setter
    def accepts_calls(self, accepts: bool) -> None:
        self._reception.accepts_calls = accepts

    async def start(self) -> None:
        """Bind the listeners; raises `OSError` if an address is not free."""
        await self.endpoint.start()
        self.is_started = True

    async def stop(self) -> None:
        """Close all sockets; calls are not hung up."""
        await self.endpoint.stop()

    @property
    def dialogs(self) -> list[Dialog]:
        return self._dialogs.list_dialogs()

    def set_trace(self, trace: Callable[[TracedMessage], None] | None) -> None:
        """Pass on each message that is read or sent."""
        self.endpoint.trace = trace

    # Requests of ours

    async def invite(self, invite: OutgoingInvite) -> Dialog:
        """Place a call and return it when it is answered. Cancel the task to give up.

        Raises `CallRefused`, `CallRedirected`, `PeerUnreachable`, or `TrunkBusy`.
        """
        slot = self.quotas.acquire_slot(invite.quota) if invite.quota else None
        return await send_invite(self.endpoint, invite, self._dialogs, slot)

    async def options(self, peer: Peer, uri: str) -> int:
        """Ask whether a peer is alive, and return its status.

        Raises `CallTimeout` or `PeerUnreachable`.
        """
        local = f"<sip:switchboard@{uri.partition(':')[2].rpartition('@')[2]}>"
        return (await self._request("OPTIONS", peer, uri, (local, f"<{uri}>"))).status_code

    async def message(
        self, peer: Peer, from_uri: str, to_uri: str, text: str, credentials: SipCredentials | None = None
    ) -> int:
        """Send a text message (RFC 3428), and return the status; raises `CallTimeout` or `PeerUnreachable`."""
        addresses = f"<{from_uri}>", f"<{to_uri}>"
        return (await self._request("MESSAGE", peer, to_uri, addresses, credentials=credentials, text=text)).status_code

    async def _request(
        self,
        method: str,
        peer: Peer,
        uri: str,
        addresses: tuple[str, str],
        *,
        credentials: SipCredentials | None = None,
        text: str = "",
    ) -> SipResponse:
        hop = await resolve_peer(peer)
        call_id, tag = secrets.token_hex(16), create_tag()
        answers: list[tuple[str, str]] = []
        kind = [("Content-Type", "text/plain;charset=UTF-8")] if text else []
        for number in (1, 2):
            headers = [
                ("Max-Forwards", MAX_FORWARDS),
                ("From", f"{addresses[0]};tag={tag}"),
                ("To", addresses[1]),
                ("Call-ID", call_id),
                ("CSeq", f"{number} {method}"),
                ("User-Agent", self.endpoint.user_agent),
                *kind,
                *answers,
            ]
            request = build_request(method, uri, headers, text)
            try:
                response = await self.endpoint.ask(request, hop)
            except TransactionTimeout as error:
                raise CallTimeout(str(error)) from error
            if response.status_code not in (401, 407) or credentials is None:
                break
            answer = answer_challenge(response, credentials, request)
            if answer is None:
                break
            answers = [answer]
        return response

    def register(self, account: RegistrationAccount) -> Registration:
        """Begin to keep an account registered."""
        registration = Registration(self.endpoint, account)
        registration.start()
        return registration
