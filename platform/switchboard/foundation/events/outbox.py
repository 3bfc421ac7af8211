"""Publish events: a fact, its event, and its deliveries are one transaction. Nothing is sent before the commit, and
nothing committed is lost.
"""

import json
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue

from switchboard.foundation.database import ReadSession, WriteSession, new_id, now
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.events.catalog import EventData, build_delivery_model
from switchboard.foundation.events.models import (
    TARGET_LABEL,
    Delivery,
    DueDelivery,
    DueEvent,
    Event,
    EventTarget,
    EventTrigger,
)
from switchboard.foundation.events.queries import (
    SubscribedTarget,
    delete_trigger,
    fail_pending_deliveries,
    list_audience,
)


async def publish(session: WriteSession, data: EventData, *, depth: int = 0) -> None:
    """Record an event with its fact, create a delivery for each subscribed target, and call the transactional
    handlers.

    `depth`: length of the automation chain that caused the fact.
    """
    moment = now()
    organization_id = session.organization_id
    triggers, subscribers = await list_audience(session, data.event, data.concerned_agent())
    event = Event(
        id=new_id(),
        organization_id=organization_id,
        name=data.event,
        data=Content(data.model_dump(mode="json")),
        occurred_at=moment,
        depth=depth,
        triggered=triggers,
    )
    await seal_content(session, event)
    due = DueEvent(id=event.id, organization_id=organization_id, trigger_due_at=moment if triggers else None)
    session.add_all([event, due])
    session.wake("notify_event_watchers")
    if triggers:
        session.wake("evaluate_triggers")
    if subscribers:
        body = serialize_body(data, moment)
        for subscriber in subscribers:
            await enqueue(session, subscriber, data.event, body, subject_id=data.get_subject())
    for listener in session.parts.listeners:
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
    if not delivery.body.is_readable:
        return {"unreadable": delivery.body.value}
    payload: dict[str, JsonValue] = json.loads(delivery.body.value)
    return payload


async def enqueue(
    session: WriteSession,
    target: EventTarget | SubscribedTarget,
    event_type: str,
    body: str,
    *,
    subject_id: UUID,
    replayed_from_id: UUID | None = None,
) -> Delivery:
    """Create a delivery to one target, sent once the transaction commits."""
    delivery = Delivery(
        id=new_id(),
        organization_id=session.organization_id,
        target_id=target.id,
        target_kind=target.kind,
        event_type=event_type,
        subject_id=subject_id,
        body=Content(body),
        replayed_from_id=replayed_from_id,
    )
    await seal_content(session, delivery)
    session.add(delivery)
    session.add(DueDelivery(id=delivery.id, organization_id=session.organization_id, target_id=target.id))
    session.wake("deliver_events")
    return delivery


# Event triggers. Each owner of a trigger writes its own row.


async def set_trigger(session: WriteSession, trigger_id: UUID, event: str | None) -> None:
    """Set the event that a trigger reacts to; None removes the trigger."""
    await delete_trigger(session, trigger_id)
    if event is not None:
        session.add(EventTrigger(id=trigger_id, organization_id=session.organization_id, event=event))


# Event targets that belong to another resource: an agent's webhook, and the integration's.

OWNERLESS = "the receiver was deleted"


async def decrypt_agent_secret(session: ReadSession, agent_id: UUID) -> str | None:
    """Decrypt the secret that signs requests to an agent's webhook and tools; None without one."""
    target = await session.find(EventTarget, agent_id)
    if target is None or target.secret is None:
        return None
    return session.keyring.decrypt(target.secret, get_secret_label("agent", agent_id, session.organization_id))


async def remove_target(session: WriteSession, target_id: UUID) -> None:
    """Delete a target; its pending deliveries fail, of a long backlog the rest within the hour. Its deliveries remain
    visible.
    """
    target = await session.lock(EventTarget, target_id)
    if target is None:
        return
    await session.delete(target)
    await fail_pending_deliveries(session, target_id, OWNERLESS)


def get_secret_label(kind: str, target_id: UUID, organization_id: UUID) -> str:
    """Return the encryption label of a target's secrets."""
    return TARGET_LABEL.format(kind=kind, id=target_id, organization_id=organization_id)
