"""Business rules of deliveries: listing, replay, and test events."""

from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from pydantic import JsonValue

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import WriteSession, new_id, now
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.events.catalog import CallCompleted
from switchboard.foundation.events.models import Delivery, EventTarget
from switchboard.foundation.events.outbox import enqueue, read_payload, serialize_body
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row
from switchboard.resources.webhooks import service as endpoints
from switchboard.resources.webhooks.queries import list_failed_deliveries
from switchboard.resources.webhooks.schemas import ReplayOut

MOST_REPLAYED = 1000
"""Deliveries that one request replays: a second's work for the database."""
SAMPLE_DURATION = timedelta(seconds=42)
SAMPLE_METADATA: dict[str, JsonValue] = {"test": True}
"""Metadata that marks a test event for its receiver, in the signed body."""


async def replay_delivery(session: WriteSession, delivery_id: UUID) -> Delivery:
    """Deliver the same body again under a new id. Raises `NotFound`, and `InvalidState` if the receiver is gone or
    disabled, or the body cannot be decrypted.
    """
    original = await get_row(session, Delivery, delivery_id)
    target = await session.find(EventTarget, original.target_id)
    if target is None or target.url is None:
        raise InvalidState("The receiver of this delivery has been deleted.")
    _refuse_disabled(target)
    record_audit(session, AuditAction.WEBHOOK_DELIVERY_REPLAYED, delivery_id)
    if not original.body.is_readable:
        raise InvalidState("The body of this delivery cannot be decrypted: its key was destroyed, or it was altered.")
    return await _replay(session, target, original)


async def replay_failed_deliveries(
    session: WriteSession, endpoint_id: UUID, *, since: datetime, until: datetime | None
) -> ReplayOut:
    """Replay up to `MOST_REPLAYED` failed deliveries of a period that have no replay yet, oldest first. Without
    `until` the period lasts until now. Bodies that cannot be decrypted are left out.

    The endpoint is locked meanwhile, so that two requests at once do not replay the same delivery. Raises `NotFound`,
    and `InvalidState` for a disabled endpoint.
    """
    endpoint = await endpoints.lock_endpoint(session, endpoint_id)
    _refuse_disabled(endpoint)
    found = await list_failed_deliveries(session, endpoint.id, since=since, until=until, most=MOST_REPLAYED + 1)
    await open_content(session, *found)
    replayed = [original for original in found[:MOST_REPLAYED] if original.body.is_readable]
    for original in replayed:
        await _replay(session, endpoint, original)
    record_audit(session, AuditAction.WEBHOOK_ENDPOINT_REPLAYED, endpoint.id)
    return ReplayOut(replayed=len(replayed), has_more=len(found) > MOST_REPLAYED)


async def send_test_event(session: WriteSession, endpoint_id: UUID) -> Delivery:
    """Deliver a made-up `call.completed`, whatever the endpoint subscribes to. Raises `NotFound`, and `InvalidState`
    for a disabled endpoint.
    """
    endpoint = await endpoints.get_endpoint(session, endpoint_id)
    _refuse_disabled(endpoint)
    ended = now()
    sample = CallCompleted(
        call_id=new_id(),
        agent_id=new_id(),
        direction="outbound",
        status="completed",
        from_number="+15550100200",
        to_number="+15550100001",
        duration_seconds=int(SAMPLE_DURATION.total_seconds()),
        cost_total=Decimal("0.05"),
        error_message=None,
        started_at=ended - SAMPLE_DURATION,
        ended_at=ended,
        created_at=ended - SAMPLE_DURATION,
        metadata=SAMPLE_METADATA,
    )
    record_audit(session, AuditAction.WEBHOOK_ENDPOINT_TESTED, endpoint.id)
    body = serialize_body(sample, ended)
    return await enqueue(session, endpoint, sample.event, body, subject_id=sample.get_subject())


def is_test(delivery: Delivery) -> bool:
    """Return whether a delivery has a made-up event."""
    data = read_payload(delivery).get("data")
    return isinstance(data, dict) and data.get("metadata") == SAMPLE_METADATA


async def _replay(session: WriteSession, target: EventTarget, original: Delivery) -> Delivery:
    return await enqueue(
        session,
        target,
        original.event_type,
        original.body.value,
        subject_id=original.subject_id,
        replayed_from_id=original.id,
    )


def _refuse_disabled(target: EventTarget) -> None:
    if not target.enabled:
        raise InvalidState("The endpoint is disabled; enable it first.")
