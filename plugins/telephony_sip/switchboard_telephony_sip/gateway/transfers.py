"""Transfers that the platform orders: blind ones, and warm ones to a target who was introduced."""

import asyncio
from typing import Final

from switchboard_telephony_sip.commands import CommandRefused, TransferCommand
from switchboard_telephony_sip.gateway.calls import GatewayCall
from switchboard_telephony_sip.gateway.dialing import DialFailed, DialOrder
from switchboard_telephony_sip.gateway.directory import GatewayAccount
from switchboard_telephony_sip.gateway.legs import Leg, give_up, wait_for_any
from switchboard_telephony_sip.gateway.phone_numbers import write_number
from switchboard_telephony_sip.gateway.switching import Switching
from switchboard_telephony_sip.gateway.targets import TransferTarget
from switchboard_telephony_sip.signaling.dialogs import Dialog
from switchboard_telephony_sip.signaling.outgoing import CallRefused
from switchboard_telephony_sip.signaling.peers import PeerUnreachable

TARGET_SECONDS: Final = 12.0
"""Time in which the target of a blind transfer must ring, while the platform waits."""
RING_SECONDS: Final = 45.0
CALL_GONE: Final = "call_gone"


async def transfer(switching: Switching, account: GatewayAccount, call: GatewayCall, command: TransferCommand) -> None:
    """Connect a call to another number. Raises `CommandRefused`; the call then stays with the platform."""
    leg = call.leg
    assert leg is not None  # noqa: S101  the call is connected
    if leg.line.trunk.transfers == "refer":
        await _refer(call, leg, f"sip:{write_number(command.to_number, leg.line.trunk)}@{leg.line.domain}")
        return
    rings = asyncio.Event()
    order = DialOrder(command.to_number, command.caller_id, RING_SECONDS, on_ringing=rings.set)
    dialing = asyncio.create_task(switching.dial(account, order, call))
    await wait_for_any(dialing, rings, seconds=TARGET_SECONDS)
    try:
        if dialing.done():
            dialing.result()
        elif not rings.is_set():
            raise CommandRefused("the target of the transfer does not ring")
        if not call.is_connected:
            raise CommandRefused("the call is over", CALL_GONE)
    except DialFailed as error:
        raise CommandRefused(error.end.message or "the target does not answer", error.end.code) from error
    except CommandRefused:
        await give_up(dialing)
        raise
    call.connect_to(dialing)


async def connect(call: GatewayCall, target: TransferTarget | None) -> None:
    """Connect a call to a target who waits. Raises `CommandRefused`; the call then stays with the platform."""
    leg = call.leg
    assert leg is not None  # noqa: S101  the call is connected
    other = target.waiting_leg if target is not None else None
    if target is None or other is None:
        raise CommandRefused("the target of the transfer has hung up", CALL_GONE)
    if leg.line.trunk.transfers == "refer" and other.line is leg.line:
        await _refer(call, leg, other.dialog.state.remote_target, replaces=other.dialog)
        target.hang_up()
        return
    target.hand_over()
    answered: asyncio.Future[Leg] = asyncio.get_running_loop().create_future()
    answered.set_result(other)
    call.connect_to(answered)


async def _refer(call: GatewayCall, leg: Leg, target: str, *, replaces: Dialog | None = None) -> None:
    """Ask the trunk to connect the call to a target, which may take part in another dialog already (RFC 3891)."""
    try:
        async for status in leg.dialog.refer(target, replaces=replaces):
            if status >= 300:
                raise CommandRefused(f"the trunk could not connect the call (SIP {status})", str(status))
            if status >= 200:
                break
    except CallRefused as error:
        raise CommandRefused(f"the trunk does not transfer calls (SIP {error.status})", str(error.status)) from error
    except PeerUnreachable as error:
        raise CommandRefused(f"the trunk does not answer: {error}") from error
    call.hang_up()
