"""Simulations across organizations: those that a worker has to take on. Run under the system role."""

from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.simulations.models import Simulation

BATCH = 100


async def due(session: SystemSession) -> list[tuple[UUID, UUID, UUID]]:
    """Organization, agent and id of those whose wake-up was lost or whose worker died, the longest due first."""
    rows = select(Simulation.organization_id, Simulation.agent_id, Simulation.id).where(col(Simulation.due_at) <= now())
    return list((await session.exec(rows.order_by(col(Simulation.due_at)).limit(BATCH))).all())
