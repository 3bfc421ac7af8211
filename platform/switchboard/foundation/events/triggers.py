"""What starts when an event is published, and how deep in such doings a transaction is. Whoever has a trigger writes its own row."""

from uuid import UUID

from sqlmodel import col, delete, select

from switchboard.foundation.database import TenantSession
from switchboard.foundation.events.models import EventTrigger


async def set_trigger(session: TenantSession, trigger_id: UUID, event: str | None) -> None:
    """Have events of this name pull the trigger from now on, and no others; None for none any more."""
    organization_id = session.organization_id
    await session.exec(
        delete(EventTrigger).where(
            col(EventTrigger.organization_id) == organization_id, col(EventTrigger.id) == trigger_id
        )
    )
    if event is not None:
        session.add(EventTrigger(id=trigger_id, organization_id=organization_id, event=event))


async def triggered_by(session: TenantSession, event: str) -> list[UUID]:
    """The triggers that an event of this name pulls."""
    rows = select(EventTrigger.id).where(session.owns(EventTrigger), col(EventTrigger.event) == event)
    return list((await session.exec(rows)).all())


def act_at_depth(session: TenantSession, depth: int) -> None:
    """Say that what this transaction writes is the doing of so many automations, one after the other."""
    session.info["cause_depth"] = depth


def cause_depth(session: TenantSession) -> int:
    """How deep what the transaction writes is; rows whose events come later keep it, and publish with it."""
    depth: int = session.info.get("cause_depth", 0)
    return depth
