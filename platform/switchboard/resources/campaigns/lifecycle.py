"""State machine of a campaign (docs/decisions/0007-resource-states.md).

Locks are always taken in one order: the organization's calls (`lock_calls`), call, account, contact,
campaign. Calls end in the same order, without the first lock.
"""

from uuid import UUID

from sqlalchemy import update
from sqlmodel import col

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession, is_among, now
from switchboard.foundation.jobs import wake
from switchboard.foundation.web.errors import InvalidState
from switchboard.resources.agents import service as agents
from switchboard.resources.calls import dialing
from switchboard.resources.calls.allowance import lock_calls
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.destinations.service import read_outbound_rules
from switchboard.resources.phone_numbers import service as numbers

IN_FLIGHT = ("dialing", "in_progress")


async def start_campaign(session: TenantSession, campaign_id: UUID) -> Campaign:
    """Start a campaign, or schedule it. Raises `NotFound` and `InvalidState`."""
    campaign = await _lock_campaign(session, campaign_id, "draft", to="start")
    await _require_means(session, campaign)
    ahead = campaign.scheduled_at is not None and campaign.scheduled_at > now()
    campaign.status = "scheduled" if ahead else "running"
    campaign.due_at = campaign.scheduled_at if ahead else now()
    record_audit(session, AuditAction.CAMPAIGN_STARTED, campaign_id)
    _dial(session)
    return campaign


async def pause_campaign(session: TenantSession, campaign_id: UUID) -> Campaign:
    """Stop dialing new contacts. Raises `NotFound` and `InvalidState`."""
    campaign = await _lock_campaign(session, campaign_id, "running", to="pause")
    campaign.status, campaign.status_reason, campaign.due_at = "paused", None, None
    record_audit(session, AuditAction.CAMPAIGN_PAUSED, campaign_id)
    return campaign


async def resume_campaign(session: TenantSession, campaign_id: UUID) -> Campaign:
    """Resume a paused campaign and reset its circuit breaker. Raises `NotFound` and `InvalidState`."""
    campaign = await _lock_campaign(session, campaign_id, "paused", to="resume")
    await _require_means(session, campaign)
    campaign.status, campaign.status_reason, campaign.recent, campaign.due_at = "running", None, "", now()
    record_audit(session, AuditAction.CAMPAIGN_RESUMED, campaign_id)
    _dial(session)
    return campaign


async def cancel_campaign(session: TenantSession, campaign_id: UUID) -> Campaign:
    """Cancel a campaign for good: hang up ringing calls; contacts that were not reached become `canceled`. Raises
    `NotFound` and `InvalidState`.
    """
    await lock_calls(session)
    _require(await campaigns.get_campaign(session, campaign_id), *campaigns.OPEN, to="cancel")
    hung_up = await _hang_up(session, campaign_id)
    campaign = await campaigns.get_campaign(session, campaign_id, lock=True)
    if not hung_up:  # otherwise the end of these calls may have completed it
        _require(campaign, *campaigns.OPEN, to="cancel")
    record_audit(session, AuditAction.CAMPAIGN_CANCELED, campaign_id)
    return await end_campaign(session, campaign, "canceled")


async def end_campaign(
    session: TenantSession, campaign: Campaign, status: str, *, reason: str | None = None
) -> Campaign:
    """Cancel the contacts of a locked campaign that were not called."""
    campaign.status, campaign.status_reason, campaign.due_at = status, reason, None
    await session.flush()
    rows = update(CampaignContact).where(
        session.owns(CampaignContact),
        col(CampaignContact.campaign_id) == campaign.id,
        col(CampaignContact.status) == "pending",
    )
    left = (await session.exec(rows.values(status="canceled", outcome="canceled"))).rowcount
    return await campaigns.add_to_counters(session, campaign.id, canceled=left)


async def delete_campaign(session: TenantSession, campaign_id: UUID) -> None:
    """Delete a campaign after canceling it if it runs; its calls stay. Raises `NotFound`."""
    await lock_calls(session)
    await campaigns.get_campaign(session, campaign_id)
    await _hang_up(session, campaign_id)
    # Lock the contacts with running calls first: a call that ends locks its contact before its campaign.
    running = campaigns.list_campaign_contacts(session, campaign_id).where(col(CampaignContact.status).in_(IN_FLIGHT))
    await session.exec(running.order_by(col(CampaignContact.id)).with_for_update())
    await session.delete(await campaigns.get_campaign(session, campaign_id, lock=True))
    record_audit(session, AuditAction.CAMPAIGN_DELETED, campaign_id)


async def find_obstacle(session: TenantSession, campaign: Campaign) -> tuple[str, str] | None:
    """Return why a campaign cannot dial and the status that follows (`paused` or `failed`); None if it can."""
    if await numbers.find_active_number(session, campaign.phone_number_id) is None:
        return "failed", "The campaign's phone number is no longer active."
    agent = await agents.find_agent(session, campaign.agent_id)
    if agent is None:
        return "paused", "The campaign's agent was deleted."
    if agent.status != "active":
        return "paused", "The campaign's agent is paused."
    refusal = (await read_outbound_rules(session)).pauses.find_refusal()
    return ("paused", refusal.detail) if refusal is not None else None


async def _hang_up(session: TenantSession, campaign_id: UUID) -> bool:
    """Hang up the calls that nobody has answered; return whether there were any."""
    ringing = campaigns.list_campaign_contacts(session, campaign_id).where(col(CampaignContact.status) == "dialing")
    call_ids = [contact.call_id for contact in (await session.exec(ringing)).all()]
    rows = session.select(Call).where(is_among(col(Call.id), call_ids))
    for call in (
        await session.exec(rows.order_by(col(Call.id)).with_for_update().execution_options(populate_existing=True))
    ).all():
        await dialing.cancel_call(session, call)
    return bool(call_ids)


async def _lock_campaign(session: TenantSession, campaign_id: UUID, status: str, *, to: str) -> Campaign:
    """Return the campaign under the lock of calls, so that nobody dials for it until the transaction ends."""
    await lock_calls(session)
    campaign = await campaigns.get_campaign(session, campaign_id, lock=True)
    _require(campaign, status, to=to)
    campaign.updated_at = now()
    return campaign


def _require(campaign: Campaign, *statuses: str, to: str) -> None:
    if campaign.status not in statuses:
        raise InvalidState(f"The campaign is {campaign.status}. To {to}, it must be {' or '.join(statuses)}.")


async def _require_means(session: TenantSession, campaign: Campaign) -> None:
    found = await find_obstacle(session, campaign)
    if found is not None:
        raise InvalidState(found[1])


def _dial(session: TenantSession) -> None:
    wake(session, "dial_campaigns", organization_id=str(session.organization_id))
