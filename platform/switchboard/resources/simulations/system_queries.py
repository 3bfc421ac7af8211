"""Queries about simulations that cross organizations."""

from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.agents.models import Simulation

BATCH = 100


async def list_due_simulations(session: SystemSession) -> list[tuple[UUID, UUID, UUID]]:
    """List the organization, agent, and id of simulations whose wake-up was lost or whose worker died, longest due
    first.
    """
    rows = select(Simulation.organization_id, Simulation.agent_id, Simulation.id).where(col(Simulation.due_at) <= now())
    return list((await session.exec(rows.order_by(col(Simulation.due_at)).limit(BATCH))).all())
