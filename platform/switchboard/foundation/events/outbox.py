"""Publishing: the fact, its event and its deliveries are one transaction. Nothing is told before commit, nothing committed is forgotten."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from sqlmodel import col, or_

from switchboard.foundation.database import TenantSession, new_id, now
from switchboard.foundation.events.catalog import EventData, delivery_model
from switchboard.foundation.events.models import Delivery, Event, EventTarget
from switchboard.foundation.events.triggers import triggered_by
from switchboard.foundation.jobs import wake

Listener: TypeAlias = Callable[[TenantSession, EventData], Awaitable[None]]
"""A part of the platform above whatever publishes, told in the same transaction. The application gives them to its database's sessions."""


async def publish(session: TenantSession, data: EventData, *, depth: int = 0) -> None:
    """Write an event down beside its fact, a delivery for each target that wants it, and tell the listeners.

    The session must be the organization's own. `depth` is how many automations' doings led to the fact.
    """
    moment = now()
    organization_id = session.organization_id
    event = Event(
        id=new_id(),
        organization_id=organization_id,
        name=data.event,
        data=data.model_dump(mode="json"),
        occurred_at=moment,
        depth=depth,
    )
    event.triggered = await triggered_by(session, data.event)
    session.add(event)
    wake(session, "notify_event_watchers")
    if event.triggered:
        event.trigger_due_at = moment
        wake(session, "evaluate_triggers", organization_id=str(organization_id), event_id=str(event.id))
    targets = await _subscribed(session, data)
    if targets:
        body = frozen_body(data, moment)
        for target in targets:
            enqueue(session, target, data.event, body)
    listeners: Sequence[Listener] = session.info.get("listeners", ())
    for listener in listeners:
        await listener(session, data)


def frozen_body(data: EventData, moment: datetime) -> str:
    """The body of every delivery of an event (specification, "Delivery body"): made once, sent as it is each time."""
    return delivery_model(type(data)).model_construct(event=data.event, data=data, timestamp=moment).model_dump_json()


def enqueue(
    session: TenantSession, target: EventTarget, event_type: str, body: str, *, replayed_from_id: UUID | None = None
) -> Delivery:
    """Have something delivered to a target once the session has been committed."""
    delivery = Delivery(
        id=new_id(),
        organization_id=target.organization_id,
        target_id=target.id,
        target_kind=target.kind,
        event_type=event_type,
        body=body,
        replayed_from_id=replayed_from_id,
    )
    session.add(delivery)
    wake(session, "wake_delivery_worker")
    return delivery


async def _subscribed(session: TenantSession, data: EventData) -> list[EventTarget]:
    rows = session.select(EventTarget).where(
        col(EventTarget.enabled),
        col(EventTarget.url).is_not(None),
        or_(col(EventTarget.kind) != "agent", col(EventTarget.id) == data.concerned_agent()),
    )
    return [target for target in (await session.exec(rows)).all() if not target.events or data.event in target.events]
