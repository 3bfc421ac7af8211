"""Heartbeat of a process that runs calls; the reconciler ends the calls of a process whose heartbeat stops."""

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.engine.conversation.call import EndedReason, MachineEvent
from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.database import Database, now
from switchboard.foundation.observability import metrics, organization_metrics
from switchboard.foundation.web.errors import InsufficientBalance
from switchboard.resources.billing import ledger
from switchboard.resources.calls.queries import extend_call_leases, list_prepaid_calls
from switchboard.resources.calls.states import LEASE

# Funding of calls in progress: a prepaid organization's call ends when the balance does not cover its next minute.

LEAD_TIME = timedelta(seconds=10)
"""Time before a minute begins at which its funds are held: longer than the interval of the heartbeat."""
MINUTE = timedelta(minutes=1)


async def hold_next_minutes(
    database: Database, engine: CallEngine, prepaid: Collection[tuple[UUID, UUID, datetime]], held: Mapping[UUID, int]
) -> dict[UUID, int]:
    """Hold funds for the next minute of each prepaid call, given as organization, id, and start; return the minutes for
    which this process has held funds, by call. The first minute is held before a call begins.
    """
    minutes_held = {call_id: held.get(call_id, 1) for _, call_id, _ in prepaid}
    for organization_id, call_id, started_at in prepaid:
        minutes = (now() - started_at + LEAD_TIME) // MINUTE + 1
        if minutes <= minutes_held[call_id]:
            continue
        try:
            async with database.write(organization_id) as session:
                await ledger.hold_call_minutes(session, call_id, minutes)
        except InsufficientBalance:
            logger.warning(
                "call ended: the balance does not cover its next minute",
                call_id=str(call_id),
                organization_id=str(organization_id),
            )
            engine.end_call(call_id, EndedReason.INSUFFICIENT_BALANCE)
        minutes_held[call_id] = minutes
    return minutes_held


logger = structlog.get_logger()
BEAT_SECONDS = 3.0


async def run_heartbeat(database: Database, engine: CallEngine) -> None:
    """Extend the leases of this process's calls, report machines that answered, fund prepaid calls, and publish their
    number, until canceled.
    """
    minutes_held: dict[UUID, int] = {}
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        claimed, live = engine.claimed_call_ids, engine.live_call_ids
        metrics.live_calls.set(len(live))
        metrics.leases_held.labels("call").set(len(claimed))
        organization_metrics.set_live_calls(engine.count_calls_by_organization())
        if not claimed:
            continue
        try:
            # A connection to a server that has died may hang, where a new one leads to its successor.
            async with asyncio.timeout(BEAT_SECONDS), database.system() as session:
                answered_by_machines = await extend_call_leases(session, claimed, now() + LEASE)
                prepaid = await list_prepaid_calls(session, live)
            for call_id in answered_by_machines:  # the message of the carrier's callback may be lost
                engine.report_machine(call_id, MachineEvent(greeting_over=False))
            minutes_held = await hold_next_minutes(database, engine, prepaid, minutes_held)
        except (SQLAlchemyError, OSError):
            logger.exception("the leases of this process's calls were not extended")
