"""Commands that diagnose an account: checks of its trunks, test calls, and traces of its calls."""

import asyncio
from dataclasses import dataclass
from typing import Final

from switchboard_telephony_sip.commands import (
    NOT_SERVED,
    CheckCommand,
    CommandRefused,
    CommandResult,
    DiagnosticCommand,
    MeasureCommand,
    Measurement,
    MeasurementCommand,
    NoSuchCall,
    TraceCommand,
    TraceResult,
)
from switchboard_telephony_sip.gateway.directory import GatewayAccount
from switchboard_telephony_sip.gateway.measuring import TestCalls
from switchboard_telephony_sip.gateway.switching import Switching
from switchboard_telephony_sip.gateway.trunks import Trunks

SETTINGS_SECONDS: Final = 7.0
"""Time in which settings that were just saved reach the gateway."""
WAIT_SECONDS: Final = 5.0
"""Time in which a request for a result waits for it."""


@dataclass(frozen=True, slots=True)
class DiagnosticCommands:
    """Carries out the commands that diagnose an account."""

    switching: Switching
    trunks: Trunks
    test_calls: TestCalls

    async def execute(self, account: GatewayAccount, command: DiagnosticCommand) -> CommandResult:
        """Carry out a command of an account. Raises `CommandRefused` and `NoSuchCall`."""
        match command:
            case CheckCommand(settings_digest):
                current = await self._wait_for_settings(account, settings_digest)
                return CommandResult(trunks=await self.trunks.check(current))
            case MeasureCommand():
                return CommandResult(self.test_calls.begin(account, command))
            case MeasurementCommand(call_id):
                return CommandResult(call_id, measurement=await self._wait_for_measurement(account, call_id))
            case TraceCommand(call_id):
                return CommandResult(trace=self._find_trace(account, call_id))

    async def _wait_for_settings(self, account: GatewayAccount, digest: str) -> GatewayAccount:
        """Return the account once the gateway has read these settings, which it does every few seconds."""
        until = asyncio.get_running_loop().time() + SETTINGS_SECONDS
        while (current := self.switching.directory.find_account(account.key)) is None or current.digest != digest:
            if asyncio.get_running_loop().time() > until:
                raise CommandRefused("the gateway has other settings of the trunks", NOT_SERVED)
            await asyncio.sleep(0.1)
        return current

    async def _wait_for_measurement(self, account: GatewayAccount, call_id: str) -> Measurement | None:
        task = self.test_calls.find(account, call_id)
        if task is None:
            raise NoSuchCall
        await asyncio.wait({task}, timeout=WAIT_SECONDS)
        if task.cancelled():
            raise NoSuchCall
        return task.result() if task.done() else None

    def _find_trace(self, account: GatewayAccount, call_id: str) -> TraceResult:
        trace = self.switching.traces.find(account.key, call_id)
        if trace is None:
            raise NoSuchCall
        return trace
