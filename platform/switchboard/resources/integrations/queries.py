"""Statements about the integration."""

from sqlmodel import col, select

from switchboard.foundation.database import ReadSession
from switchboard.foundation.events.models import EventTarget
from switchboard.resources.integrations.models import Integration


async def find_integration_target(session: ReadSession) -> tuple[Integration, EventTarget] | None:
    """Return the organization's integration and the target of its webhook; None if it has not been set up."""
    both = select(Integration, EventTarget).join(EventTarget, col(EventTarget.id) == col(Integration.id))
    return (await session.exec(both.where(session.owns(Integration)))).one_or_none()
