"""A trunk on this machine: a SIP user agent whose telephones answer by the end of the number that is called."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aiosipua.message import SipRequest
from switchboard_telephony_sip.media.place import MediaPlace
from switchboard_telephony_sip.media.session import MediaSession
from switchboard_telephony_sip.media.session_description import MediaPreferences
from switchboard_telephony_sip.signaling.admission import TrunkQuota
from switchboard_telephony_sip.signaling.dialogs import Dialog, DialogEvents
from switchboard_telephony_sip.signaling.digest import SipCredentials
from switchboard_telephony_sip.signaling.incoming import IncomingInvite
from switchboard_telephony_sip.signaling.outgoing import OutgoingInvite
from switchboard_telephony_sip.signaling.peers import ListenAddress, Peer
from switchboard_telephony_sip.signaling.reception import Admitted, AuthenticationDecision
from switchboard_telephony_sip.signaling.user_agent import SipUserAgent

from tests.fixtures.eventually import eventually
from tests.fixtures.media_relay import MediaRelay

REFUSALS: Mapping[str, int] = {"20": 486, "22": 503, "23": 404, "26": 403, "27": 488}
"""Answers by the last two digits. 21 rings and never answers, 25 does so once `may_ring` is set; all others answer."""


class PhoneEvents(DialogEvents):
    """The far end of a call."""

    def __init__(self, media: MediaSession) -> None:
        self.over = asyncio.Event()
        self.referrals: list[tuple[str, str | None]] = []
        self._media = media

    async def on_offer(self, sdp: str) -> str:
        return self._media.answer(sdp)

    async def on_bye(self) -> None:
        self.over.set()

    async def on_refer(self, target: str, replaces: str | None) -> int:
        self.referrals.append((target, replaces))
        return 200


@dataclass
class Telephone:
    """A call at the far end: its dialog, and what was heard and pressed."""

    dialog: Dialog
    media: MediaSession
    events: PhoneEvents
    headers: Mapping[str, list[str]]
    heard: bytearray = field(default_factory=bytearray)
    digits: list[str] = field(default_factory=list)

    def listen(self) -> None:
        self.media.on_audio = self.heard.extend
        self.media.on_digit = self.digits.append

    @property
    def has_heard_sound(self) -> bool:
        return any(byte not in (0x7F, 0xFF) for byte in bytes(self.heard))


class FarEnd:
    """The trunk. `telephones` are its answered calls, `invites` all that were placed to it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.telephones: list[Telephone] = []
        self.invites: list[SipRequest] = []
        self.canceled: list[SipRequest] = []
        self.texts: list[SipRequest] = []
        self.may_ring = asyncio.Event()
        self.place = MediaPlace("127.0.0.1", ports=range(40_000, 42_000))
        self.agent: SipUserAgent | None = None

    async def start(self) -> None:
        self.agent = SipUserAgent([ListenAddress("udp", "127.0.0.1", self.port)], self)
        await self.agent.start()

    async def stop(self) -> None:
        for telephone in self.telephones:
            await telephone.media.close()
        if self.agent is not None:
            await self.agent.stop()

    # the owner's side of the user agent

    def is_trunk_address(self, host: str) -> bool:
        return True

    def authenticate(self, request: SipRequest, peer: Peer) -> AuthenticationDecision:
        return Admitted([TrunkQuota("platform")])

    async def choose_trunk(
        self, request: SipRequest, trunks: Sequence[TrunkQuota], replaces: Dialog | None
    ) -> TrunkQuota | None:
        return trunks[0]

    async def on_message(self, request: SipRequest, peer: Peer, trunk: TrunkQuota) -> int:
        self.texts.append(request)
        return 200

    async def on_invite(self, invite: IncomingInvite) -> None:
        self.invites.append(invite.request)
        uri = invite.request.uri
        # Without a user, the last digits would be those of a port.
        user = uri.partition("@")[0] if "@" in uri else ""
        try:
            if (status := REFUSALS.get(user[-2:])) is not None:
                invite.reject(status)
                return
            if user.endswith("25"):
                await self.may_ring.wait()
            invite.ring()
            if user.endswith(("21", "25")):
                await asyncio.Event().wait()
            media = await MediaSession.open(self.place, MediaPreferences())
            dialog = await invite.answer(media.answer(invite.sdp or ""))
            self._add(dialog, media)
        except asyncio.CancelledError:
            self.canceled.append(invite.request)
            raise

    def _add(self, dialog: Dialog, media: MediaSession) -> Telephone:
        telephone = Telephone(dialog, media, PhoneEvents(media), {n: list(v) for n, v in dialog.remote_headers.items()})
        dialog.events = telephone.events
        telephone.listen()
        self.telephones.append(telephone)
        return telephone

    # a call from the trunk

    async def call(
        self,
        gateway_port: int,
        to_number: str,
        *,
        from_number: str = "+15550100001",
        relay: MediaRelay | None = None,
        preferences: MediaPreferences | None = None,
        credentials: SipCredentials | None = None,
        **headers: str,
    ) -> Telephone:
        """Call a number of the platform, with audio over a relay if there is one; return the call when it is answered.

        Raises `CallRefused`.
        """
        assert self.agent is not None
        media = await MediaSession.open(self.place, preferences or MediaPreferences())
        offer = media.create_offer()
        invite = OutgoingInvite(
            f"sip:{to_number}@127.0.0.1:{gateway_port}",
            Peer("udp", "127.0.0.1", gateway_port),
            f"<sip:{from_number}@127.0.0.1:{self.port}>",
            f"<sip:{to_number}@127.0.0.1>",
            offer if relay is None else relay.route(offer, is_offer=True),
            tuple((name.replace("_", "-"), value) for name, value in headers.items()),
            credentials,
        )
        try:
            dialog = await self.agent.invite(invite)
        except BaseException:
            await media.close()
            raise
        answer = dialog.remote_sdp
        media.accept_answer(answer if relay is None else relay.route(answer, is_offer=False))
        return self._add(dialog, media)

    async def wait_for_telephone(self, count: int = 1) -> Telephone:
        """Wait until so many calls were answered, and return the last."""

        async def look() -> int:
            return len(self.telephones)

        await eventually(look, lambda found: found >= count)
        return self.telephones[count - 1]
