"""Publish events: a fact, its event, and its deliveries are one transaction. Nothing is sent before the commit, and
nothing committed is lost.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import Text, any_, bindparam, func, null, or_, union_all
from sqlalchemy import select as select_columns
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, delete, select, update

from switchboard.foundation.database import ReadSession, WriteSession, new_id, now
from switchboard.foundation.encryption.content import get_table, is_unreadable
from switchboard.foundation.events.catalog import EventData, build_delivery_model
from switchboard.foundation.events.models import TARGET_LABEL, Delivery, Event, EventTarget, EventTrigger
from switchboard.foundation.keyring import KeyRing

_triggers, _targets = get_table(EventTrigger).c, get_table(EventTarget).c
# Built once, because each event asks it. A trigger has no kind.
_AUDIENCE = union_all(
    select_columns(_triggers.id, null().cast(Text).label("kind")).where(
        _triggers.organization_id == bindparam("organization_id"), _triggers.event == bindparam("event")
    ),
    select_columns(_targets.id, _targets.kind).where(
        _targets.organization_id == bindparam("organization_id"),
        _targets.enabled,
        _targets.url.is_not(None),
        or_(_targets.kind != "agent", _targets.id == bindparam("agent_id")),
        or_(func.cardinality(_targets.events) == 0, bindparam("event") == any_(_targets.events)),
    ),
)


@dataclass(frozen=True, slots=True)
class SubscribedTarget:
    """An event target that receives an event."""

    id: UUID
    kind: str


async def publish(session: WriteSession, data: EventData, *, depth: int = 0) -> None:
    """Record an event with its fact, create a delivery for each subscribed target, and call the transactional
    handlers.

    `depth`: length of the automation chain that caused the fact.
    """
    moment = now()
    organization_id = session.organization_id
    values = {"organization_id": organization_id, "event": data.event, "agent_id": data.concerned_agent()}
    audience = await session.fetch(_AUDIENCE, values)
    triggers = [row.id for row in audience if row.kind is None]
    subscribers = [SubscribedTarget(row.id, row.kind) for row in audience if row.kind is not None]
    event = Event(
        id=new_id(),
        organization_id=organization_id,
        name=data.event,
        data=data.model_dump(mode="json"),
        occurred_at=moment,
        depth=depth,
        triggered=triggers,
        trigger_due_at=moment if triggers else None,
    )
    session.add(event)
    session.wake("notify_event_watchers")
    if triggers:
        session.wake("evaluate_triggers", organization_id=organization_id, event_id=event.id)
    if subscribers:
        body = serialize_body(data, moment)
        for subscriber in subscribers:
            enqueue(session, subscriber, data.event, body, subject_id=data.get_subject())
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
    if is_unreadable(delivery.body):
        return {"unreadable": delivery.body}
    payload: dict[str, JsonValue] = json.loads(delivery.body)
    return payload


def enqueue(
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
        body=body,
        replayed_from_id=replayed_from_id,
    )
    session.add(delivery)
    session.wake("wake_delivery_worker")
    return delivery


# Event triggers. Each owner of a trigger writes its own row.


async def set_trigger(session: WriteSession, trigger_id: UUID, event: str | None) -> None:
    """Set the event that a trigger reacts to; None removes the trigger."""
    await session.exec(delete(EventTrigger).where(session.owns(EventTrigger), col(EventTrigger.id) == trigger_id))
    if event is not None:
        session.add(EventTrigger(id=trigger_id, organization_id=session.organization_id, event=event))


# Event targets that belong to another resource: an agent's webhook, and the integration's.

OWNERLESS = "the receiver was deleted"


async def get_or_create_target(
    session: WriteSession, kind: Literal["agent", "integration"], target_id: UUID
) -> EventTarget:
    """Return the target of its owner, locked; created without an address if needed."""
    fresh = EventTarget(id=target_id, organization_id=session.organization_id, kind=kind)
    await session.exec(insert(EventTarget).values(fresh.model_dump()).on_conflict_do_nothing())
    rows = session.select(EventTarget).where(col(EventTarget.id) == target_id)
    return (await session.exec(rows.with_for_update())).one()


async def decrypt_agent_secret(session: ReadSession, agent_id: UUID, keyring: KeyRing) -> str | None:
    """Decrypt the secret that signs requests to an agent's webhook and tools; None without one."""
    rows = select(EventTarget.secret).where(session.owns(EventTarget), col(EventTarget.id) == agent_id)
    secret = (await session.exec(rows)).one_or_none()
    return keyring.decrypt(secret, get_secret_label("agent", agent_id, session.organization_id)) if secret else None


async def remove_target(session: WriteSession, target_id: UUID) -> None:
    """Delete a target; its pending deliveries fail. Its deliveries remain visible."""
    target = await session.find(EventTarget, target_id, lock=True)
    if target is None:
        return
    await session.delete(target)
    waiting = (session.owns(Delivery), col(Delivery.target_id) == target_id, col(Delivery.status) == "pending")
    await session.exec(
        update(Delivery)
        .where(*waiting)
        .values(status="failed", last_error=OWNERLESS, next_attempt_at=None, due_at=None, lease_token=None)
    )


def get_secret_label(kind: str, target_id: UUID, organization_id: UUID) -> str:
    """Return the encryption label of a target's secrets."""
    return TARGET_LABEL.format(kind=kind, id=target_id, organization_id=organization_id)
