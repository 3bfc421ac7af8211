"""Statements about campaigns and their contacts."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ARRAY, Integer, Text, Uuid, func, insert, literal, update
from sqlalchemy import select as select_columns
from sqlalchemy.types import TypeEngine
from sqlmodel import col, delete, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, WriteSession, is_among, new_id, now
from switchboard.foundation.work import DueRows
from switchboard.resources.campaigns.models import IN_FLIGHT, OPEN, Campaign, CampaignContact
from switchboard.resources.campaigns.schemas import ContactToCall
from switchboard.resources.identity.queries import is_active


async def list_open_campaigns(session: ReadSession) -> list[Campaign]:
    """List the campaigns that accept new contacts, by name."""
    rows = session.select(Campaign).where(col(Campaign.status).in_(OPEN))
    return list(await session.exec(rows.order_by(func.lower(Campaign.name), col(Campaign.id))))


async def list_due_campaigns(session: ReadSession) -> list[UUID]:
    """List the ids of the running campaigns that are due, those with the fewest calls in flight first."""
    due = col(Campaign.status) == "running", col(Campaign.due_at) <= now()
    rows = select(Campaign.id).where(session.owns(Campaign), *due).order_by(col(Campaign.in_flight))
    return list(await session.exec(rows))


async def start_due_campaigns(session: WriteSession) -> None:
    """Start the scheduled campaigns whose time has come."""
    due = col(Campaign.status) == "scheduled", col(Campaign.scheduled_at) <= now()
    await session.exec(update(Campaign).where(session.owns(Campaign), *due).values(status="running", updated_at=now()))


async def update_counters(session: WriteSession, campaign_id: UUID, **more: int) -> Campaign:
    """Add to a campaign's counters; return it as it is now, locked."""
    changes = {name: getattr(Campaign, name) + number for name, number in more.items()}
    rows = update(Campaign).where(session.owns(Campaign), col(Campaign.id) == campaign_id)
    changed = rows.values(**changes, updated_at=now()).returning(Campaign)
    campaign: Campaign = (await session.exec(changed, execution_options={"populate_existing": True})).scalar_one()
    return campaign


DUE_CAMPAIGNS: Final = DueRows(Campaign, "due_at", (is_active(Campaign),))
"""Campaigns that may dial. Those of a suspended organization stay due."""


# Contacts of a campaign.


def select_campaign_contacts(
    session: ReadSession, campaign_id: UUID, *, status: str | None = None
) -> SelectOfScalar[CampaignContact]:
    rows = session.select(CampaignContact).where(col(CampaignContact.campaign_id) == campaign_id)
    return rows if status is None else rows.where(col(CampaignContact.status) == status)


async def list_present_numbers(session: ReadSession, campaign_id: UUID, numbers: Sequence[str]) -> set[str]:
    """Return those of the phone numbers that a campaign's contacts have."""
    is_present = is_among(col(CampaignContact.phone_number), numbers)
    found = await session.exec(select_campaign_contacts(session, campaign_id).where(is_present))
    return {contact.phone_number for contact in found}


async def list_dialed_calls(session: ReadSession, campaign_id: UUID) -> list[UUID | None]:
    """List the ids of the calls that nobody has answered."""
    dialing = await session.exec(select_campaign_contacts(session, campaign_id, status="dialing"))
    return [contact.call_id for contact in dialing]


async def find_soonest_dial(session: ReadSession, campaign_id: UUID) -> datetime | None:
    """Return when the first pending contact may be dialed; None if no contact is pending."""
    waiting = select_campaign_contacts(session, campaign_id, status="pending").subquery()
    soonest: datetime | None = (await session.exec(select(func.min(waiting.c.dial_at)))).one()
    return soonest


async def claim_due_contacts(session: WriteSession, campaign_id: UUID, *, most: int) -> Sequence[CampaignContact]:
    """Lock the pending contacts that may be dialed now, the longest due first; others may have locked some."""
    due = select_campaign_contacts(session, campaign_id, status="pending").where(col(CampaignContact.dial_at) <= now())
    ordered = due.order_by(col(CampaignContact.dial_at), col(CampaignContact.id)).limit(most)
    return (await session.exec(ordered.with_for_update(skip_locked=True))).all()


async def lock_contacts_in_flight(session: WriteSession, campaign_id: UUID) -> None:
    """Lock the contacts that are being called."""
    running = select_campaign_contacts(session, campaign_id).where(col(CampaignContact.status).in_(IN_FLIGHT))
    await session.exec(running.order_by(col(CampaignContact.id)).with_for_update())


async def lock_contacts_of_number(session: WriteSession, phone_number: str) -> Sequence[CampaignContact]:
    """Lock the contacts of all campaigns with an E.164 number that are not being called."""
    rows = session.select(CampaignContact).where(
        col(CampaignContact.phone_number) == phone_number, col(CampaignContact.status).not_in(IN_FLIGHT)
    )
    return (await session.exec(rows.order_by(col(CampaignContact.id)).with_for_update())).all()


async def insert_contacts(
    session: WriteSession, campaign_id: UUID, people: Sequence[ContactToCall], errors: Sequence[str | None]
) -> None:
    """Insert contacts of a campaign; one with an error is skipped."""
    # One statement for any number of rows: PostgreSQL refuses COPY into a table with row-level security.
    columns: dict[str, tuple[Sequence[object], TypeEngine[Any]]] = {
        "id": ([new_id() for _ in people], Uuid()),
        "phone_number": ([person.phone_number for person in people], Text()),
        "name": ([person.name for person in people], Text()),
        "status": (["pending" if error is None else "skipped" for error in errors], Text()),
        "cause_depth": ([session.cause_depth] * len(people), Integer()),
        "error": (errors, Text()),
    }
    given = (
        func.unnest(*(literal(values, ARRAY(kind)) for values, kind in columns.values()))
        .table_valued(*columns)
        .render_derived()
    )
    owner = literal(session.organization_id), literal(campaign_id)
    rows = select_columns(*owner, *(given.c[name] for name in columns))
    await session.exec(insert(CampaignContact).from_select(["organization_id", "campaign_id", *columns], rows))


async def cancel_pending_contacts(session: WriteSession, campaign_id: UUID) -> int:
    """Cancel the contacts of a campaign that were not called; return how many."""
    rows = update(CampaignContact).where(
        session.owns(CampaignContact),
        col(CampaignContact.campaign_id) == campaign_id,
        col(CampaignContact.status) == "pending",
    )
    return (await session.exec(rows.values(status="canceled", outcome="canceled"))).rowcount


async def delete_campaign_contacts(session: WriteSession, ids: Collection[UUID]) -> None:
    await session.exec(
        delete(CampaignContact).where(session.owns(CampaignContact), is_among(col(CampaignContact.id), ids))
    )
