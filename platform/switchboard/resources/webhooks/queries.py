"""Statements about webhook endpoints and their deliveries."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import aliased
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession
from switchboard.foundation.encryption.content import get_table, match_readable
from switchboard.foundation.events.models import Delivery, DeliveryAttempt, EventTarget
from switchboard.resources.webhooks.schemas import AllDeliveriesQuery, DeliveryQuery


async def list_endpoints(session: ReadSession) -> list[EventTarget]:
    """List the organization's endpoints, newest first."""
    rows = session.select(EventTarget).where(col(EventTarget.kind) == "endpoint")
    newest = rows.order_by(col(EventTarget.created_at).desc(), col(EventTarget.id).desc())
    return list((await session.exec(newest)).all())


def select_deliveries(
    session: ReadSession, query: DeliveryQuery | None = None, *, target_id: UUID | None = None
) -> SelectOfScalar[Delivery]:
    """Select the organization's deliveries, filtered."""
    rows = session.select(Delivery)
    if target_id is not None:
        rows = rows.where(col(Delivery.target_id) == target_id)
    if query is not None and query.status is not None:
        rows = rows.where(col(Delivery.status) == query.status)
    if isinstance(query, AllDeliveriesQuery) and query.target_kind is not None:
        rows = rows.where(col(Delivery.target_kind) == query.target_kind)
    return rows


async def list_failed_deliveries(
    session: ReadSession, target_id: UUID, *, since: datetime, until: datetime | None, most: int
) -> Sequence[Delivery]:
    """List the oldest failed deliveries of a period that have no replay yet and that are plain or have a key."""
    replay = aliased(Delivery)
    replays = select(replay.id).where(session.owns(replay), col(replay.replayed_from_id) == col(Delivery.id))
    failed = (
        select_deliveries(session, target_id=target_id)
        .where(col(Delivery.status) == "failed", col(Delivery.created_at) >= since, ~replays.exists())
        .where(match_readable(get_table(Delivery).c.body))
        .order_by(col(Delivery.created_at), col(Delivery.id))
    )
    if until is not None:
        failed = failed.where(col(Delivery.created_at) < until)
    return (await session.exec(failed.limit(most))).all()


async def list_attempts(session: ReadSession, delivery_id: UUID) -> list[DeliveryAttempt]:
    """List the attempts of a delivery, in order."""
    rows = session.select(DeliveryAttempt).where(col(DeliveryAttempt.delivery_id) == delivery_id)
    return list((await session.exec(rows.order_by(col(DeliveryAttempt.number)))).all())
