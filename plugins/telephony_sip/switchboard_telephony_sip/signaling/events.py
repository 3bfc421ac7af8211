"""The gateway's side of the user agent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from aiosipua.message import SipRequest

from switchboard_telephony_sip.signaling.admission import TrunkQuota
from switchboard_telephony_sip.signaling.digest import DigestAccount
from switchboard_telephony_sip.signaling.incoming import IncomingInvite
from switchboard_telephony_sip.signaling.peers import Peer


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request belongs to a trunk, by its address."""

    trunk: TrunkQuota


@dataclass(frozen=True, slots=True)
class DigestRequired:
    """The request may belong to one of these users, by name, if its digest is right."""

    realm: str
    accounts: Mapping[str, DigestAccount]


@dataclass(frozen=True, slots=True)
class UnknownCaller:
    """The request belongs to no trunk. It gets no answer, and its address a strike."""


AuthenticationDecision = Admitted | DigestRequired | UnknownCaller


class UserAgentEvents(Protocol):
    """Decisions and calls that the user agent hands to the gateway."""

    def is_trunk_address(self, host: str) -> bool:
        """Return whether an address is one of a trunk: it is never ignored, because UDP senders can be forged."""

    def authenticate(self, request: SipRequest, peer: Peer) -> AuthenticationDecision:
        """Decide from memory, without waiting: this is called for each request of a stranger."""

    async def on_invite(self, invite: IncomingInvite) -> None:
        """Answer or refuse a call. The task is canceled if the caller gives up; a call that is left open gets 480."""

    async def on_message(self, request: SipRequest, peer: Peer, trunk: TrunkQuota) -> int:
        """Take a text message, and return the status."""
