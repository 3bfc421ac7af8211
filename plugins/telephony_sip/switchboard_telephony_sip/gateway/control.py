"""The control API of a gateway: signed commands of the platform, `POST /commands`."""

import asyncio
from typing import Final
from uuid import uuid4

import msgspec
import structlog
from aiohttp import web

from switchboard_telephony_sip.callbacks import TextDeliveredNotice
from switchboard_telephony_sip.commands import (
    COMMANDS_PATH,
    NOT_SERVED,
    Command,
    CommandRefusal,
    CommandRefused,
    CommandResult,
    DigitsCommand,
    FindCommand,
    MeasureCommand,
    NoSuchCall,
    PlaceCommand,
    SipHangUpCommand,
    TextCommand,
    TransferCommand,
    read_gateway_command,
)
from switchboard_telephony_sip.gateway.calls import GatewayCall
from switchboard_telephony_sip.gateway.dialing import AnsweredLeg, DialFailed, DialOrder
from switchboard_telephony_sip.gateway.directory import GatewayAccount
from switchboard_telephony_sip.gateway.notices import PlatformLink
from switchboard_telephony_sip.gateway.operator_commands import OperatorCommands
from switchboard_telephony_sip.gateway.phone_numbers import write_number
from switchboard_telephony_sip.gateway.switching import Switching
from switchboard_telephony_sip.gateway.trunks import Trunks
from switchboard_telephony_sip.signaling import CallRefused, CallTimeout, PeerUnreachable
from switchboard_telephony_sip.signatures import (
    ACCOUNT_HEADER,
    SIGNATURE_HEADER,
    UsedNonces,
    find_fault_of_signature,
)

logger = structlog.get_logger()
MAX_COMMAND_BYTES: Final = 64 * 1024
TARGET_SECONDS: Final = 12.0
"""Time in which the target of a transfer must ring, while the platform waits."""
RING_SECONDS: Final = 45.0


class ControlApi:
    """Carries out the platform's commands. `is_draining`: no new call is placed."""

    def __init__(self, switching: Switching, trunks: Trunks, operator: OperatorCommands) -> None:
        self.is_draining = False
        self._operator = operator
        self._switching = switching
        self._trunks = trunks
        self._nonces = UsedNonces()

    def create_application(self) -> web.Application:
        """Create the application of the control port."""
        application = web.Application(client_max_size=MAX_COMMAND_BYTES)
        application.router.add_post(COMMANDS_PATH, self._serve)
        return application

    async def _serve(self, request: web.Request) -> web.Response:
        body = await request.read()
        account = self._switching.directory.find_account(request.headers.get(ACCOUNT_HEADER, ""))
        signature = request.headers.get(SIGNATURE_HEADER)
        if account is None:
            logger.warning("command refused", reason="the account is not known")
            return _respond(403, CommandRefusal("the gateway does not serve the account", NOT_SERVED))
        fault = find_fault_of_signature(account.secret, signature, COMMANDS_PATH, body)
        if fault or not self._nonces.claim(signature or ""):
            logger.warning("command refused", reason=fault or "it was sent before")
            return _respond(403, CommandRefusal(fault or "the command was sent before"))
        try:
            return _respond(200, await self._execute(account, read_gateway_command(body)))
        except NoSuchCall:
            return _respond(404, CommandRefusal("there is no such call", "call_gone"))
        except CommandRefused as error:
            return _respond(409, error.refusal)
        except ValueError:
            return _respond(400, CommandRefusal("the command is not understood"))

    async def _execute(self, account: GatewayAccount, command: Command) -> CommandResult:
        if self.is_draining and isinstance(command, PlaceCommand | TextCommand | MeasureCommand):
            raise CommandRefused("the SIP gateway is stopping", retryable=True)
        match command:
            case PlaceCommand():
                return CommandResult(self._switching.place_call(account, command))
            case FindCommand(reference):
                return CommandResult(self._switching.references.get((account.key, reference)))
            case SipHangUpCommand(call_id):
                self._find_call(account, call_id).hang_up()
            case DigitsCommand(call_id, digits):
                await self._find_live_call(account, call_id).press(digits)
            case TransferCommand(call_id):
                await self._transfer(account, self._find_live_call(account, call_id), command)
            case TextCommand():
                return CommandResult(await self._send_text_message(account, command))
            case _:
                return await self._operator.execute(account, command)
        return CommandResult()

    async def _send_text_message(self, account: GatewayAccount, command: TextCommand) -> str:
        await self._trunks.send_text_message(account, command)
        text_id = uuid4().hex
        link = PlatformLink(self._switching.http, account.secret)
        self._switching.spawn(link.deliver_late(command.events_url, TextDeliveredNotice(text_id)))
        return text_id

    def _find_call(self, account: GatewayAccount, call_id: str) -> GatewayCall:
        call = self._switching.calls.get(call_id)
        if call is None or call.account_key != account.key:
            raise NoSuchCall
        return call

    def _find_live_call(self, account: GatewayAccount, call_id: str) -> GatewayCall:
        call = self._find_call(account, call_id)
        if not call.is_connected:
            raise CommandRefused("the call is not connected", "call_gone")
        return call

    async def _transfer(self, account: GatewayAccount, call: GatewayCall, command: TransferCommand) -> None:
        if call.line is not None and call.line.trunk.transfers == "refer":
            await _refer(call, command.to_number)
            return
        rings = asyncio.Event()
        order = DialOrder(command.to_number, command.caller_id, RING_SECONDS, on_ringing=rings.set)
        dialing = asyncio.create_task(self._switching.dial(account, order, call))
        ringing = asyncio.create_task(rings.wait())
        await asyncio.wait({dialing, ringing}, timeout=TARGET_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ringing.cancel()
        if dialing.done():
            _read_target(dialing)
        elif not rings.is_set():
            dialing.cancel()
            raise CommandRefused("the target of the transfer does not ring")
        if not call.is_connected:
            dialing.cancel()
            raise NoSuchCall
        call.connect_to(dialing)


def _read_target(dialing: "asyncio.Task[AnsweredLeg]") -> None:
    try:
        dialing.result()
    except DialFailed as error:
        raise CommandRefused(error.end.message or "the target does not answer", error.end.code) from error


async def _refer(call: GatewayCall, to_number: str) -> None:
    """Ask the trunk to connect the call to another number."""
    if call.dialog is None or call.line is None:
        raise NoSuchCall
    target = f"sip:{write_number(to_number, call.line.trunk)}@{call.line.domain}"
    try:
        async for status in call.dialog.refer(target):
            if status >= 300:
                raise CommandRefused(f"the trunk could not connect the call (SIP {status})", str(status))
            if status >= 200:
                break
    except CallRefused as error:
        raise CommandRefused(f"the trunk does not transfer calls (SIP {error.status})", str(error.status)) from error
    except (CallTimeout, PeerUnreachable) as error:
        raise CommandRefused(f"the trunk does not answer: {error}") from error
    call.hang_up()


def _respond(status: int, result: CommandResult | CommandRefusal) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(result), content_type="application/json")
