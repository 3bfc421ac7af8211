"""A SIP trunk whose telephones belong to the people of the loopback carrier."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

import aiohttp
from aiosipua.message import SipRequest
from switchboard.plugin_sdk import ACCEPT_KEY, ProviderError, SimulatedCall
from switchboard.plugin_sdk.telephony_events import CallOutcome
from switchboard_offline.loopback.callbacks import NoticeSender
from switchboard_offline.loopback.caller import ScriptedCaller
from switchboard_offline.loopback.leg import RING_SECONDS, LoopbackLeg
from switchboard_offline.loopback.line import CABLE_FRAMES
from switchboard_offline.loopback.persons import GREETING_SECONDS, Directory, Person, synthesize_mulaw
from switchboard_offline.loopback.phone import SILENT_FRAME, Phone
from switchboard_telephony_sip.media.session import MediaSession
from switchboard_telephony_sip.media.session_description import MediaPreferences
from switchboard_telephony_sip.signaling.admission import TrunkQuota
from switchboard_telephony_sip.signaling.incoming import IncomingInvite
from switchboard_telephony_sip.signaling.messages import read_address
from switchboard_telephony_sip.signaling.outgoing import CallRefused
from switchboard_telephony_sip.signaling.peers import Peer

from tests.carriers.sip.far_end import FarEnd, Telephone
from tests.fixtures.free_ports import find_free_port

STATUSES: Final[dict[CallOutcome, int]] = {"busy": 486, "failed": 403}
UNKNOWN_RECEIVER: Final = "82"
SPECIAL_ENDINGS: Final = ("30", "40", "41", "50", "60", "70")
"""Last digits of the numbers of machines, and of people who do something else than talk."""


@dataclass(frozen=True, slots=True)
class SipCable:
    """The far end of a person's line: a SIP call, with a clock of its own."""

    telephone: Telephone
    heard: deque[bytes] = field(default_factory=lambda: deque(maxlen=CABLE_FRAMES))

    def connect(self) -> None:
        """Pass the audio of the call on to a telephone."""
        self.telephone.media.on_audio = self.heard.append

    async def run(self) -> None:
        await self.telephone.events.over.wait()

    async def exchange(self, frame: bytes) -> bytes:
        self.telephone.media.relay(frame)
        return self.heard.popleft() if self.heard else SILENT_FRAME

    async def press(self, digit: str) -> None:
        self.telephone.media.press(digit)

    async def close(self) -> None:
        await self.telephone.dialog.bye()
        await self.telephone.media.close()


class PeopleTrunk(FarEnd):
    """The trunk. The people whom it calls accept introductions."""

    def __init__(self, port: int, gateway_port: int, http: aiohttp.ClientSession) -> None:
        super().__init__(port)
        self.gateway_port = gateway_port
        self._post = NoticeSender(http, "", asyncio.Event())
        self._directory = Directory({})
        self._talks: set[asyncio.Task[object]] = set()

    async def stop(self) -> None:
        for telephone in self.telephones:
            telephone.dialog.end()  # The gateway may be gone, and not answer a BYE.
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        await super().stop()

    # `People`

    async def simulate_call(self, from_number: str, to_number: str, lines: Sequence[str]) -> SimulatedCall:
        """Call one of the organization's numbers and say these lines."""
        caller = ScriptedCaller([await synthesize_mulaw(line) for line in lines], self._directory, lambda _: None)
        leg = self._create_leg()
        try:
            telephone = await self.call(self.gateway_port, to_number, from_number=from_number)
        except CallRefused as error:
            caller.refused = str(error)
            return caller.result(leg)
        caller.answered = True
        caller.hung_up_by = await leg.converse(caller.person(leg), _connect(leg, telephone))
        return caller.result(leg)

    async def text(self, from_number: str, to_number: str, body: str) -> str:
        """Send a SIP MESSAGE to one of the organization's numbers."""
        assert self.agent is not None
        sender, receiver = f"sip:{from_number}@127.0.0.1", f"sip:{to_number}@127.0.0.1:{self.gateway_port}"
        status = await self.agent.message(Peer("udp", "127.0.0.1", self.gateway_port), sender, receiver, body)
        assert status == 200
        return uuid4().hex

    # what the gateway sends

    async def on_message(self, request: SipRequest, peer: Peer, trunk: TrunkQuota) -> int:
        user = read_address(request.uri).uri.user or ""
        return 404 if user.endswith(UNKNOWN_RECEIVER) else 200

    async def on_invite(self, invite: IncomingInvite) -> None:
        self.invites.append(invite.request)
        try:
            number = read_address(invite.request.uri).uri.user or ""
            subscriber = self._directory.subscriber(number)
        except ProviderError:
            invite.reject(403)
            return
        if subscriber.outcome in STATUSES:
            invite.reject(STATUSES[subscriber.outcome])
            return
        invite.ring()
        if subscriber.outcome is not None:
            await asyncio.Event().wait()
        await asyncio.sleep(RING_SECONDS)
        media = await MediaSession.open(self.place, MediaPreferences())
        telephone = self._add(await invite.answer(media.answer(invite.sdp or "")), media)
        leg = self._create_leg()
        talk = asyncio.create_task(leg.converse(_accept(subscriber.person, number), _connect(leg, telephone)))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    def _create_leg(self) -> LoopbackLeg:
        return LoopbackLeg(uuid4().hex, self._post, "")


def _connect(leg: LoopbackLeg, telephone: Telephone) -> SipCable:
    cable = SipCable(telephone)
    cable.connect()
    return cable


def _accept(person: Person, number: str) -> Person:
    """Return a person who listens, presses the key that accepts a call, and goes on, unless the number is special."""
    if number.endswith(SPECIAL_ENDINGS):
        return person

    async def accept(phone: Phone) -> None:
        if await phone.listen(GREETING_SECONDS):
            phone.press(ACCEPT_KEY)
        await person(phone)

    return accept


@asynccontextmanager
async def run_people(gateway_port: int) -> AsyncIterator[PeopleTrunk]:
    """Run a trunk of people who call a gateway."""
    async with aiohttp.ClientSession() as http:
        trunk = PeopleTrunk(find_free_port(), gateway_port, http)
        await trunk.start()
        try:
            yield trunk
        finally:
            await trunk.stop()
