"""Placing a call over an account's trunks, in order, until one takes it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import structlog
from aiosipua.headers import parse_uri, stringify_uri

from switchboard_telephony_sip.gateway.directory import GatewayAccount, TrunkLine
from switchboard_telephony_sip.gateway.legs import Leg, adopt_answer
from switchboard_telephony_sip.gateway.outcomes import FAILOVER_STATUSES, NOT_ANSWERED, CallEnd, describe_refusal
from switchboard_telephony_sip.gateway.phone_numbers import ANONYMOUS, write_number
from switchboard_telephony_sip.media.place import MediaPlace, NoFreePorts
from switchboard_telephony_sip.media.session import MediaSession
from switchboard_telephony_sip.media.session_description import NoCommonMedia
from switchboard_telephony_sip.signaling.admission import TrunkBusy
from switchboard_telephony_sip.signaling.dialogs import Dialog
from switchboard_telephony_sip.signaling.outgoing import CallRedirected, CallRefused, OutgoingInvite
from switchboard_telephony_sip.signaling.peers import Peer, PeerUnreachable, read_peer

logger = structlog.get_logger()
FIRST_RESPONSE_SECONDS: Final = 4.0
"""A host that sends nothing for so long is passed over."""
MAX_REDIRECTS: Final = 3


class CallInviter(Protocol):
    """The part of the user agent that places calls."""

    async def invite(self, invite: OutgoingInvite) -> Dialog: ...


@dataclass(frozen=True, slots=True)
class DialOrder:
    """A number to call, in E.164, with the caller id; `on_ringing` is called once, when the telephone rings."""

    to_number: str
    caller_id: str
    ring_seconds: float
    headers: Mapping[str, str] = field(default_factory=dict)
    on_ringing: Callable[[], None] = lambda: None


class DialFailed(Exception):
    """Nobody answered. `end` says why."""

    def __init__(self, end: CallEnd) -> None:
        super().__init__(end.message or end.outcome)
        self.end = end


class _NextTrunk(DialFailed):
    """This host or trunk does not take the call."""


class _Attempt:
    """Progress of one order over all trunks."""

    def __init__(self, order: DialOrder) -> None:
        self.order = order
        self.has_rung = False

    def take_progress(self, status: int, sdp: str | None) -> None:
        if not self.has_rung:
            self.has_rung = True
            self.order.on_ringing()


async def dial(agent: CallInviter, place: MediaPlace, account: GatewayAccount, order: DialOrder) -> Leg:
    """Call a number over the first trunk that takes the call, and return when it is answered.

    The next host, and then the next trunk, is tried while nobody's telephone rang: after a 5xx, without an answer, and
    at the trunk's limits. Raises `DialFailed`. A canceled task gives the call up.
    """
    attempt, last = _Attempt(order), CallEnd("failed", "the account has no trunk", status=503)
    try:
        async with asyncio.timeout(order.ring_seconds):
            for line in account.lines:
                for peer in line.peers:
                    try:
                        return await _call_over(agent, place, attempt, line, peer)
                    except _NextTrunk as error:
                        last = error.end
                        logger.warning("SIP trunk did not take a call", trunk=line.trunk.name, reason=last.message)
    except TimeoutError:
        raise DialFailed(NOT_ANSWERED) from None
    except NoFreePorts as error:
        raise DialFailed(CallEnd("failed", str(error), status=503)) from error
    except NoCommonMedia:
        raise DialFailed(describe_refusal(488)) from None
    raise DialFailed(last)


async def _call_over(agent: CallInviter, place: MediaPlace, attempt: _Attempt, line: TrunkLine, peer: Peer) -> Leg:
    media = await MediaSession.open(place, line.media_preferences)
    try:
        dialog = await _invite(agent, _build_invite(attempt, line, peer, media.create_offer()), attempt)
        await adopt_answer(dialog, media)
    except BaseException:
        await media.close()
        raise
    return Leg.attach(line, dialog, media)


async def _invite(agent: CallInviter, invite: OutgoingInvite, attempt: _Attempt) -> Dialog:
    """Place a call over one host, and follow its redirections."""
    for _ in range(MAX_REDIRECTS + 1):
        try:
            return await agent.invite(invite)
        except CallRefused as error:
            passes_on = error.status in FAILOVER_STATUSES and not attempt.has_rung
            raise (_NextTrunk if passes_on else DialFailed)(describe_refusal(error.status)) from error
        except CallRedirected as error:
            invite = _follow(invite, error)
        except (PeerUnreachable, TrunkBusy) as error:
            end = CallEnd("failed", str(error), "503" if isinstance(error, TrunkBusy) else "408", 503)
            raise (DialFailed if attempt.has_rung else _NextTrunk)(end) from error
    raise DialFailed(describe_refusal(482))


def _follow(invite: OutgoingInvite, redirected: CallRedirected) -> OutgoingInvite:
    """Return the INVITE to the first contact of a 302 that keeps the number.

    Another number would pass the organization's allowed destinations by, so the call ends there. A Request-URI has no
    method and no headers (RFC 3261, section 19.1.1), and those of the contact would change the caller's (19.1.5).
    """
    for contact in redirected.contacts:
        uri = parse_uri(contact)
        if uri.user == parse_uri(invite.target).user:
            uri.headers.clear()
            uri.params.pop("method", None)
            return replace(invite, target=stringify_uri(uri), peer=read_peer(uri, invite.peer.transport))
    message = f"the destination has moved to another number (SIP {redirected.status})"
    raise DialFailed(CallEnd("failed", message, str(redirected.status)))


def _build_invite(attempt: _Attempt, line: TrunkLine, peer: Peer, offer: str) -> OutgoingInvite:
    order, trunk = attempt.order, line.trunk
    target = f"sip:{write_number(order.to_number, trunk)}@{line.domain}"
    caller = f"sip:{write_number(order.caller_id, trunk)}@{line.domain}"
    headers = list(order.headers.items())
    if order.caller_id == ANONYMOUS:
        caller = "sip:anonymous@anonymous.invalid"
        headers.append(("Privacy", "id"))
    elif trunk.caller_identity == "p-asserted-identity":
        headers.append(("P-Asserted-Identity", f"<{caller}>"))
    return OutgoingInvite(
        target,
        peer,
        f"<{caller}>",
        f"<{target}>",
        offer,
        tuple(headers),
        line.credentials,
        line.quota,
        attempt.take_progress,
        FIRST_RESPONSE_SECONDS,
        contact_user=trunk.username,
    )
