"""Registrations, text messages, and checks of the trunks of a gateway."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from switchboard.plugin_sdk import CheckedPart

from switchboard_telephony_sip.commands import CommandRefused, TextCommand
from switchboard_telephony_sip.gateway.directory import GatewayAccount, TrunkDirectory, TrunkLine
from switchboard_telephony_sip.gateway.gateway_metrics import GatewayMetrics
from switchboard_telephony_sip.gateway.phone_numbers import write_number
from switchboard_telephony_sip.signaling.peers import Peer, PeerUnreachable
from switchboard_telephony_sip.signaling.registration import Registration, RegistrationAccount
from switchboard_telephony_sip.signaling.user_agent import SipUserAgent

CHECK_SECONDS: Final = 8.0
REGISTER_SECONDS: Final = 5.0
"""Time that a check waits for a registration which has just begun."""


@dataclass(slots=True)
class Trunks:
    """Registrations of this gateway, which follow the accounts."""

    agent: SipUserAgent
    directory: TrunkDirectory
    metrics: GatewayMetrics
    _registrations: dict[tuple[str, RegistrationAccount], Registration] = field(default_factory=dict)

    async def follow_accounts(self) -> None:
        """Register at the trunks that want it, and nowhere else."""
        wanted = {
            (
                line.quota.name,
                RegistrationAccount(line.peers[0], f"sip:{line.trunk.username}@{line.domain}", credentials),
            )
            for line in self.directory.list_registering()
            if (credentials := line.credentials) is not None
        }
        gone = [self._registrations.pop(key) for key in self._registrations.keys() - wanted]
        await asyncio.gather(*(registration.close() for registration in gone))
        for key in wanted - self._registrations.keys():
            registration = self._registrations[key] = self.agent.register(key[1])
            registration.on_change = self._measure
        self._measure()

    async def close(self) -> None:
        """Remove all registrations from their registrars."""
        registrations, self._registrations = list(self._registrations.values()), {}
        await asyncio.gather(*(registration.close() for registration in registrations))

    def _measure(self) -> None:
        registered = sum(registration.is_registered for registration in self._registrations.values())
        self.metrics.registered.set(registered)
        self.metrics.unregistered.set(len(self._registrations) - registered)

    async def check(self, account: GatewayAccount) -> list[CheckedPart]:
        """Ask each host of each trunk for its options, and report the registrations."""
        return await asyncio.gather(*(self._check_trunk(line) for line in account.lines))

    async def _check_trunk(self, line: TrunkLine) -> CheckedPart:
        checks = [*(self._check_host(line, peer) for peer in line.peers), self._check_registration(line)]
        found = [result for result in await asyncio.gather(*checks) if result is not None]
        found += [
            (False, f"{name} needs libopus on the gateway's machine (Debian's libopus0)")
            for name in set(line.trunk.codecs) - set(line.media_preferences.codecs)
        ]
        return CheckedPart(line.trunk.name, all(works for works, _ in found), "; ".join(text for _, text in found))

    async def _check_host(self, line: TrunkLine, peer: Peer) -> tuple[bool, str]:
        place = f"{peer.host}:{peer.port}"
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                status = await self.agent.options(peer, f"sip:{line.domain}")
        except (PeerUnreachable, TimeoutError) as error:
            reason = str(error) or "no response in time"
            return False, f"{place} does not answer OPTIONS over {peer.transport}: {reason}"
        milliseconds = 1000 * (asyncio.get_running_loop().time() - began)
        # A trunk that does not know OPTIONS, or asks for credentials, is alive.
        return status < 500 or status == 501, f"{place} answers OPTIONS with {status} in {milliseconds:.0f} ms"

    async def _check_registration(self, line: TrunkLine) -> tuple[bool, str] | None:
        registration = next((one for key, one in self._registrations.items() if key[0] == line.quota.name), None)
        if registration is None:
            return None
        until = asyncio.get_running_loop().time() + REGISTER_SECONDS
        while not registration.is_registered and not registration.failure:
            if asyncio.get_running_loop().time() > until:
                break
            await asyncio.sleep(0.1)
        address = registration.account.address_of_record
        if registration.is_registered:
            return True, f"registered as {address}"
        return False, f"not registered as {address}: {registration.failure or 'the registrar does not answer'}"

    async def send_text_message(self, account: GatewayAccount, command: TextCommand) -> None:
        """Send a SIP MESSAGE over the first trunk that takes them. Raises `CommandRefused`."""
        line = next((line for line in account.lines if line.trunk.text_messages), None)
        if line is None:
            raise CommandRefused("no SIP trunk of the organization takes text messages", "unsupported")
        sender = f"sip:{write_number(command.from_number, line.trunk)}@{line.domain}"
        receiver = f"sip:{write_number(command.to_number, line.trunk)}@{line.domain}"
        try:
            status = await self.agent.message(line.peers[0], sender, receiver, command.body, line.credentials)
        except PeerUnreachable as error:
            raise CommandRefused(f"the trunk does not answer: {error}") from error
        if status >= 300:
            raise CommandRefused(f"the trunk refused the text message (SIP {status})", str(status))
