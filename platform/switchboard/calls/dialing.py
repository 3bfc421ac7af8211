"""Placing a call with its carrier: claimed first, then asked, then written down, so that no crash dials anyone twice."""

from datetime import timedelta
from uuid import UUID

import structlog
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.agents import service as agents
from switchboard.calls import service as calls
from switchboard.calls.addresses import call_callbacks, media_url
from switchboard.calls.models import Call
from switchboard.calls.states import RINGING_PATIENCE, finish
from switchboard.conversation.call import EndedReason
from switchboard.database import now
from switchboard.do_not_call import service as do_not_call
from switchboard.plugins import INVALID_NUMBER, CallOrder, ProviderError
from switchboard.runtime import Runtime
from switchboard.work import wake

logger = structlog.get_logger()
RING_SECONDS = 30
CARRIER_PATIENCE = timedelta(seconds=30)
FORGOTTEN = "The platform was restarted while the call was being placed."


async def dial(runtime: Runtime, organization_id: UUID, call_id: UUID) -> None:
    """Ask the carrier for a queued call, unless that has been begun already. One whose number was listed since ends `failed`."""
    async with runtime.database.tenant(organization_id) as session:
        call = await calls.get(session, call_id, lock=True)
        if call.dialing_at is not None or call.status != "queued":
            return
        if await do_not_call.is_listed(session, call.to_number):
            await finish(session, call, "failed", reason=EndedReason.DO_NOT_CALL, error=calls.NOT_TO_BE_CALLED)
            return
        call.dialing_at, call.watch_at = now(), now() + CARRIER_PATIENCE
        agent = await agents.find(session, call.agent_id) if call.agent_id else None
        max_seconds = agent.max_call_duration_seconds if agent else RING_SECONDS
    try:
        async with runtime.providers.telephony(organization_id, call.carrier) as carrier:
            carrier_call_id = await carrier.place_call(_order(runtime, call, max_seconds))
    except ProviderError as error:
        await _settle(runtime, call, error=error.message, reason=reason_of(error.code))
        return
    await _settle(runtime, call, carrier_call_id=carrier_call_id)


async def reconcile(runtime: Runtime, organization_id: UUID, call_id: UUID) -> None:
    """A crash came between claim and answer: ask the carrier whether it knows the call; never dial it again."""
    async with runtime.database.tenant(organization_id) as session:
        call = await calls.get(session, call_id)
    try:
        async with runtime.providers.telephony(organization_id, call.carrier) as carrier:
            found = await carrier.find_call(str(call_id))
    except ProviderError as error:
        logger.warning("carrier cannot say whether a call exists", call_id=str(call_id), reason=error.message)
        found = None
    await _settle(runtime, call, carrier_call_id=found, error=None if found else FORGOTTEN)


async def _settle(
    runtime: Runtime, placed: Call, *, carrier_call_id: str | None = None, error: str | None = None, reason: EndedReason | None = None
) -> None:
    async with runtime.database.tenant(placed.organization_id) as session:
        call = await calls.get(session, placed.id, lock=True)
        if error is not None:
            await finish(session, call, "failed", reason=reason, error=error)
            return
        call.carrier_call_id = call.carrier_call_id or carrier_call_id
        if call.status == "queued":
            call.watch_at = now() + RINGING_PATIENCE
    if call.status == "canceled":  # while the carrier was being asked
        await hang_up(runtime, call)


def reason_of(error_code: str | None) -> EndedReason | None:
    """Why a call failed, where a carrier's code tells more than that it did."""
    return EndedReason.INVALID_NUMBER if error_code == INVALID_NUMBER else None


def _order(runtime: Runtime, call: Call, max_duration_seconds: int) -> CallOrder:
    return CallOrder(
        reference=str(call.id),
        from_number=call.from_number,
        to_number=call.to_number,
        media_url=media_url(runtime.settings, runtime.keyring, organization_id=call.organization_id, call_id=call.id),
        callbacks=call_callbacks(runtime.settings, carrier=call.carrier, organization_id=call.organization_id, call_id=call.id),
        ring_seconds=RING_SECONDS,
        max_duration_seconds=max_duration_seconds,
    )


async def cancel(session: AsyncSession, call: Call) -> None:
    """Take back a call that nobody has answered; the caller has locked it. One that was is left alone."""
    if call.status in ("queued", "ringing"):
        await finish(session, call, "canceled", reason=EndedReason.CANCELED)
        wake(session, "hang_up_call", organization_id=str(call.organization_id), call_id=str(call.id))


async def hang_up(runtime: Runtime, call: Call) -> None:
    """End a call at its carrier, as far as that can be done."""
    if call.carrier_call_id is None:
        return
    try:
        async with runtime.providers.telephony(call.organization_id, call.carrier) as carrier:
            await carrier.hang_up(call.carrier_call_id)
    except ProviderError as error:
        logger.warning("carrier did not hang up", call_id=str(call.id), reason=error.message)
