"""Business rules of campaigns: listing, creation, contact lists, counters, and states."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls import dialing
from switchboard.resources.calls.queries import lock_calls, lock_calls_by_id
from switchboard.resources.campaigns import queries
from switchboard.resources.campaigns.models import OPEN, Campaign
from switchboard.resources.campaigns.schemas import MAX_CONTACTS, CampaignCreate, CampaignFields, ContactToCall
from switchboard.resources.destinations.service import read_outbound_rules
from switchboard.resources.phone_numbers import service as numbers

CHANGEABLE = ("draft", "paused")
COUNTERS = ("completed", "failed", "skipped", "canceled")
LISTED_TWICE = "The number is in the list already."


async def create_campaign(session: WriteSession, data: CampaignCreate) -> Campaign:
    """Create a draft with its contacts. Raises `ValidationFailed` for an agent or phone number that the organization
    does not have.
    """
    campaign = Campaign(organization_id=session.organization_id, **await _settings(session, data))
    session.add(campaign)
    record_audit(session, AuditAction.CAMPAIGN_CREATED, campaign.id, fields=data.model_fields_set)
    return await _write(session, campaign, data.contacts)


async def update_campaign(session: WriteSession, campaign_id: UUID, data: CampaignFields) -> Campaign:
    """Change the settings of a campaign that is not dialing; calls that were made stay.

    Raises `NotFound`, `InvalidState` for a campaign that is neither a draft nor paused, and what `create_campaign`
    raises.
    """
    campaign = await lock_row(session, Campaign, campaign_id)
    if campaign.status not in CHANGEABLE:
        raise InvalidState(
            f"The campaign is {campaign.status}. Only a campaign that is {' or '.join(CHANGEABLE)} can be changed."
        )
    campaign.sqlmodel_update(await _settings(session, data))
    campaign.updated_at = now()
    record_audit(session, AuditAction.CAMPAIGN_UPDATED, campaign.id, fields=data.model_fields_set)
    return campaign


async def _settings(session: ReadSession, data: CampaignFields) -> dict[str, Any]:
    agent = await agents.require_agent(session, data.agent_id)
    number = await numbers.require_number(session, data.phone_number_id, field="phone_number_id")
    given = data.model_dump(include=set(CampaignFields.model_fields))
    return {**given, "agent_id": agent.id, "phone_number_id": number.id}


async def add_contacts(session: WriteSession, campaign_id: UUID, people: Sequence[ContactToCall]) -> Campaign:
    """Add contacts to a campaign; contacts that are in it already stay unchanged.

    Raises `NotFound`, and `InvalidState` for a campaign that has ended or would have more than 100,000 contacts.
    """
    campaign = await lock_row(session, Campaign, campaign_id)
    if campaign.status not in OPEN:
        raise InvalidState(f"The campaign is {campaign.status}.")
    if campaign.total_contacts + len(people) > MAX_CONTACTS:
        raise InvalidState(f"A campaign has at most {MAX_CONTACTS} contacts.")
    there = await queries.list_present_numbers(session, campaign_id, [person.phone_number for person in people])
    campaign = await _write(session, campaign, [person for person in people if person.phone_number not in there])
    if campaign.status == "running":
        campaign.due_at = now()
    record_audit(session, AuditAction.CAMPAIGN_CONTACTS_ADDED, campaign.id)
    return campaign


async def add_to_counters(session: WriteSession, campaign_id: UUID, **more: int) -> Campaign:
    """Add to a campaign's counters and complete a campaign without open contacts; return it, locked."""
    campaign = await queries.update_counters(session, campaign_id, **more)
    if campaign.status in ("running", "paused") and campaign.total_contacts == sum(
        getattr(campaign, name) for name in COUNTERS
    ):
        campaign.status, campaign.status_reason, campaign.due_at = "completed", None, None
    return campaign


async def _write(session: WriteSession, campaign: Campaign, people: Sequence[ContactToCall]) -> Campaign:
    # Of several contacts with one number, the first is called.
    first = {person.phone_number: place for place, person in reversed(list(enumerate(people)))}
    repeated = [first[person.phone_number] != place for place, person in enumerate(people)]
    errors = [LISTED_TWICE if again else None for again in repeated]
    await queries.insert_contacts(session, campaign.id, people, errors)
    return await add_to_counters(session, campaign.id, total_contacts=len(people), skipped=sum(repeated))


# State machine of a campaign (docs/decisions/0007-resource-states.md).
#
# Locks are always taken in one order: the organization's calls (`lock_calls`), call, account, contact, campaign. Calls
# end in the same order, without the first lock.


async def start_campaign(session: WriteSession, campaign_id: UUID) -> Campaign:
    """Start a campaign, or schedule it. Raises `NotFound` and `InvalidState`."""
    campaign = await _lock_campaign(session, campaign_id, "draft", to="start")
    await _require_means(session, campaign)
    ahead = campaign.scheduled_at is not None and campaign.scheduled_at > now()
    campaign.status = "scheduled" if ahead else "running"
    campaign.due_at = campaign.scheduled_at if ahead else now()
    record_audit(session, AuditAction.CAMPAIGN_STARTED, campaign_id)
    session.wake("dial_campaigns")
    return campaign


async def pause_campaign(session: WriteSession, campaign_id: UUID) -> Campaign:
    """Stop dialing new contacts. Raises `NotFound` and `InvalidState`."""
    campaign = await _lock_campaign(session, campaign_id, "running", to="pause")
    campaign.status, campaign.status_reason, campaign.due_at = "paused", None, None
    record_audit(session, AuditAction.CAMPAIGN_PAUSED, campaign_id)
    return campaign


async def resume_campaign(session: WriteSession, campaign_id: UUID) -> Campaign:
    """Resume a paused campaign and reset its circuit breaker. Raises `NotFound` and `InvalidState`."""
    campaign = await _lock_campaign(session, campaign_id, "paused", to="resume")
    await _require_means(session, campaign)
    campaign.status, campaign.status_reason, campaign.recent, campaign.due_at = "running", None, "", now()
    record_audit(session, AuditAction.CAMPAIGN_RESUMED, campaign_id)
    session.wake("dial_campaigns")
    return campaign


async def cancel_campaign(session: WriteSession, campaign_id: UUID) -> Campaign:
    """Cancel a campaign for good: hang up ringing calls; contacts that were not reached become `canceled`. Raises
    `NotFound` and `InvalidState`.
    """
    await lock_calls(session)
    _require(await get_row(session, Campaign, campaign_id), *OPEN, to="cancel")
    hung_up = await _hang_up(session, campaign_id)
    campaign = await lock_row(session, Campaign, campaign_id)
    if not hung_up:  # otherwise the end of these calls may have completed it
        _require(campaign, *OPEN, to="cancel")
    record_audit(session, AuditAction.CAMPAIGN_CANCELED, campaign_id)
    return await end_campaign(session, campaign, "canceled")


async def end_campaign(
    session: WriteSession, campaign: Campaign, status: str, *, reason: str | None = None
) -> Campaign:
    """Cancel the contacts of a locked campaign that were not called."""
    campaign.status, campaign.status_reason, campaign.due_at = status, reason, None
    left = await queries.cancel_pending_contacts(session, campaign.id)
    return await add_to_counters(session, campaign.id, canceled=left)


async def delete_campaign(session: WriteSession, campaign_id: UUID) -> None:
    """Delete a campaign after canceling it if it runs; its calls stay. Raises `NotFound`."""
    await lock_calls(session)
    await get_row(session, Campaign, campaign_id)
    await _hang_up(session, campaign_id)
    # Lock the contacts with running calls first: a call that ends locks its contact before its campaign.
    await queries.lock_contacts_in_flight(session, campaign_id)
    await session.delete(await lock_row(session, Campaign, campaign_id))
    record_audit(session, AuditAction.CAMPAIGN_DELETED, campaign_id)


async def find_obstacle(session: ReadSession, campaign: Campaign) -> tuple[str, str] | None:
    """Return why a campaign cannot dial and the status that follows (`paused` or `failed`); None if it can."""
    if await numbers.find_active_number(session, campaign.phone_number_id) is None:
        return "failed", "The campaign's phone number is no longer active."
    agent = await session.find(Agent, campaign.agent_id)
    if agent is None:
        return "paused", "The campaign's agent was deleted."
    if agent.status != "active":
        return "paused", "The campaign's agent is paused."
    refusal = (await read_outbound_rules(session)).pauses.find_refusal()
    return ("paused", refusal.detail) if refusal is not None else None


async def _hang_up(session: WriteSession, campaign_id: UUID) -> bool:
    """Hang up the calls that nobody has answered; return whether there were any."""
    call_ids = await queries.list_dialed_calls(session, campaign_id)
    for call in await lock_calls_by_id(session, call_ids):
        await dialing.cancel_call(session, call)
    return bool(call_ids)


async def _lock_campaign(session: WriteSession, campaign_id: UUID, status: str, *, to: str) -> Campaign:
    """Return the campaign under the lock of calls, so that nobody dials for it until the transaction ends."""
    await lock_calls(session)
    campaign = await lock_row(session, Campaign, campaign_id)
    _require(campaign, status, to=to)
    campaign.updated_at = now()
    return campaign


def _require(campaign: Campaign, *statuses: str, to: str) -> None:
    if campaign.status not in statuses:
        raise InvalidState(f"The campaign is {campaign.status}. To {to}, it must be {' or '.join(statuses)}.")


async def _require_means(session: ReadSession, campaign: Campaign) -> None:
    found = await find_obstacle(session, campaign)
    if found is not None:
        raise InvalidState(found[1])


async def delete_contacts_of_number(session: WriteSession, phone_number: str) -> int:
    """Delete the contacts with an E.164 number that are not being called, and return how many.

    The counters of their campaigns count the contacts that are left.
    """
    found = await queries.lock_contacts_of_number(session, phone_number)
    changes: dict[UUID, Counter[str]] = {}
    for contact in found:
        less = changes.setdefault(contact.campaign_id, Counter())
        less["total_contacts"] -= 1
        less["called"] -= contact.attempts > 0
        if contact.status in COUNTERS:
            less[contact.status] -= 1
    await queries.delete_campaign_contacts(session, [contact.id for contact in found])
    for campaign_id in sorted(changes):
        await add_to_counters(session, campaign_id, **changes[campaign_id])
    return len(found)
