"""Queries about phone numbers that cross organizations."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, is_among, now
from switchboard.resources.phone_numbers.models import PhoneNumber

PURCHASE_PATIENCE = timedelta(minutes=1)
BATCH = 50
IN_USE = ("provisioning", "active", "pending_release")


async def list_unfinished_purchases(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """List the organization and id of numbers whose purchase was interrupted."""
    rows = await session.exec(
        select(PhoneNumber.organization_id, PhoneNumber.id)
        .where(col(PhoneNumber.status) == "provisioning", col(PhoneNumber.created_at) < now() - PURCHASE_PATIENCE)
        .limit(BATCH)
    )
    return list(rows.all())


async def list_due_releases(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """List the organization and id of numbers whose billing period has ended."""
    rows = await session.exec(
        select(PhoneNumber.organization_id, PhoneNumber.id)
        .where(col(PhoneNumber.status) == "pending_release", col(PhoneNumber.release_at) <= now())
        .limit(BATCH)
    )
    return list(rows.all())


async def list_due_rents(session: SystemSession) -> list[tuple[UUID, UUID]]:
    """List the organization and id of numbers with a month that has started and is not charged."""
    rows = select(PhoneNumber.organization_id, PhoneNumber.id).where(
        col(PhoneNumber.status) == "active", col(PhoneNumber.billed_until) <= now()
    )
    return list((await session.exec(rows.limit(BATCH))).all())


async def find_number_owner(session: SystemSession, phone_number: str) -> PhoneNumber | None:
    """Return the active number in E.164 of any organization; None if there is none."""
    rows = select(PhoneNumber).where(col(PhoneNumber.phone_number) == phone_number, col(PhoneNumber.status).in_(IN_USE))
    return (await session.exec(rows)).one_or_none()


async def list_numbers_of_others(
    session: SystemSession, organization_id: UUID, phone_numbers: Collection[str]
) -> list[str]:
    """List those of the numbers, in E.164, that other organizations have."""
    rows = select(PhoneNumber.phone_number).where(
        is_among(col(PhoneNumber.phone_number), phone_numbers),
        col(PhoneNumber.organization_id) != organization_id,
        col(PhoneNumber.status).in_(IN_USE),
    )
    return sorted(await session.exec(rows))
