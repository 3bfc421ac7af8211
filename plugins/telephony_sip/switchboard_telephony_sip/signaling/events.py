"""The gateway's side of the user agent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aiosipua.message import SipRequest

from switchboard_telephony_sip.signaling.admission import TrunkQuota
from switchboard_telephony_sip.signaling.dialogs import Dialog
from switchboard_telephony_sip.signaling.digest import DigestAccount
from switchboard_telephony_sip.signaling.incoming import IncomingInvite
from switchboard_telephony_sip.signaling.peers import Peer


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
