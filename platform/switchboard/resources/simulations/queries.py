"""Statements about simulations."""

from typing import Final
from uuid import UUID

from sqlalchemy import func
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, now
from switchboard.foundation.work import DueRows
from switchboard.resources.agents.models import Simulation

NAMES_SHOWN: Final = 100


def select_simulations(session: ReadSession, agent_id: UUID) -> SelectOfScalar[Simulation]:
    return session.select(Simulation).where(col(Simulation.agent_id) == agent_id)


async def list_simulation_names(session: ReadSession, agent_id: UUID) -> list[str]:
    """List the names of an agent's text simulations."""
    rows = select(Simulation.name).where(
        session.owns(Simulation), col(Simulation.agent_id) == agent_id, col(Simulation.mode) == "text"
    )
    return list(await session.exec(rows.distinct().order_by(col(Simulation.name)).limit(NAMES_SHOWN)))


async def find_last_simulation(session: ReadSession, agent_id: UUID, name: str) -> Simulation | None:
    """Return an agent's last text simulation of a name; None if there is none."""
    rows = select_simulations(session, agent_id).where(col(Simulation.name) == name, col(Simulation.mode) == "text")
    return (await session.exec(rows.order_by(col(Simulation.created_at).desc()).limit(1))).one_or_none()


async def count_running_simulations(session: ReadSession) -> int:
    """Count the organization's simulations that a worker has claimed now."""
    running = session.owns(Simulation), col(Simulation.status) == "running", col(Simulation.due_at) > now()
    return (await session.exec(select(func.count()).where(*running))).one()


DUE_SIMULATIONS: Final = DueRows(Simulation, "due_at")
"""Simulations that no worker has claimed."""
