"""The control API of a gateway: signed commands of the platform, `POST /commands`."""

import asyncio
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

import msgspec
import structlog
from aiohttp import web
from switchboard.plugin_sdk import TextMessageStatus

from switchboard_telephony_sip.commands import (
    COMMANDS,
    COMMANDS_PATH,
    NOT_SERVED,
    AccountCommand,
    BansCommand,
    CheckCommand,
    Command,
    CommandRefusal,
    CommandRefused,
    CommandResult,
    DiagnosticCommand,
    DigitsCommand,
    FindCommand,
    IntroduceCommand,
    MeasureCommand,
    Measurement,
    MeasurementCommand,
    NoSuchCall,
    OperatorCommand,
    PlaceCommand,
    SipConnectCommand,
    SipHangUpCommand,
    TextCommand,
    TraceCommand,
    TransferCommand,
)
from switchboard_telephony_sip.gateway import transfers
from switchboard_telephony_sip.gateway.calls import GatewayCall
from switchboard_telephony_sip.gateway.directory import GatewayAccount
from switchboard_telephony_sip.gateway.measuring import TestCalls
from switchboard_telephony_sip.gateway.notices import PlatformLink
from switchboard_telephony_sip.gateway.switching import Switching
from switchboard_telephony_sip.gateway.targets import TransferTarget
from switchboard_telephony_sip.gateway.trunks import Trunks
from switchboard_telephony_sip.signaling.admission import ScannerGuard
from switchboard_telephony_sip.signatures import (
    ACCOUNT_HEADER,
    SIGNATURE_HEADER,
    UsedNonces,
    derive_account_key,
    find_fault_of_signature,
)

logger = structlog.get_logger()
MAX_COMMAND_BYTES: Final = 4 * 1024 * 1024
"""An introduction of the longest text takes a minute, which is 0.6 MB in base64; slow voices need more."""
SETTINGS_SECONDS: Final = 7.0
"""Time in which settings that were just saved reach the gateway."""
WAIT_SECONDS: Final = 5.0
"""Time in which a request for a result waits for it."""


class ControlApi:
    """Carries out the commands of the platform, for its accounts, and of its operator, who has `operator_secrets`.

    `is_draining`: no new call is placed.
    """

    def __init__(
        self,
        switching: Switching,
        trunks: Trunks,
        test_calls: TestCalls,
        guard: ScannerGuard,
        operator_secrets: Sequence[str],
    ) -> None:
        self.is_draining = False
        self._switching = switching
        self._trunks = trunks
        self._test_calls = test_calls
        self._guard = guard
        self._operator_secrets = {derive_account_key(secret): secret for secret in operator_secrets}
        self._nonces = UsedNonces()

    def create_application(self) -> web.Application:
        """Create the application of the control port."""
        application = web.Application(client_max_size=MAX_COMMAND_BYTES)
        application.router.add_post(COMMANDS_PATH, self._serve)
        return application

    async def _serve(self, request: web.Request) -> web.Response:
        # The name of an account is derived from its secret, so only the platform's large bodies are read.
        key = request.headers.get(ACCOUNT_HEADER, "")
        account = self._switching.directory.find_account(key)
        secret = account.secret if account is not None else self._operator_secrets.get(key)
        if secret is None:
            logger.warning("command refused", reason="the account is not known")
            return _respond(403, CommandRefusal("the gateway does not serve the account", NOT_SERVED))
        body, signature = await request.read(), request.headers.get(SIGNATURE_HEADER)
        fault = find_fault_of_signature(secret, signature, COMMANDS_PATH, body)
        if fault or not self._nonces.claim(signature or ""):
            logger.warning("command refused", reason=fault or "it was sent before")
            return _respond(403, CommandRefusal(fault or "the command was sent before"))
        try:
            return _respond(200, await self._execute(account, COMMANDS.decode(body)))
        except NoSuchCall:
            return _respond(404, CommandRefusal("there is no such call", "call_gone"))
        except CommandRefused as error:
            return _respond(409, error.refusal)
        except ValueError:
            return _respond(400, CommandRefusal("the command is not understood"))

    async def _execute(self, account: GatewayAccount | None, command: Command) -> CommandResult:
        """Carry out a command of an account, or of the operator without one."""
        if isinstance(command, OperatorCommand):
            if account is not None:
                raise CommandRefused("only the operator of the installation may give this command")
            if isinstance(command, BansCommand):
                return CommandResult(bans=self._guard.list_ignored())
            return CommandResult(bans={command.address: 0.0} if self._guard.forgive(command.address) else {})
        if account is None:
            raise CommandRefused("only the account of a call or a trunk may give this command")
        return await self._execute_for_account(account, command)

    async def _execute_for_account(self, account: GatewayAccount, command: AccountCommand) -> CommandResult:
        if self.is_draining and isinstance(command, PlaceCommand | TextCommand | MeasureCommand):
            raise CommandRefused("the SIP gateway is stopping", retryable=True)
        match command:
            case PlaceCommand():
                return CommandResult(self._switching.place_call(account, command))
            case FindCommand(reference):
                return CommandResult(self._switching.references.get((account.key, reference)))
            case SipHangUpCommand(call_id):
                (self._find_target(account, call_id) or self._find_call(account, call_id)).hang_up()
            case DigitsCommand(call_id, digits):
                await self._find_live_call(account, call_id).press(digits)
            case TransferCommand(call_id):
                call = self._find_live_call(account, call_id)
                await transfers.transfer(self._switching, account, call, command)
            case IntroduceCommand(call_id):
                return CommandResult(
                    self._switching.introduce(account, self._find_live_call(account, call_id), command)
                )
            case SipConnectCommand(call_id, target_id):
                call = self._find_live_call(account, call_id)
                await transfers.connect(call, self._find_target(account, target_id))
            case TextCommand():
                await self._trunks.send_text_message(account, command)
                text_id = uuid4().hex
                link = PlatformLink(self._switching.http, account.secret)
                self._switching.spawn(link.deliver_late(command.events_url, TextMessageStatus(text_id, "sent")))
                return CommandResult(text_id)
            case _:
                return await self._diagnose(account, command)
        return CommandResult()

    async def _diagnose(self, account: GatewayAccount, command: DiagnosticCommand) -> CommandResult:
        match command:
            case CheckCommand(settings_digest):
                current = await self._wait_for_settings(account, settings_digest)
                return CommandResult(trunks=await self._trunks.check(current))
            case MeasureCommand():
                return CommandResult(self._test_calls.begin(account, command))
            case MeasurementCommand(call_id):
                return CommandResult(call_id, measurement=await self._wait_for_measurement(account, call_id))
            case TraceCommand(call_id):
                trace = self._switching.traces.find(account.key, call_id)
                if trace is None:
                    raise NoSuchCall
                return CommandResult(trace=trace)

    async def _wait_for_settings(self, account: GatewayAccount, digest: str) -> GatewayAccount:
        """Return the account once the gateway has read these settings, which it does every few seconds."""
        until = asyncio.get_running_loop().time() + SETTINGS_SECONDS
        while (current := self._switching.directory.find_account(account.key)) is None or current.digest != digest:
            if asyncio.get_running_loop().time() > until:
                raise CommandRefused("the gateway has other settings of the trunks", NOT_SERVED)
            await asyncio.sleep(0.1)
        return current

    async def _wait_for_measurement(self, account: GatewayAccount, call_id: str) -> Measurement | None:
        task = self._test_calls.find(account, call_id)
        if task is None:
            raise NoSuchCall
        await asyncio.wait({task}, timeout=WAIT_SECONDS)
        if task.cancelled():
            raise NoSuchCall
        return task.result() if task.done() else None

    def _find_call(self, account: GatewayAccount, call_id: str) -> GatewayCall:
        call = self._switching.calls.get(call_id)
        if call is None or call.account_key != account.key:
            raise NoSuchCall
        return call

    def _find_target(self, account: GatewayAccount, call_id: str) -> TransferTarget | None:
        target = self._switching.targets.get(call_id)
        return target if target is not None and target.account_key == account.key else None

    def _find_live_call(self, account: GatewayAccount, call_id: str) -> GatewayCall:
        call = self._find_call(account, call_id)
        if not call.is_connected:
            raise CommandRefused("the call is not connected", "call_gone")
        return call


def _respond(status: int, result: CommandResult | CommandRefusal) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(result), content_type="application/json")
