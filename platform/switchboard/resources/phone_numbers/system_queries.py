"""Numbers across organizations: purchases left half done, and releases that have become due. Run under the system role."""

from datetime import timedelta
from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.phone_numbers.models import PhoneNumber

PURCHASE_PATIENCE = timedelta(minutes=1)
BATCH = 50


async def unfinished_purchases(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """Organization and id of each number whose purchase was begun long enough ago that nobody can still be at it."""
    rows = await session.exec(
        select(PhoneNumber.organization_id, PhoneNumber.id)
        .where(col(PhoneNumber.status) == "provisioning", col(PhoneNumber.created_at) < now() - PURCHASE_PATIENCE)
        .limit(BATCH)
    )
    return list(rows.all())


async def due_releases(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """Organization and id of each number whose billing period is over."""
    rows = await session.exec(
        select(PhoneNumber.organization_id, PhoneNumber.id)
        .where(col(PhoneNumber.status) == "pending_release", col(PhoneNumber.release_at) <= now())
        .limit(BATCH)
    )
    return list(rows.all())


async def due_rents(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """Organization and id of each number of which a month has begun that is not charged."""
    rows = select(PhoneNumber.organization_id, PhoneNumber.id).where(
        col(PhoneNumber.status) == "active", col(PhoneNumber.billed_until) <= now()
    )
    return list((await session.exec(rows.limit(BATCH))).all())


async def find_number_owner(session: SystemSession, phone_number: str) -> PhoneNumber | None:
    """The number in use, whoever's it is."""
    in_use = ("provisioning", "active", "pending_release")
    rows = select(PhoneNumber).where(col(PhoneNumber.phone_number) == phone_number, col(PhoneNumber.status).in_(in_use))
    return (await session.exec(rows)).one_or_none()
