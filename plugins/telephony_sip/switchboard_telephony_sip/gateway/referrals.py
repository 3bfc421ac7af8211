"""Attended transfers that the far end of a call asks for by REFER (RFC 3515, RFC 5589)."""

from aiosipua.headers import parse_uri

from switchboard_telephony_sip.gateway.calls import GatewayCall
from switchboard_telephony_sip.gateway.dialing import FIRST_RESPONSE_SECONDS, CallInviter
from switchboard_telephony_sip.gateway.directory import TrunkLine
from switchboard_telephony_sip.gateway.legs import DECLINED
from switchboard_telephony_sip.media import NoCommonMedia
from switchboard_telephony_sip.signaling import (
    CallRedirected,
    CallRefused,
    CallTimeout,
    OutgoingInvite,
    Peer,
    PeerUnreachable,
    TrunkBusy,
)
from switchboard_telephony_sip.signaling.peers import read_peer


async def follow_referral(agent: CallInviter, call: GatewayCall, target: str, replaces: str) -> int:
    """Continue a call in another dialog of its trunk, as the far end's REFER asks (RFC 5589, section 7).

    `Require` keeps a trunk that ignores Replaces from dialing a number instead. Returns the SIP status.
    """
    leg = call.leg
    peer = _choose_peer(leg.line, target) if leg is not None else None
    if leg is None or peer is None:
        return DECLINED
    invite = OutgoingInvite(
        target,
        peer,
        leg.dialog.state.local.partition(";tag=")[0],
        f"<{target}>",
        leg.media.create_offer(),
        (("Replaces", replaces), ("Require", "replaces")),
        leg.line.credentials,
        first_response_seconds=FIRST_RESPONSE_SECONDS,
        contact_user=leg.line.trunk.username,
    )
    try:
        dialog = await agent.invite(invite)
    except CallRefused as error:
        return error.status
    except (CallRedirected, CallTimeout, PeerUnreachable, TrunkBusy):
        return 480
    try:
        leg.media.accept_answer(dialog.remote_sdp)
    except NoCommonMedia:
        await dialog.bye()
        return 488
    call.continue_in(dialog)
    return 200


def _choose_peer(line: TrunkLine, target: str) -> Peer | None:
    """Return the trunk's address for a call to a URI; None for a URI that is not the trunk's."""
    uri = parse_uri(target)
    if uri.host == line.domain or line.has_address(uri.host) or uri.host in {peer.host for peer in line.peers}:
        return line.peers[0] if uri.port is None else read_peer(uri, line.trunk.transport)
    return None
