"""Event triggers, and the automation depth of a transaction. Each owner of a trigger writes its own row."""

from uuid import UUID

from sqlmodel import col, delete

from switchboard.foundation.database import TenantSession
from switchboard.foundation.events.models import EventTrigger


async def set_trigger(session: TenantSession, trigger_id: UUID, event: str | None) -> None:
    """Set the event that a trigger reacts to; None removes the trigger."""
    organization_id = session.organization_id
    await session.exec(
        delete(EventTrigger).where(
            col(EventTrigger.organization_id) == organization_id, col(EventTrigger.id) == trigger_id
        )
    )
    if event is not None:
        session.add(EventTrigger(id=trigger_id, organization_id=organization_id, event=event))


def set_cause_depth(session: TenantSession, depth: int) -> None:
    """Set the automation depth of the current transaction."""
    session.info["cause_depth"] = depth


def get_cause_depth(session: TenantSession) -> int:
    """Return the automation depth of the transaction; rows that publish events later store it."""
    depth: int = session.info.get("cause_depth", 0)
    return depth
