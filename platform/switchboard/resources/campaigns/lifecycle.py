"""What a campaign's state may become, and who says so (api-decisions, "States").

Locks are always taken in one order: the organization's calls (`claim_room`), then call, account, contact, campaign. Calls end under
the same order, without the first.
"""

from uuid import UUID

from sqlalchemy import update
from sqlmodel import col

from switchboard.foundation.database import TenantSession, now
from switchboard.foundation.jobs import wake
from switchboard.foundation.web.errors import InvalidState
from switchboard.resources.agents import service as agents
from switchboard.resources.calls import dialing
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.phone_numbers import service as numbers

IN_FLIGHT = ("dialing", "in_progress")


async def start_campaign(session: TenantSession, campaign_id: UUID) -> Campaign:
    """Begin, or wait for the campaign's time. Raises `NotFound` and `InvalidState`."""
    campaign = await _locked(session, campaign_id, "draft", to="start")
    await _require_means(session, campaign)
    ahead = campaign.scheduled_at is not None and campaign.scheduled_at > now()
    campaign.status = "scheduled" if ahead else "running"
    campaign.due_at = campaign.scheduled_at if ahead else now()
    _dial(session)
    return campaign


async def pause_campaign(session: TenantSession, campaign_id: UUID) -> Campaign:
    """Dial nobody else. Raises `NotFound` and `InvalidState`."""
    campaign = await _locked(session, campaign_id, "running", to="pause")
    campaign.status, campaign.status_reason, campaign.due_at = "paused", None, None
    return campaign


async def resume_campaign(session: TenantSession, campaign_id: UUID) -> Campaign:
    """Go on; what failed before is forgiven. Raises `NotFound` and `InvalidState`."""
    campaign = await _locked(session, campaign_id, "paused", to="resume")
    await _require_means(session, campaign)
    campaign.status, campaign.status_reason, campaign.recent, campaign.due_at = "running", None, "", now()
    _dial(session)
    return campaign


async def cancel_campaign(session: TenantSession, campaign_id: UUID) -> Campaign:
    """End for good: what rings is hung up, who was not reached becomes `canceled`. Raises `NotFound` and `InvalidState`."""
    await calls.acquire_call_capacity(session)
    _require(await campaigns.get_campaign(session, campaign_id), *campaigns.OPEN, to="cancel")
    hung_up = await _hang_up(session, campaign_id)
    campaign = await campaigns.get_campaign(session, campaign_id, lock=True)
    if not hung_up:  # else it may be these calls' end that completed it
        _require(campaign, *campaigns.OPEN, to="cancel")
    return await end_campaign(session, campaign, "canceled")


async def end_campaign(
    session: TenantSession, campaign: Campaign, status: str, *, reason: str | None = None
) -> Campaign:
    """Leave the undialled contacts of a locked campaign `canceled`."""
    campaign.status, campaign.status_reason, campaign.due_at = status, reason, None
    await session.flush()
    rows = update(CampaignContact).where(
        col(CampaignContact.organization_id) == campaign.organization_id,
        col(CampaignContact.campaign_id) == campaign.id,
        col(CampaignContact.status) == "pending",
    )
    left = (await session.exec(rows.values(status="canceled", outcome="canceled"))).rowcount
    return await campaigns.count(session, campaign.id, canceled=left)


async def delete_campaign(session: TenantSession, campaign_id: UUID) -> None:
    """Delete a campaign, canceled first where it runs; its calls stay. Raises `NotFound`."""
    await calls.acquire_call_capacity(session)
    await campaigns.get_campaign(session, campaign_id)
    await _hang_up(session, campaign_id)
    # Those whose calls run are locked first: a call that ends takes its contact before its campaign.
    running = campaigns.list_campaign_contacts(session, campaign_id).where(col(CampaignContact.status).in_(IN_FLIGHT))
    await session.exec(running.order_by(col(CampaignContact.id)).with_for_update())
    await session.delete(await campaigns.get_campaign(session, campaign_id, lock=True))


async def unusable(session: TenantSession, campaign: Campaign) -> tuple[str, str] | None:
    """Why a campaign cannot dial, and what becomes of it: (`paused` or `failed`, reason); None where it can."""
    if await numbers.find_active_number(session, campaign.phone_number_id) is None:
        return "failed", "The campaign's phone number is not active any more."
    agent = await agents.find_agent(session, campaign.agent_id)
    if agent is None:
        return "paused", "The campaign's agent was deleted."
    if agent.status != "active":
        return "paused", "The campaign's agent is paused."
    return None


async def _hang_up(session: TenantSession, campaign_id: UUID) -> bool:
    """Take back what nobody has answered; whether there was any."""
    ringing = campaigns.list_campaign_contacts(session, campaign_id).where(col(CampaignContact.status) == "dialing")
    call_ids = [contact.call_id for contact in (await session.exec(ringing)).all()]
    rows = session.select(Call).where(col(Call.id).in_(call_ids))
    for call in (
        await session.exec(rows.order_by(col(Call.id)).with_for_update().execution_options(populate_existing=True))
    ).all():
        await dialing.cancel_call(session, call)
    return bool(call_ids)


async def _locked(session: TenantSession, campaign_id: UUID, status: str, *, to: str) -> Campaign:
    """The campaign, which nobody dials for until the transaction ends."""
    await calls.acquire_call_capacity(session)
    campaign = await campaigns.get_campaign(session, campaign_id, lock=True)
    _require(campaign, status, to=to)
    campaign.updated_at = now()
    return campaign


def _require(campaign: Campaign, *statuses: str, to: str) -> None:
    if campaign.status not in statuses:
        raise InvalidState(f"The campaign is {campaign.status}: {to} needs one that is {' or '.join(statuses)}.")


async def _require_means(session: TenantSession, campaign: Campaign) -> None:
    found = await unusable(session, campaign)
    if found is not None:
        raise InvalidState(found[1])


def _dial(session: TenantSession) -> None:
    wake(session, "dial_campaigns", organization_id=str(session.organization_id))
