"""Statements about events, their triggers, targets, and deliveries."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal
from uuid import UUID

from sqlalchemy import Text, and_, any_, bindparam, func, null, or_, union_all
from sqlalchemy import select as select_columns
from sqlmodel import col, delete, select, update

from switchboard.foundation.database import (
    BATCH,
    ReadSession,
    SystemSession,
    WriteSession,
    get_bucket,
    is_among,
    now,
)
from switchboard.foundation.encryption.content import get_table, open_content
from switchboard.foundation.events.models import Delivery, DueDelivery, DueEvent, Event, EventTarget, EventTrigger
from switchboard.foundation.work import DueRows
from switchboard.plugin_sdk import PublishedEvent

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
EVENTS_AT_ONCE = 10
# Longer than a batch can take: a plugin has ten seconds per event.
LEASE = timedelta(seconds=110)


@dataclass(frozen=True, slots=True)
class SubscribedTarget:
    """An event target that receives an event."""

    id: UUID
    kind: str


async def list_audience(
    session: ReadSession, event: str, agent_id: UUID | None
) -> tuple[list[UUID], list[SubscribedTarget]]:
    """List the triggers of an event, and the targets that receive it; of agents' targets only the agent's."""
    values = {"organization_id": session.organization_id, "event": event, "agent_id": agent_id}
    audience = await session.fetch(_AUDIENCE, values)
    subscribers = [SubscribedTarget(row.id, row.kind) for row in audience if row.kind is not None]
    return [row.id for row in audience if row.kind is None], subscribers


async def delete_trigger(session: WriteSession, trigger_id: UUID) -> None:
    """Delete a trigger, if there is one."""
    await session.exec(delete(EventTrigger).where(session.owns(EventTrigger), col(EventTrigger.id) == trigger_id))


async def get_or_create_target(
    session: WriteSession, kind: Literal["agent", "integration"], target_id: UUID
) -> EventTarget:
    """Return the target of its owner, locked; created without an address if needed."""
    await session.insert_if_new(EventTarget(id=target_id, organization_id=session.organization_id, kind=kind))
    rows = session.select(EventTarget).where(col(EventTarget.id) == target_id)
    return (await session.exec(rows.with_for_update())).one()


async def fail_pending_deliveries(
    session: WriteSession, target_id: UUID, error: str, *, age: timedelta = timedelta(0)
) -> int:
    """End the deliveries to a target that have been pending for so long as failed, a batch at most; return how many.

    Those whose result is being written are left out.
    """
    mine = session.owns(DueDelivery), col(DueDelivery.target_id) == target_id
    # In terms of the two partial indexes.
    bucket = func.bucket(col(DueDelivery.organization_id))
    is_ready = and_(col(DueDelivery.is_ready), bucket == get_bucket(session.organization_id))
    found = (
        select(DueDelivery.id)
        .where(*mine, or_(is_ready, ~col(DueDelivery.is_ready)), col(DueDelivery.created_at) <= now() - age)
        .limit(BATCH)
        .with_for_update(skip_locked=True)
    )
    gone = delete(DueDelivery).where(col(DueDelivery.id).in_(found)).returning(col(DueDelivery.id))
    ids = (await session.exec(gone)).scalars().all()
    ended = {"status": "failed", "last_error": error, "next_attempt_at": None}
    await session.exec(update(Delivery).where(session.owns(Delivery), is_among(col(Delivery.id), ids)).values(ended))
    return len(ids)


EVENTS_TO_WATCH: Final = DueRows(DueEvent, "watch_due_at")
"""Events that plugins have not been notified of."""


async def claim_unnotified_events(session: SystemSession, organization_id: UUID) -> list[PublishedEvent]:
    """Claim events of an organization that plugins have not been notified of, oldest first; they are due again when the
    lease ends.
    """
    rows = await session.exec(
        select(Event, DueEvent)
        .join(DueEvent, col(DueEvent.id) == col(Event.id))
        .where(*EVENTS_TO_WATCH.match(organization_id))
        .order_by(col(DueEvent.watch_due_at))
        .limit(EVENTS_AT_ONCE)
        .with_for_update(skip_locked=True, of=DueEvent)
    )
    events = []
    for row, due in rows.all():
        await open_content(session, row)
        due.watch_due_at = now() + LEASE
        events.append(PublishedEvent(row.id, row.organization_id, row.name, row.data.value, row.occurred_at))
    return events


async def mark_done(
    session: SystemSession | WriteSession, event_id: UUID, due: Literal["watch_due_at", "trigger_due_at"]
) -> None:
    """Record that plugins have been notified of an event (`watch_due_at`), or that its triggers have been evaluated
    (`trigger_due_at`): delete its row, or only that moment if there is something else to do.
    """
    row = col(DueEvent.id) == event_id
    other = DueEvent.trigger_due_at if due == "watch_due_at" else DueEvent.watch_due_at
    is_last = delete(DueEvent).where(row, col(other).is_(None))
    if not (await session.exec(is_last)).rowcount:
        await session.exec(update(DueEvent).where(row).values({due: None}))
        await session.exec(is_last)  # the other one may have been done while this waited for the row
