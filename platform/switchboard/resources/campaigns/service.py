"""Business rules of campaigns: listing, creation, contact lists, counters."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy
from sqlalchemy import ARRAY, Integer, Text, Uuid, func, insert, literal, update
from sqlalchemy.types import TypeEngine
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession, is_among, new_id, now
from switchboard.foundation.events.triggers import get_cause_depth
from switchboard.foundation.web.errors import InvalidState, NotFound, ValidationFailed
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.agents import service as agents
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.campaigns.schemas import MAX_CONTACTS, CampaignCreate, CampaignFields, ContactToCall
from switchboard.resources.phone_numbers import service as numbers

CHANGEABLE = ("draft", "paused")
OPEN = ("draft", "scheduled", "running", "paused")
COUNTERS = ("completed", "failed", "skipped", "canceled")
LISTED_TWICE = "The number is in the list already."


def list_campaigns(session: TenantSession) -> SelectOfScalar[Campaign]:
    """Select the organization's campaigns."""
    return session.select(Campaign)


async def list_open_campaigns(session: TenantSession) -> list[Campaign]:
    """List the campaigns that accept new contacts, by name."""
    rows = list_campaigns(session).where(col(Campaign.status).in_(OPEN))
    return list((await session.exec(rows.order_by(func.lower(Campaign.name), col(Campaign.id)))).all())


async def get_campaign(session: TenantSession, campaign_id: UUID, *, lock: bool = False) -> Campaign:
    """Return a campaign, locked for this transaction if asked. Raises `NotFound`."""
    rows = list_campaigns(session).where(col(Campaign.id) == campaign_id)
    if lock:
        rows = rows.with_for_update().execution_options(populate_existing=True)
    campaign = (await session.exec(rows)).one_or_none()
    if campaign is None:
        raise NotFound
    return campaign


def list_all_campaign_contacts(session: TenantSession) -> SelectOfScalar[CampaignContact]:
    """Select the contacts of all of the organization's campaigns."""
    return session.select(CampaignContact)


def list_campaign_contacts(
    session: TenantSession, campaign_id: UUID, *, status: str | None = None
) -> SelectOfScalar[CampaignContact]:
    """Select a campaign's contacts."""
    rows = list_all_campaign_contacts(session).where(col(CampaignContact.campaign_id) == campaign_id)
    return rows if status is None else rows.where(col(CampaignContact.status) == status)


async def create_campaign(session: TenantSession, data: CampaignCreate) -> Campaign:
    """Create a draft with its contacts. Raises `ValidationFailed` for an agent or phone number that the organization
    does not have.
    """
    campaign = Campaign(id=new_id(), organization_id=session.organization_id, **await _settings(session, data))
    session.add(campaign)
    await session.flush()
    record_audit(session, AuditAction.CAMPAIGN_CREATED, campaign.id, fields=data.model_fields_set)
    return await _write(session, campaign, data.contacts)


async def update_campaign(session: TenantSession, campaign_id: UUID, data: CampaignFields) -> Campaign:
    """Change the settings of a campaign that is not dialing; calls that were made stay.

    Raises `NotFound`, `InvalidState` for a campaign that is neither a draft nor paused, and what `create_campaign`
    raises.
    """
    campaign = await get_campaign(session, campaign_id, lock=True)
    if campaign.status not in CHANGEABLE:
        raise InvalidState(
            f"The campaign is {campaign.status}. Only a campaign that is {' or '.join(CHANGEABLE)} can be changed."
        )
    for name, value in (await _settings(session, data)).items():
        setattr(campaign, name, value)
    campaign.updated_at = now()
    record_audit(session, AuditAction.CAMPAIGN_UPDATED, campaign.id, fields=data.model_fields_set)
    return campaign


async def _settings(session: TenantSession, data: CampaignFields) -> dict[str, Any]:
    agent_id = parse_id(data.agent_id)
    agent = await agents.find_agent(session, agent_id) if agent_id else None
    if agent is None:
        raise ValidationFailed.field("agent_id", "is not an agent of the organization")
    number = await numbers.require_number(session, data.phone_number_id, field="phone_number_id")
    return {
        "name": data.name,
        "agent_id": agent.id,
        "phone_number_id": number.id,
        "scheduled_at": data.scheduled_at,
        "max_concurrent": data.max_concurrent,
        "retry": data.retry.model_dump() if data.retry else None,
        "voicemail_policy": data.voicemail_policy.model_dump() if data.voicemail_policy else None,
    }


async def count_calls_in_flight(session: TenantSession, campaign_id: UUID) -> int:
    """Count the contacts that are being called."""
    rows = list_campaign_contacts(session, campaign_id).where(
        col(CampaignContact.status).in_(("dialing", "in_progress"))
    )
    return (await session.exec(select(func.count()).select_from(rows.subquery()))).one()


async def add_contacts(session: TenantSession, campaign_id: UUID, people: Sequence[ContactToCall]) -> Campaign:
    """Add contacts to a campaign; contacts that are in it already stay unchanged.

    Raises `NotFound`, and `InvalidState` for a campaign that has ended or would have more than 100,000 contacts.
    """
    campaign = await get_campaign(session, campaign_id, lock=True)
    if campaign.status not in OPEN:
        raise InvalidState(f"The campaign is {campaign.status}.")
    if campaign.total_contacts + len(people) > MAX_CONTACTS:
        raise InvalidState(f"A campaign has at most {MAX_CONTACTS} contacts.")
    rows = list_campaign_contacts(session, campaign_id).where(
        is_among(col(CampaignContact.phone_number), [person.phone_number for person in people])
    )
    there = {contact.phone_number for contact in (await session.exec(rows)).all()}
    campaign = await _write(session, campaign, [person for person in people if person.phone_number not in there])
    if campaign.status == "running":
        campaign.due_at = now()
    record_audit(session, AuditAction.CAMPAIGN_CONTACTS_ADDED, campaign.id)
    return campaign


async def add_to_counters(session: TenantSession, campaign_id: UUID, **more: int) -> Campaign:
    """Add to a campaign's counters and complete a campaign without open contacts; return it, locked."""
    changes = {name: getattr(Campaign, name) + number for name, number in more.items()}
    rows = update(Campaign).where(session.owns(Campaign), col(Campaign.id) == campaign_id)
    changed = rows.values(**changes, updated_at=now()).returning(Campaign)
    campaign: Campaign = (await session.exec(changed, execution_options={"populate_existing": True})).scalar_one()
    if campaign.status in ("running", "paused") and campaign.total_contacts == sum(
        getattr(campaign, name) for name in COUNTERS
    ):
        campaign.status, campaign.status_reason, campaign.due_at = "completed", None, None
    return campaign


async def _write(session: TenantSession, campaign: Campaign, people: Sequence[ContactToCall]) -> Campaign:
    repeated = list(_mark_repeated(person.phone_number for person in people))
    # One statement for any number of rows: PostgreSQL refuses COPY into a table with row-level security.
    columns: dict[str, tuple[Sequence[object], TypeEngine[Any]]] = {
        "id": ([new_id() for _ in people], Uuid()),
        "phone_number": ([person.phone_number for person in people], Text()),
        "name": ([person.name for person in people], Text()),
        "status": (["skipped" if again else "pending" for again in repeated], Text()),
        "cause_depth": ([get_cause_depth(session)] * len(people), Integer()),
        "error": ([LISTED_TWICE if again else None for again in repeated], Text()),
    }
    given = (
        func.unnest(*(literal(values, ARRAY(kind)) for values, kind in columns.values()))
        .table_valued(*columns)
        .render_derived()
    )
    owner = literal(campaign.organization_id), literal(campaign.id)
    rows = sqlalchemy.select(*owner, *(given.c[name] for name in columns))
    await session.exec(insert(CampaignContact).from_select(["organization_id", "campaign_id", *columns], rows))
    return await add_to_counters(session, campaign.id, total_contacts=len(people), skipped=sum(repeated))


def _mark_repeated(numbers_in_order: Iterable[str]) -> Iterable[bool]:
    seen: set[str] = set()
    for number in numbers_in_order:
        yield number in seen
        seen.add(number)
