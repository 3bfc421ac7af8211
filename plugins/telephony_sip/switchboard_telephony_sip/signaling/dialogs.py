"""An established call of either direction (RFC 3261, sections 12 to 15)."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

from aiosipua.message import SipMessage, SipRequest, SipResponse

from switchboard_telephony_sip.signaling.acknowledgments import Acknowledgments
from switchboard_telephony_sip.signaling.dialog_events import DialogEvents
from switchboard_telephony_sip.signaling.dialog_requests import DialogRequests
from switchboard_telephony_sip.signaling.dialog_session import DialogSession
from switchboard_telephony_sip.signaling.dialog_state import DialogState
from switchboard_telephony_sip.signaling.digest import answer_challenge
from switchboard_telephony_sip.signaling.endpoint import SipEndpoint
from switchboard_telephony_sip.signaling.messages import ALLOW, SDP, SUPPORTED, read_sdp
from switchboard_telephony_sip.signaling.outgoing import CallRefused, CallTimeout, InviteAttempt
from switchboard_telephony_sip.signaling.peers import Peer, PeerUnreachable
from switchboard_telephony_sip.signaling.server_transactions import ServerTransaction
from switchboard_telephony_sip.signaling.session_timers import read_session
from switchboard_telephony_sip.signaling.transactions import TransactionTimeout
from switchboard_telephony_sip.signaling.transfers import ReplacesHeader, build_refer_to

MAX_GLARES: Final = 5


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
        self._on_end: list[Callable[[], None]] = []
        self.acknowledgments = Acknowledgments()
        self._offers = asyncio.Lock()
        self._referral: asyncio.Queue[int | None] | None = None
        self._requests = DialogRequests(self)
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
    def peer(self) -> Peer:
        """The address from which the dialog's messages come."""
        return self.state.source

    @property
    def events(self) -> DialogEvents:
        return self._events.result()

    @events.setter
    def events(self, events: DialogEvents) -> None:
        self._events.set_result(events)

    async def wait_for_events(self) -> DialogEvents:
        return await asyncio.shield(self._events)

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call back once, when the dialog has ended, for bookkeeping; the owner uses `events`."""
        if self.is_ended:
            callback()
        else:
            self._on_end.append(callback)

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
        with suppress(CallTimeout, PeerUnreachable):
            await self.request("BYE")

    async def info(self, content_type: str, body: str) -> int:
        """Send an INFO, such as a digit, and return the status; raises `CallTimeout` or `PeerUnreachable`."""
        return (await self.request("INFO", [("Content-Type", content_type)], body)).status_code

    async def reinvite(self, sdp: str) -> str:
        """Offer a new description and return the answer; repeats an offer that crosses one of the peer (491).

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
            self.local_sdp, self.remote_sdp = sdp, read_sdp(response) or self.remote_sdp
            return self.remote_sdp

    async def refer(self, target: str, *, replaces: "Dialog | None" = None) -> AsyncIterator[int]:
        """Ask the peer to call `target`, in place of the other end of `replaces`; yield the statuses that it notifies.

        Raises `CallRefused` if the peer does not accept. The iterator ends with a final status, or with the dialog.
        """
        if self._referral is not None:
            raise RuntimeError("a transfer is under way")
        referral: asyncio.Queue[int | None] = asyncio.Queue()
        self._referral = referral
        taken_over = ReplacesHeader(*_swap_tags(replaces)) if replaces else None
        local_uri = self.state.local.partition(";tag=")[0]
        try:
            response = await self.request(
                "REFER",
                [("Refer-To", build_refer_to(target, taken_over)), ("Referred-By", local_uri), self.build_contact()],
            )
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

    async def request(self, method: str, headers: list[tuple[str, str]] | None = None, body: str = "") -> SipResponse:
        """Send a request in the dialog, answer a challenge, and return the final response.

        The dialog ends with 408, 481, and silence (section 12.2.1.2). Raises `CallTimeout` or `PeerUnreachable`.
        """
        answer: list[tuple[str, str]] = []
        while True:
            request = self.state.build_request(method, [*(headers or []), *answer], body)
            try:
                response = await self.endpoint.ask(request, self.state.find_next_hop())
            except TransactionTimeout as error:
                self.lose()
                raise CallTimeout(str(error)) from error
            if answer or (found := self._answer_challenge(response, request)) is None:
                break
            answer = [found]
        if response.status_code in (408, 481):
            self.lose()
        return response

    def _answer_challenge(self, response: SipResponse, request: SipRequest) -> tuple[str, str] | None:
        if response.status_code not in (401, 407) or self.state.credentials is None:
            return None
        return answer_challenge(response, self.state.credentials, request)

    async def _invite(self, sdp: str) -> SipResponse:
        self.is_inviting = True
        headers = [self.build_contact(), ("Allow", ALLOW), ("Supported", SUPPORTED), ("Content-Type", SDP)]
        headers += self.session.list_headers()
        try:
            response, attempt = await self._attempt(headers, sdp)
            if (answer := self._answer_challenge(response, attempt.request)) is not None:
                response, attempt = await self._attempt([*headers, answer], sdp)
            if response.status_code < 300:
                self.state.update_target(response)
                attempt.acknowledge(self.state, response)
                self.session.restart(read_session(response))
            elif response.status_code in (408, 481):
                self.lose()
            return response
        finally:
            self.is_inviting = False

    async def _attempt(self, headers: list[tuple[str, str]], sdp: str) -> tuple[SipResponse, InviteAttempt]:
        request = self.state.build_request("INVITE", headers, sdp)
        hop = self.state.find_next_hop()
        attempt = InviteAttempt(self.endpoint, request, hop, lambda _: None, dismisses_success=False)
        return await attempt.wait(), attempt

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
        self._requests.receive(transaction)


def _swap_tags(dialog: Dialog) -> tuple[str, str, str]:
    return dialog.call_id, dialog.remote_tag, dialog.local_tag
