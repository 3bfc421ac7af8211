"""Registrations, text messages, and checks of the trunks of a gateway."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from switchboard_telephony_sip.commands import CommandRefused, TextCommand
from switchboard_telephony_sip.gateway.directory import GatewayAccount, TrunkDirectory, TrunkLine
from switchboard_telephony_sip.gateway.gateway_metrics import GatewayMetrics
from switchboard_telephony_sip.gateway.phone_numbers import write_number
from switchboard_telephony_sip.signaling import (
    CallTimeout,
    Peer,
    PeerUnreachable,
    Registration,
    RegistrationAccount,
    SipUserAgent,
)

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
            (line.quota.name, account): line
            for line in self.directory.list_registering()
            if (account := _build_registration(line)) is not None
        }
        gone = [self._registrations.pop(key) for key in self._registrations.keys() - wanted.keys()]
        await asyncio.gather(*(registration.close() for registration in gone))
        for key in wanted.keys() - self._registrations.keys():
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

    async def list_faults(self, account: GatewayAccount) -> list[str]:
        """List what does not work: registrations, and hosts that do not answer OPTIONS."""
        checks = [self._check_host(line, peer) for line in account.lines for peer in line.peers]
        checks += [self._check_registration(line) for line in account.lines]
        missing = [
            f"trunk {line.trunk.name}: {name} needs libopus on the gateway's machine (Debian's libopus0)"
            for line in account.lines
            for name in set(line.trunk.codecs) - set(line.media_preferences.codecs)
        ]
        return [*missing, *(fault for fault in await asyncio.gather(*checks) if fault is not None)]

    async def _check_host(self, line: TrunkLine, peer: Peer) -> str | None:
        place = f"trunk {line.trunk.name}: {peer.host}:{peer.port}"
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                status = await self.agent.options(peer, f"sip:{line.domain}")
        except (CallTimeout, PeerUnreachable, TimeoutError) as error:
            return f"{place} does not answer OPTIONS over {peer.transport}: {error or 'no response in time'}"
        # A trunk that does not know OPTIONS, or asks for credentials, is alive.
        return f"{place} answers OPTIONS with {status}" if status >= 500 and status != 501 else None

    async def _check_registration(self, line: TrunkLine) -> str | None:
        registration = next((one for key, one in self._registrations.items() if key[0] == line.quota.name), None)
        if registration is None:
            return None
        until = asyncio.get_running_loop().time() + REGISTER_SECONDS
        while not registration.is_registered and not registration.failure:
            if asyncio.get_running_loop().time() > until:
                break
            await asyncio.sleep(0.1)
        if registration.is_registered:
            return None
        return f"trunk {line.trunk.name} is not registered: {registration.failure or 'the registrar does not answer'}"

    async def send_text_message(self, account: GatewayAccount, command: TextCommand) -> None:
        """Send a SIP MESSAGE over the first trunk that takes them. Raises `CommandRefused`."""
        line = next((line for line in account.lines if line.trunk.text_messages), None)
        if line is None:
            raise CommandRefused("no SIP trunk of the organization takes text messages", "unsupported")
        sender = f"sip:{write_number(command.from_number, line.trunk)}@{line.domain}"
        receiver = f"sip:{write_number(command.to_number, line.trunk)}@{line.domain}"
        try:
            status = await self.agent.message(line.peers[0], sender, receiver, command.body, line.credentials)
        except (CallTimeout, PeerUnreachable) as error:
            raise CommandRefused(f"the trunk does not answer: {error}") from error
        if status >= 300:
            raise CommandRefused(f"the trunk refused the text message (SIP {status})", str(status))


def _build_registration(line: TrunkLine) -> RegistrationAccount | None:
    credentials = line.credentials
    if credentials is None:
        return None
    return RegistrationAccount(line.peers[0], f"sip:{line.trunk.username}@{line.domain}", credentials)
