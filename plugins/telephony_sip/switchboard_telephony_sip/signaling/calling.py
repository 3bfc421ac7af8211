"""Placing a call: INVITE with its challenges, until it is answered or refused."""

import secrets

from aiosipua.message import SipRequest, SipResponse

from switchboard_telephony_sip.signaling.admission import CallSlot
from switchboard_telephony_sip.signaling.dialog_state import MAX_FORWARDS, DialogState, create_tag
from switchboard_telephony_sip.signaling.dialogs import Dialog, DialogTable
from switchboard_telephony_sip.signaling.digest import answer_challenge, is_stale
from switchboard_telephony_sip.signaling.endpoint import SipEndpoint
from switchboard_telephony_sip.signaling.messages import (
    ALLOW,
    SDP,
    SUPPORTED,
    build_request,
    read_sdp,
    read_uri_text,
)
from switchboard_telephony_sip.signaling.outgoing import (
    CallRedirected,
    CallRefused,
    InviteAttempt,
    OutgoingInvite,
)
from switchboard_telephony_sip.signaling.peers import Peer, resolve_peer
from switchboard_telephony_sip.signaling.session_timers import MIN_SESSION_SECONDS, read_session, request_session

MAX_ATTEMPTS = 5
"""One without credentials, one with them, one after a stale nonce, and two with a longer session."""


async def send_invite(
    endpoint: SipEndpoint, invite: OutgoingInvite, dialogs: DialogTable, slot: CallSlot | None
) -> Dialog:
    """Place a call and return it when it is answered; the slot is released with the call's end.

    Raises `CallRefused`, `CallRedirected`, or `PeerUnreachable`.
    """
    call = _Call(endpoint, invite)
    try:
        dialog = await call.place()
    except BaseException:
        if slot is not None:
            call.release_later(slot)
        raise
    if slot is not None:
        dialog.on_end(slot.release)
    dialogs.add(dialog)
    return dialog


class _Call:
    """Attempts of one call, which have Call-ID and From tag in common."""

    def __init__(self, endpoint: SipEndpoint, invite: OutgoingInvite) -> None:
        self._endpoint, self._invite = endpoint, invite
        self._call_id = invite.call_id or secrets.token_hex(16)
        self._tag = create_tag()
        self._answers: list[tuple[str, str]] = []
        self._min_session = MIN_SESSION_SECONDS
        self._has_longer_session = False
        self._attempt: InviteAttempt | None = None

    async def place(self) -> Dialog:
        peer = await resolve_peer(self._invite.peer)
        for number in range(1, MAX_ATTEMPTS + 1):
            attempt = self._attempt = InviteAttempt(
                self._endpoint, self._build_invite(number, peer), peer, self._report_progress
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

    def release_later(self, slot: CallSlot) -> None:
        """Release the slot when the peer has ended the call, too."""
        if self._attempt is None:
            slot.release()
        else:
            self._attempt.on_settled(slot.release)

    def _build_invite(self, number: int, peer: Peer) -> SipRequest:
        invite = self._invite
        return build_request(
            "INVITE",
            invite.target,
            [
                ("Max-Forwards", MAX_FORWARDS),
                ("From", f"{invite.caller};tag={self._tag}"),
                ("To", invite.callee),
                ("Call-ID", self._call_id),
                ("CSeq", f"{number} INVITE"),
                ("Contact", self._endpoint.build_contact(peer, invite.contact_user)),
                ("User-Agent", self._endpoint.user_agent),
                ("Allow", ALLOW),
                ("Supported", SUPPORTED),
                *request_session(invite.session_seconds, self._min_session),
                *invite.headers,
                *self._answers,
                ("Content-Type", SDP),
            ],
            invite.sdp,
        )

    def _report_progress(self, response: SipResponse) -> None:
        if self._invite.on_progress is not None:
            self._invite.on_progress(response.status_code, read_sdp(response))

    def _adapt(self, response: SipResponse, request: SipRequest) -> bool:
        """Answer a challenge, or lengthen the session's interval; return whether to try again."""
        if response.status_code == 422 and not self._has_longer_session:
            wanted = response.headers.get_first("min-se") or ""
            self._has_longer_session = True
            self._answers = []  # A nonce count is not accepted again.
            self._min_session = int(wanted[:9]) if wanted.isascii() and wanted.isdigit() else MIN_SESSION_SECONDS
            return self._min_session > MIN_SESSION_SECONDS
        credentials = self._invite.credentials
        if response.status_code not in (401, 407) or credentials is None:
            return False
        if self._answers and not is_stale(response):
            return False
        answer = answer_challenge(response, credentials, request)
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
