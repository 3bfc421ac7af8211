"""Jobs of simulations: one worker claims a simulation, holds the conversation, judges it, and saves the result with its
event in one transaction.

The claim of a worker that dies lapses within half a minute, and another worker starts over. In mode `text` the agent's
actions have no effect, so starting over is harmless; in mode `audio` it is another call.
"""

import asyncio
import time
from dataclasses import asdict
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, ReadSession, now
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.events.catalog import SimulationCompleted, SimulationCriterion
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.jobs import run_beside
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.work import Work
from switchboard.plugin_sdk import ProviderError
from switchboard.resources.agents import drafts
from switchboard.resources.agents.models import Agent, Simulation
from switchboard.resources.agents.queries import find_draft
from switchboard.resources.billing import ledger
from switchboard.resources.simulations import queries, service
from switchboard.resources.simulations.audio_mode import AudioMode
from switchboard.resources.simulations.judge import evaluate_assertions
from switchboard.resources.simulations.result import SimulatedConversation, SimulationError
from switchboard.resources.simulations.schemas import ASSERTIONS
from switchboard.resources.simulations.text_mode import TextMode

logger = structlog.get_logger()
LEASE = timedelta(seconds=30)
RENEW_SECONDS, SHOWN_SECONDS = 10.0, 1.0
MAX_ATTEMPTS = 3
MAX_SECONDS = 600.0
AT_ONCE = 4
"""Simulations of one organization at the same time, so that a large suite leaves workers for everything else."""
WAIT_SECONDS = 1
LOST = "the worker was lost in each attempt"
DRAFT_CHANGED = "the draft was changed, published, or discarded before the simulation ran"


async def run_simulation(
    database: Database,
    providers: Providers,
    audio_mode: AudioMode,
    text_mode: TextMode,
    *,
    organization_id: UUID,
    simulation_id: UUID,
) -> None:
    """Run and judge a due simulation, unless another worker has claimed it or it was deleted."""
    claimed = await _take(database, organization_id, simulation_id)
    if claimed is None:
        return
    simulation, agent = claimed
    began, played, criteria, fault = time.monotonic(), SimulatedConversation(), list[SimulationCriterion](), None
    try:
        async with run_beside(_renew_claim(database, simulation, played)), asyncio.timeout(MAX_SECONDS):
            mode = audio_mode if simulation.mode == "audio" else text_mode
            await mode.hold_conversation(simulation, agent, played)
            assertions = ASSERTIONS.validate_python(simulation.assertions)
            criteria = await evaluate_assertions(providers, agent, assertions, played)
    except (ProviderError, SimulationError) as error:
        fault = error.message
    except TimeoutError:
        fault = f"it took longer than {MAX_SECONDS:.0f} seconds"
    await _conclude(database, simulation, played, criteria, fault=fault, seconds=time.monotonic() - began)


async def _take(database: Database, organization_id: UUID, simulation_id: UUID) -> tuple[Simulation, Agent] | None:
    async with database.write(organization_id) as session:
        simulation = await session.lock(Simulation, simulation_id)
        if simulation is None or simulation.due_at is None or simulation.due_at > now():
            return None
        if await queries.count_running_simulations(session) >= AT_ONCE:
            simulation.due_at = now() + timedelta(seconds=WAIT_SECONDS)
            return None
        simulation.started_at = simulation.started_at or now()
        simulation.status, simulation.due_at = "running", now() + LEASE
        simulation.attempts += 1
        agent = await _find_tested_agent(session, simulation)
    fault = LOST if simulation.attempts > MAX_ATTEMPTS else DRAFT_CHANGED if agent is None else None
    if fault is not None or agent is None:
        await _conclude(database, simulation, SimulatedConversation(), [], fault=fault, seconds=0.0)
        return None
    return simulation, agent


async def _find_tested_agent(session: ReadSession, simulation: Simulation) -> Agent | None:
    """Return the published agent, or its draft; None if the draft is no longer the one to test."""
    agent = await get_row(session, Agent, simulation.agent_id)
    if simulation.draft_revision is None:
        return agent
    draft = await find_draft(session, agent.id)
    if draft is None or draft.revision != simulation.draft_revision:
        return None
    return drafts.build_drafted_agent(agent, draft)


async def _renew_claim(database: Database, simulation: Simulation, played: SimulatedConversation) -> None:
    """Renew the claim during the conversation, and show its progress, until canceled."""
    shown, renewed = 0, time.monotonic()
    while True:
        await asyncio.sleep(SHOWN_SECONDS)
        if len(played.spoken) == shown and time.monotonic() - renewed < RENEW_SECONDS:
            continue
        shown, renewed = len(played.spoken), time.monotonic()
        try:
            async with database.write(simulation.organization_id) as session:
                claimed = await session.lock(Simulation, simulation.id)
                if claimed and (claimed.attempts, claimed.status) == (simulation.attempts, "running"):
                    claimed.transcript = Content([asdict(entry) for entry in played.spoken])
                    await seal_content(session, claimed)
                    claimed.turns, claimed.due_at = played.turns, now() + LEASE
        except (SQLAlchemyError, OSError) as error:
            fault, simulation_id = type(error).__name__, str(simulation.id)
            logger.warning("the claim of a simulation was not renewed", simulation_id=simulation_id, error=fault)


async def _conclude(
    database: Database,
    ran: Simulation,
    played: SimulatedConversation,
    criteria: list[SimulationCriterion],
    *,
    fault: str | None,
    seconds: float,
) -> None:
    """Save the result and publish the event, unless another worker has the claim or the agent was deleted."""
    async with database.write(ran.organization_id) as session:
        simulation = await session.lock(Simulation, ran.id)
        if simulation is None or simulation.due_at is None or simulation.attempts != ran.attempts:
            return
        passed = sum(criterion.passed for criterion in criteria)
        simulation.status = "error" if fault is not None else "passed" if passed == len(criteria) else "failed"
        simulation.score = passed / len(criteria) if criteria else None
        simulation.criteria = Content([criterion.model_dump() for criterion in criteria])
        simulation.transcript = Content([asdict(entry) for entry in played.spoken])
        await seal_content(session, simulation)
        simulation.turns, simulation.duration_seconds, simulation.call_id = played.turns, round(seconds), played.call_id
        simulation.ended_by, simulation.error_message = played.ended_by, fault
        simulation.due_at, simulation.completed_at = None, now()
        cost = await ledger.calculate_writing_cost(session, played.models, played.embeddings)
        await ledger.settle_hold(session, "simulation", simulation.id, cost)
        fields = {"simulation_id": simulation.id, **simulation.model_dump()}
        await publish(session, SimulationCompleted.model_validate(fields, extra="ignore"))


WORK: Final = (Work(run_simulation, queries.DUE_SIMULATIONS, seconds=1, at_once=8, job_seconds=service.JOB_SECONDS),)
