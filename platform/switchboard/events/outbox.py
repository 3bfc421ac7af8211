"""Publishing: the fact and its event are one transaction. Nothing is told before commit, nothing committed is forgotten."""

from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.events.catalog import EventData
from switchboard.events.models import Event
from switchboard.work import wake


def publish(session: AsyncSession, data: EventData) -> None:
    """Write an event down beside its fact; the session must be the organization's own."""
    organization_id = session.info["organization_id"]
    session.add(Event(organization_id=organization_id, name=data.name, data=data.model_dump(mode="json")))
    wake(session, "tell_watchers")
