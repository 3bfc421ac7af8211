"""Test calls through the trunks, for `switchboard doctor`: a tone is played, and the audio of both ways measured."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import uuid4

import numpy as np
from switchboard.plugin_sdk.audio import decode_audio

from switchboard_telephony_sip.commands import MeasureCommand, Measurement, TrunkRefusal
from switchboard_telephony_sip.gateway.dialing import CallInviter, DialFailed, DialOrder, dial
from switchboard_telephony_sip.gateway.directory import GatewayAccount
from switchboard_telephony_sip.gateway.legs import Leg
from switchboard_telephony_sip.media.frames import SAMPLE_RATE
from switchboard_telephony_sip.media.place import MediaPlace
from switchboard_telephony_sip.media.tones import make_sines

RING_SECONDS: Final = 45.0
LEAST_SECONDS: Final = 4.0
MOST_SECONDS: Final = 15.0
"""The far end reports what it hears every 5 seconds, more or less (RFC 3550, 6.2)."""
TONE_HERTZ: Final = 1004
TONE: Final = make_sines((TONE_HERTZ,), 8000, SAMPLE_RATE) + b"\xff" * (SAMPLE_RATE // 2)
"""Mu-law: a second of the tone, and half a second of silence."""
TONE_SECONDS: Final = 1.5
LEAST_POWER: Final = 100.0**2
"""Mean square of a frame with sound: about -50 dBFS."""
ECHO_SHARE: Final = 0.5
"""Share of a frame's power that our tone has in an echo of it."""
LEAST_FRAMES: Final = 10
"""Frames of 20 ms that show sound, or an echo."""
ANSWERS_OF_PEOPLE: Final = frozenset((480, 486, 600, 603))
"""Statuses after which the next trunk is not tried: this one has reached the telephone."""
KEPT: Final = 20


@dataclass(slots=True)
class HeardSound:
    """Counts the received frames that have sound, and those that have our own tone."""

    sounding: int = 0
    echoing: int = 0

    def take(self, mulaw: bytes) -> None:
        """Take a frame of 20 ms."""
        samples = decode_audio(mulaw, "mulaw").astype(np.float64)
        power = float(np.mean(samples**2))
        if power < LEAST_POWER:
            return
        self.sounding += 1
        turns = np.exp(-2j * np.pi * TONE_HERTZ * np.arange(len(samples)) / SAMPLE_RATE)
        if 2 * abs(np.mean(samples * turns)) ** 2 >= ECHO_SHARE * power:
            self.echoing += 1

    @property
    def has_sound(self) -> bool:
        return self.sounding >= LEAST_FRAMES

    @property
    def has_echo(self) -> bool:
        return self.echoing >= LEAST_FRAMES


@dataclass(slots=True)
class TestCalls:
    """Test calls of a gateway, by account and id. The results of an account's last ones are kept."""

    __test__ = False
    place: MediaPlace
    agent: CallInviter
    _calls: dict[tuple[str, str], asyncio.Task[Measurement]] = field(default_factory=dict)

    def begin(self, account: GatewayAccount, command: MeasureCommand) -> str:
        """Begin a call, and return its id."""
        call_id = uuid4().hex
        self._calls[account.key, call_id] = asyncio.create_task(self._measure(account, command))
        own = [key for key in self._calls if key[0] == account.key]
        if len(own) > KEPT:
            self._calls.pop(own[0]).cancel()
        return call_id

    def find(self, account: GatewayAccount, call_id: str) -> "asyncio.Task[Measurement] | None":
        """Return a call of the account; None for an unknown one."""
        return self._calls.get((account.key, call_id))

    async def close(self) -> None:
        """Give up all calls."""
        for task in self._calls.values():
            task.cancel()
        await asyncio.gather(*self._calls.values(), return_exceptions=True)

    async def _measure(self, account: GatewayAccount, command: MeasureCommand) -> Measurement:
        refusals = []
        for line in account.lines:
            order = DialOrder(command.to_number, command.from_number, RING_SECONDS)
            try:
                leg = await dial(self.agent, self.place, replace(account, lines=[line]), order)
            except DialFailed as error:
                end = error.end
                status = int(end.code) if end.code and end.code.isdecimal() else end.status
                refusals.append(TrunkRefusal(line.trunk.name, status, end.message or "nobody answered"))
                if end.status in ANSWERS_OF_PEOPLE:
                    break
                continue
            return await self._listen(leg, refusals)
        return Measurement(refusals)

    async def _listen(self, leg: Leg, refusals: list[TrunkRefusal]) -> Measurement:
        heard, media = HeardSound(), leg.media
        media.on_audio = heard.take
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            while (elapsed := loop.time() - began) < MOST_SECONDS:
                is_known = media.quality.remote_loss_share is not None or heard.has_echo
                if elapsed >= LEAST_SECONDS and heard.has_sound and is_known:
                    break
                media.play(TONE)
                await asyncio.sleep(TONE_SECONDS)
            quality = media.quality
        finally:
            await leg.release()
        return Measurement(
            refusals,
            trunk=leg.line.trunk.name,
            audio_host=self.place.advertised_host,
            packets_received=quality.packets_received,
            loss_share=quality.loss_share,
            jitter_ms=quality.jitter_ms,
            has_sound=heard.has_sound,
            has_echo=heard.has_echo,
            remote_loss_share=quality.remote_loss_share,
        )
