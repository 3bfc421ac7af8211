"""Publish events: a fact, its event, and its deliveries are one transaction. Nothing is sent before the commit, and
nothing committed is lost.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import bindparam
from sqlmodel import col, or_, select

from switchboard.foundation.database import TenantSession, new_id, now
from switchboard.foundation.encryption.texts import is_unreadable
from switchboard.foundation.events.catalog import EventData, build_delivery_model
from switchboard.foundation.events.models import Delivery, Event, EventTarget
from switchboard.foundation.events.triggers import list_triggers
from switchboard.foundation.jobs import wake

TransactionalHandler: TypeAlias = Callable[[TenantSession, EventData], Awaitable[None]]
"""A handler above the publisher's layer that runs in the same transaction. The application passes the handlers to
its database's sessions.
"""

# Built once: each event asks it.
_SUBSCRIBERS = select(EventTarget).where(
    col(EventTarget.organization_id) == bindparam("organization_id"),
    col(EventTarget.enabled),
    col(EventTarget.url).is_not(None),
    or_(col(EventTarget.kind) != "agent", col(EventTarget.id) == bindparam("agent_id")),
)


async def publish(session: TenantSession, data: EventData, *, depth: int = 0) -> None:
    """Record an event with its fact, create a delivery for each subscribed target, and call the transactional
    handlers.

    `depth`: length of the automation chain that caused the fact.
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
    event.triggered = await list_triggers(session, data.event)
    session.add(event)
    wake(session, "notify_event_watchers")
    if event.triggered:
        event.trigger_due_at = moment
        wake(session, "evaluate_triggers", organization_id=str(organization_id), event_id=str(event.id))
    targets = await _list_subscribers(session, data)
    if targets:
        body = serialize_body(data, moment)
        for target in targets:
            enqueue(session, target, data.event, body, subject_id=data.get_subject())
    listeners: Sequence[TransactionalHandler] = session.info.get("listeners", ())
    for listener in listeners:
        await listener(session, data)


def serialize_body(data: EventData, moment: datetime) -> str:
    """Serialize the body of every delivery of an event, once; each attempt sends the same bytes
    (docs/decisions/0010-webhook-deliveries.md).
    """
    return (
        build_delivery_model(type(data))
        .model_construct(event=data.event, data=data, timestamp=moment)
        .model_dump_json()
    )


def read_payload(delivery: Delivery) -> dict[str, JsonValue]:
    """Return the body of a delivery: `event`, `data`, and `timestamp`; `unreadable` if it cannot be decrypted."""
    if is_unreadable(delivery.body):
        return {"unreadable": delivery.body}
    payload: dict[str, JsonValue] = json.loads(delivery.body)
    return payload


def enqueue(
    session: TenantSession,
    target: EventTarget,
    event_type: str,
    body: str,
    *,
    subject_id: UUID | None,
    replayed_from_id: UUID | None = None,
) -> Delivery:
    """Create a delivery to one target, sent once the transaction commits."""
    delivery = Delivery(
        id=new_id(),
        organization_id=target.organization_id,
        target_id=target.id,
        target_kind=target.kind,
        event_type=event_type,
        subject_id=subject_id,
        body=body,
        replayed_from_id=replayed_from_id,
    )
    session.add(delivery)
    wake(session, "wake_delivery_worker")
    return delivery


async def _list_subscribers(session: TenantSession, data: EventData) -> list[EventTarget]:
    values = {"organization_id": session.organization_id, "agent_id": data.concerned_agent()}
    targets = (await session.exec(_SUBSCRIBERS, params=values)).all()
    return [target for target in targets if not target.events or data.event in target.events]
