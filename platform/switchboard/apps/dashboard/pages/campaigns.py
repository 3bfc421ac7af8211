"""Campaigns: list, live progress, controls, and contacts."""

from uuid import UUID

from quart import request

from switchboard.apps.dashboard.blueprint import Next, action, go_to, live_part, page
from switchboard.apps.dashboard.ui.formats import number_name
from switchboard.apps.dashboard.ui.rendering import load_list, render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.queries import get_agent_names
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import OPEN, Campaign
from switchboard.resources.campaigns.queries import select_campaign_contacts
from switchboard.resources.campaigns.schemas import CampaignContactQuery
from switchboard.resources.identity.policy import CallingHours
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.queries import list_active_numbers

DELAYS = {
    300: LazyText("5 minutes"),
    900: LazyText("15 minutes"),
    1800: LazyText("30 minutes"),
    3600: LazyText("an hour"),
    14_400: LazyText("4 hours"),
    86_400: LazyText("a day"),
    172_800: LazyText("2 days"),
}
"""Delays between attempts that the form offers, by seconds."""
LIVE = ("scheduled", "running", "paused")
CHANGES = {
    "start": campaigns.start_campaign,
    "pause": campaigns.pause_campaign,
    "resume": campaigns.resume_campaign,
    "cancel": campaigns.cancel_campaign,
}
"""Changes of a campaign by the last part of their address."""


@page("/dashboard/campaigns", query=PageQuery)
async def campaigns_page(session: ReadSession, query: PageQuery) -> str:
    """List the campaigns with their progress."""
    return await render(
        "dashboard/campaigns/list.html", campaigns=await load_list(session, session.select(Campaign), query)
    )


@page("/dashboard/campaigns/<campaign_id>", query=CampaignContactQuery)
async def campaign_page(session: ReadSession, viewer: Viewer, campaign_id: UUID, query: CampaignContactQuery) -> str:
    """Show a campaign with its live progress and contacts."""
    campaign = await get_row(session, Campaign, campaign_id)
    return await render(
        "dashboard/campaigns/campaign.html",
        **_progress(campaign),
        contacts=await load_list(session, select_campaign_contacts(session, campaign_id, status=query.status), query),
        query=query,
        agent=await session.find(Agent, campaign.agent_id),
        number=await numbers.find_active_number(session, campaign.phone_number_id),
        hours=get_calling_hours(viewer),
        delays=DELAYS,
        is_live=campaign.status in LIVE,
        may_change=campaign.status in campaigns.CHANGEABLE,
        may_grow=campaign.status in OPEN,
    )


def _progress(campaign: Campaign) -> dict[str, object]:
    done = sum(getattr(campaign, counter) for counter in campaigns.COUNTERS)
    waiting = campaign.total_contacts - done - campaign.in_flight
    return {"campaign": campaign, "calling": campaign.in_flight, "done": done, "waiting": waiting}


def get_calling_hours(viewer: Viewer) -> CallingHours | None:
    """Return the organization's calling hours; None if it has none."""
    return viewer.organization.policy.calling_hours if viewer.organization else None


@live_part("/dashboard/campaigns/<campaign_id>/live")
async def campaign_live(session: ReadSession, campaign_id: UUID) -> str:
    """Render a campaign's progress."""
    progress = _progress(await get_row(session, Campaign, campaign_id))
    return await render_part("dashboard/campaigns/progress.html", **progress)


@live_part("/dashboard/campaigns/<campaign_id>/contacts/live", query=CampaignContactQuery)
async def campaign_contacts_live(session: ReadSession, campaign_id: UUID, query: CampaignContactQuery) -> str:
    """Render a campaign's contacts."""
    await get_row(session, Campaign, campaign_id)
    listed = select_campaign_contacts(session, campaign_id, status=query.status)
    return await render_part(
        "dashboard/campaigns/contacts.html", contacts=await load_list(session, listed, query), query=query
    )


@action(*(f"/dashboard/campaigns/<campaign_id>/{change}" for change in CHANGES))
async def change_campaign(session: WriteSession, campaign_id: UUID) -> Next:
    """Start a campaign, or schedule it for its start time; pause, resume, or cancel it. Calls in progress continue."""
    await CHANGES[request.path.rpartition("/")[2]](session, campaign_id)
    return go_to("campaign_page", campaign_id=campaign_id)


@action("/dashboard/campaigns/<campaign_id>/delete")
async def delete_campaign(session: WriteSession, campaign_id: UUID) -> Next:
    """Delete a campaign; a running one is canceled first. Its calls are kept."""
    await campaigns.delete_campaign(session, campaign_id)
    return go_to("campaigns_page", _("Campaign deleted. Its calls are kept."), "warning")


async def list_campaign_choices(session: ReadSession) -> dict[str, list[tuple[str, str]]]:
    """Return the agents and phone numbers that a campaign can use."""
    found, paused = await get_agent_names(session), await get_agent_names(session, status="paused")
    return {
        "agents": [
            (str(agent_id), f"{name} (paused)" if agent_id in paused else name) for agent_id, name in found.items()
        ],
        "numbers": [(str(number.id), number_name(number)) for number in await list_active_numbers(session)],
    }
