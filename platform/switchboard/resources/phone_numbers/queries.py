"""Statements about phone numbers."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final, Literal
from uuid import UUID

from sqlalchemy import BindParameter
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, SystemSession, WriteSession, is_among
from switchboard.foundation.work import MOMENT, DueRows
from switchboard.resources.phone_numbers.models import CarrierReference, PhoneNumber

OURS = ("active", "pending_release")
IN_USE = ("provisioning", *OURS)
PURCHASE_PATIENCE = timedelta(minutes=1)
"""Time for which a purchase that has just begun goes on in its request."""


def select_phone_numbers(session: ReadSession) -> SelectOfScalar[PhoneNumber]:
    return session.select(PhoneNumber).where(col(PhoneNumber.status).in_(OURS))


async def list_phone_numbers(session: ReadSession) -> list[PhoneNumber]:
    """List the organization's phone numbers."""
    return list(await session.exec(select_phone_numbers(session)))


async def list_numbers_in_use(session: ReadSession) -> list[PhoneNumber]:
    """List the organization's numbers, with those that are being bought."""
    return list(await session.exec(session.select(PhoneNumber).where(col(PhoneNumber.status).in_(IN_USE))))


async def find_phone_number(session: ReadSession, phone_number: str) -> PhoneNumber | None:
    """Return the organization's number in E.164; None if it is not the organization's."""
    rows = select_phone_numbers(session).where(col(PhoneNumber.phone_number) == phone_number)
    return (await session.exec(rows)).one_or_none()


async def list_numbers_at_carrier(session: ReadSession, carrier: str) -> list[PhoneNumber]:
    """List the organization's active numbers at a carrier, oldest first."""
    rows = select_phone_numbers(session).where(col(PhoneNumber.carrier) == carrier, col(PhoneNumber.status) == "active")
    return list(await session.exec(rows.order_by(col(PhoneNumber.created_at), col(PhoneNumber.id))))


async def list_numbers_answered_by(session: ReadSession, agent_ids: Collection[UUID]) -> dict[UUID, list[PhoneNumber]]:
    """Return the numbers that each of these agents answers, oldest first."""
    rows = select_phone_numbers(session).where(is_among(col(PhoneNumber.inbound_agent_id), agent_ids))
    found: dict[UUID, list[PhoneNumber]] = {agent_id: [] for agent_id in agent_ids}
    for number in (await session.exec(rows.order_by(col(PhoneNumber.created_at)))).all():
        if number.inbound_agent_id is not None:
            found[number.inbound_agent_id].append(number)
    return found


async def list_active_numbers(session: ReadSession) -> list[PhoneNumber]:
    """List the organization's active numbers, in the order of the numbers themselves."""
    rows = select_phone_numbers(session).where(col(PhoneNumber.status) == "active")
    return list(await session.exec(rows.order_by(col(PhoneNumber.phone_number))))


async def find_number_of_agent(session: ReadSession, agent_id: UUID) -> PhoneNumber | None:
    """Return the first number that an agent answers; None if there is none."""
    rows = select_phone_numbers(session).where(
        col(PhoneNumber.inbound_agent_id) == agent_id, col(PhoneNumber.status) == "active"
    )
    return (await session.exec(rows.order_by(col(PhoneNumber.created_at), col(PhoneNumber.id)).limit(1))).one_or_none()


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


INTERRUPTED_PURCHASES: Final = DueRows(
    PhoneNumber,
    "created_at",
    (col(PhoneNumber.status) == "provisioning", col(PhoneNumber.created_at) < MOMENT - PURCHASE_PATIENCE),
)
"""Numbers whose purchase was not finished by its request."""
DUE_RELEASES: Final = DueRows(PhoneNumber, "release_at", (col(PhoneNumber.status) == "pending_release",))
"""Numbers to be released, whose billing period has ended."""
DUE_RENTS: Final = DueRows(PhoneNumber, "billed_until", (col(PhoneNumber.status) == "active",))
"""Numbers for which a month has started that is not charged."""


# The ids by which carriers know calls and text messages.


def select_reference(
    kind: Literal["call", "text"],
    organization_id: UUID | BindParameter[UUID],
    carrier_id: str | BindParameter[str],
    carrier: str | BindParameter[str] | None = None,
) -> SelectOfScalar[UUID]:
    """Select the id of the call or text message that a carrier knows by its own; of any carrier without one."""
    rows = select(CarrierReference.subject_id).where(
        col(CarrierReference.organization_id) == organization_id,
        col(CarrierReference.kind) == kind,
        col(CarrierReference.carrier_id) == carrier_id,
    )
    return rows if carrier is None else rows.where(col(CarrierReference.carrier) == carrier)


async def add_reference(
    session: WriteSession, kind: Literal["call", "text"], carrier: str, carrier_id: str, subject_id: UUID
) -> bool:
    """Let a carrier's id stand for a call or text message that is about to be inserted; return False if it stands for
    another one.
    """
    owner = session.organization_id
    row = CarrierReference(
        organization_id=owner, kind=kind, carrier=carrier, carrier_id=carrier_id, subject_id=subject_id
    )
    return await session.insert_if_new(row)
