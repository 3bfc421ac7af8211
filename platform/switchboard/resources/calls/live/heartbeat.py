"""Heartbeat of a process that runs calls; the reconciler ends the calls of a process whose heartbeat stops."""

import asyncio

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.engine.conversation.call import MachineEvent
from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.database import Database, now
from switchboard.foundation.observability import metrics, organization_metrics
from switchboard.resources.calls.media.funding import CallFunding
from switchboard.resources.calls.states import LEASE
from switchboard.resources.calls.system_queries import extend_call_leases, list_prepaid_calls

logger = structlog.get_logger()
BEAT_SECONDS = 3.0


async def run_heartbeat(database: Database, engine: CallEngine) -> None:
    """Extend the leases of this process's calls, report machines that answered, fund prepaid calls, and publish their
    number, until canceled.
    """
    funding = CallFunding(database, engine)
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
            await funding.hold_next_minutes(prepaid)
        except (SQLAlchemyError, OSError):
            logger.exception("the leases of this process's calls were not extended")
