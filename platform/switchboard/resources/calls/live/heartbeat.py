"""Heartbeat of a process that runs calls: its lease, and what it does for its calls with each beat."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.engine.conversation.call import EndedReason, MachineEvent
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, now
from switchboard.foundation.leases import BEAT_SECONDS, LeaseKeeper
from switchboard.foundation.observability import metrics
from switchboard.foundation.web.errors import InsufficientBalance
from switchboard.resources.billing import ledger
from switchboard.resources.calls.queries import HeldCall, delete_leases, give_calls_up, list_held_calls

# Funding of calls in progress: a prepaid organization's call ends when the balance does not cover its next minute.

LEAD_TIME = timedelta(seconds=10)
"""Time before a minute begins at which its funds are held: longer than the interval of the heartbeat."""
MINUTE = timedelta(minutes=1)


async def hold_next_minutes(
    database: Database, engine: CallEngine, prepaid: Collection[HeldCall], held: Mapping[UUID, int]
) -> dict[UUID, int]:
    """Hold funds for the next minute of each prepaid call; return the minutes for which this process has held funds, by
    call. The first minute is held before a call begins.
    """
    minutes_held = {call.call_id: held.get(call.call_id, 1) for call in prepaid}
    for call in prepaid:
        minutes = (now() - (call.started_at or now()) + LEAD_TIME) // MINUTE + 1
        if minutes <= minutes_held[call.call_id]:
            continue
        try:
            async with database.write(call.organization_id) as session:
                await ledger.hold_call_minutes(session, call.call_id, minutes)
        except InsufficientBalance:
            logger.warning(
                "call ended: the balance does not cover its next minute",
                call_id=str(call.call_id),
                organization_id=str(call.organization_id),
            )
            engine.end_call(call.call_id, EndedReason.INSUFFICIENT_BALANCE)
        minutes_held[call.call_id] = minutes
    return minutes_held


logger = structlog.get_logger()


async def run_heartbeat(database: Database, engine: CallEngine, lease: LeaseKeeper, providers: Providers) -> None:
    """Extend the lease of this process, report machines that answered, fund prepaid calls, give up calls that this
    process has lost, close idle providers, and publish the number of calls, until canceled. The lease then ends, unless
    calls depend on it.
    """
    minutes_held: dict[UUID, int] = {}
    try:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            metrics.live_calls.set(len(engine.live_call_ids))
            metrics.set_organization_live_calls(engine.count_calls_by_organization())
            providers.close_idle()
            try:
                # A connection to a server that has died may hang, where a new one leads to its successor.
                async with asyncio.timeout(BEAT_SECONDS):
                    await lease.extend()
                    held = await _look_at_held_calls(database, engine, lease.node)
                live = {*engine.live_call_ids}
                prepaid = [call for call in held if call.is_prepaid and call.call_id in live]
                minutes_held = await hold_next_minutes(database, engine, prepaid, minutes_held)
            except (SQLAlchemyError, OSError):
                logger.exception("the lease of this process was not extended")
    finally:
        await end_lease(database, lease)


async def end_lease(database: Database, lease: LeaseKeeper) -> None:
    """Delete the lease of this process, which stops, unless calls depend on it."""
    with suppress(SQLAlchemyError, OSError):
        async with asyncio.timeout(BEAT_SECONDS), database.system() as session:
            await delete_leases(session, [lease.node], before=now())


async def _look_at_held_calls(database: Database, engine: CallEngine, node: str) -> list[HeldCall]:
    """Return the calls that this process holds by their rows. Those that it has lost are given up: the reply to a claim
    or to a result never came.
    """
    async with database.system() as session:
        held = await list_held_calls(session, node)
        lost = [call.call_id for call in held if not engine.is_claimed(call.call_id)]
        if lost:
            logger.warning("calls given up that this process does not run", calls=[str(call_id) for call_id in lost])
            await give_calls_up(session, node, lost)
    for call in held:
        if call.answered_by == "machine" and call.call_id not in lost:  # the carrier's message may be lost
            engine.report_machine(call.call_id, MachineEvent(greeting_over=False))
    return held
