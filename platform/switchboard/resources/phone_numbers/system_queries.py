"""Queries about phone numbers that cross organizations."""

from collections.abc import Collection
from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import SystemSession, is_among
from switchboard.resources.phone_numbers.models import PhoneNumber

IN_USE = ("provisioning", "active", "pending_release")


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
