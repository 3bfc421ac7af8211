"""Placing a call with its carrier: claimed first, then asked, then written down, so that no crash dials anyone twice."""

from datetime import timedelta
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.providers.service import list_provider_names
from switchboard.foundation.database import TenantSession, now
from switchboard.foundation.jobs import wake
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import INVALID_NUMBER, OutboundCall, OutcomeUnknown, ProviderError, TelephonyProvider
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.agents import service as agents
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.callback_urls import build_callback_urls, build_media_url
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import RINGING_TIMEOUT, finish_call, is_over
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.phone_numbers import service as numbers
from switchboard.runtime import Runtime

logger = structlog.get_logger()
RING_SECONDS = 30
CARRIER_TIMEOUT = timedelta(seconds=30)
PLACEMENT_UNKNOWN = "The carrier never said whether it placed the call."


async def place_with_carrier(runtime: Runtime, organization_id: UUID, call_id: UUID) -> None:
    """Ask the carrier for a queued call, unless that has been begun already; where it fails, the organization's other carriers in their order.

    One whose number was listed since ends `failed`. One whose fate the carrier does not tell is left to its callbacks, and to the sweep.
    """
    async with runtime.database.tenant(organization_id) as session:
        call = await calls.get_call(session, call_id, lock=True)
        if call.dialing_at is not None or call.status != "queued":
            return
        if await do_not_call.is_listed(session, call.to_number):
            await finish_call(session, call, "failed", reason=EndedReason.DO_NOT_CALL, error=calls.ON_DO_NOT_CALL_LIST)
            return
        call.dialing_at, call.watch_at = now(), now() + CARRIER_TIMEOUT
        agent = await agents.find_agent(session, call.agent_id) if call.agent_id else None
        max_seconds = agent.max_call_duration_seconds if agent else RING_SECONDS
        others = [name for name in await list_provider_names(session, Capability.TELEPHONY) if name != call.carrier]
    error = await _ask(runtime, call, max_seconds)
    while error is not None and error.retryable and others:
        handed_on = await _hand_on(runtime, call, others.pop(0))
        if handed_on is None:
            return
        call, error = handed_on, await _ask(runtime, handed_on, max_seconds)
    if error is not None:
        await _settle(runtime, call, error=error.message, reason=map_error_code(error.code))


async def _ask(runtime: Runtime, call: Call, max_seconds: int) -> ProviderError | None:
    """Ask the call's carrier for it; answers why it placed none."""
    try:
        async with runtime.providers.use(call.organization_id, TelephonyProvider, call.carrier) as carrier:
            carrier_call_id = await carrier.place_call(_order(runtime, call, max_seconds))
    except OutcomeUnknown as error:
        logger.warning(
            "carrier did not say whether it placed the call",
            call_id=str(call.id),
            carrier=call.carrier,
            reason=error.message,
        )
    except ProviderError as error:
        metrics.provider_failures.labels(Capability.TELEPHONY.value, call.carrier).inc()
        logger.warning(
            "carrier did not place the call", call_id=str(call.id), carrier=call.carrier, reason=error.message
        )
        return error
    else:
        await _settle(runtime, call, carrier_call_id=carrier_call_id)
    return None


async def _hand_on(runtime: Runtime, refused: Call, carrier: str) -> Call | None:
    """Give a call to another carrier, with one of its own numbers as the caller id where there is one; None where there is a call after all."""
    async with runtime.database.tenant(refused.organization_id) as session:
        call = await calls.get_call(session, refused.id, lock=True)
        if is_over(call) or call.carrier_call_id is not None:
            return None
        for number in (await numbers.list_numbers_at_carrier(session, carrier))[:1]:
            call.from_number, call.phone_number_id = number.phone_number, number.id
        call.carrier, call.dialing_at, call.watch_at = carrier, now(), now() + CARRIER_TIMEOUT
        return call


async def reconcile_placement(runtime: Runtime, organization_id: UUID, call_id: UUID) -> None:
    """A crash, or a carrier's silence, came between claim and answer: ask the carrier whether it knows the call; never dial it again."""
    async with runtime.database.tenant(organization_id) as session:
        call = await calls.get_call(session, call_id)
    try:
        async with runtime.providers.use(organization_id, TelephonyProvider, call.carrier) as carrier:
            found = await carrier.find_call(str(call_id))
    except ProviderError as error:
        logger.warning("carrier cannot say whether a call exists", call_id=str(call_id), reason=error.message)
        found = None
    await _settle(runtime, call, carrier_call_id=found, error=None if found else PLACEMENT_UNKNOWN)


async def _settle(
    runtime: Runtime,
    placed: Call,
    *,
    carrier_call_id: str | None = None,
    error: str | None = None,
    reason: EndedReason | None = None,
) -> None:
    async with runtime.database.tenant(placed.organization_id) as session:
        call = await calls.get_call(session, placed.id, lock=True)
        if error is not None:
            await finish_call(session, call, "failed", reason=reason, error=error)
            return
        call.carrier_call_id = call.carrier_call_id or carrier_call_id
        if call.status == "queued":
            call.watch_at = now() + RINGING_TIMEOUT
    if call.status == "canceled":  # while the carrier was being asked
        await hang_up(runtime, call)


def map_error_code(error_code: str | None) -> EndedReason | None:
    """Why a call failed, where a carrier's code tells more than that it did."""
    return EndedReason.INVALID_NUMBER if error_code == INVALID_NUMBER else None


def _order(runtime: Runtime, call: Call, max_duration_seconds: int) -> OutboundCall:
    return OutboundCall(
        reference=str(call.id),
        from_number=call.from_number,
        to_number=call.to_number,
        media_url=build_media_url(runtime.settings, runtime.keyring, call),
        callbacks=build_callback_urls(
            runtime.settings, carrier=call.carrier, organization_id=call.organization_id, call_id=call.id
        ),
        ring_seconds=RING_SECONDS,
        max_duration_seconds=max_duration_seconds,
    )


async def cancel_call(session: TenantSession, call: Call) -> None:
    """Take back a call that nobody has answered; the caller has locked it. One that was is left alone."""
    if call.status in ("queued", "ringing"):
        await finish_call(session, call, "canceled", reason=EndedReason.CANCELED)
        wake(session, "hang_up_call", organization_id=str(call.organization_id), call_id=str(call.id))


async def hang_up(runtime: Runtime, call: Call) -> None:
    """End a call at its carrier, as far as that can be done."""
    if call.carrier_call_id is not None:
        await hang_up_leg(runtime, call.organization_id, call.carrier, call.carrier_call_id)


async def hang_up_leg(runtime: Runtime, organization_id: UUID, carrier: str, carrier_call_id: str) -> None:
    """End what a carrier knows by this id, as far as that can be done."""
    try:
        async with runtime.providers.use(organization_id, TelephonyProvider, carrier) as provider:
            await provider.hang_up(carrier_call_id)
    except ProviderError as error:
        logger.warning(
            "carrier did not hang up", carrier=carrier, carrier_call_id=carrier_call_id, reason=error.message
        )
