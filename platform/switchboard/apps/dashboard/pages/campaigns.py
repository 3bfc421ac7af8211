"""Campaigns: list, live progress, controls, and contacts; creating and editing, and adding people."""

from contextlib import suppress
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from quart import request

from switchboard.apps.dashboard.blueprint import Next, action, go_to, live_part, page
from switchboard.apps.dashboard.forms.contact_list import parse_list, read_list_file, require_usable
from switchboard.apps.dashboard.forms.form import Files, Form, parse_form
from switchboard.apps.dashboard.ui.formats import count as format_count
from switchboard.apps.dashboard.ui.formats import number_name
from switchboard.apps.dashboard.ui.rendering import load_list, render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import LazyText, ngettext
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery, parse_id
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.queries import get_agent_names
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.csv_import import ContactList
from switchboard.resources.campaigns.models import OPEN, Campaign
from switchboard.resources.campaigns.queries import select_campaign_contacts
from switchboard.resources.campaigns.schemas import CampaignContactQuery, CampaignCreate, CampaignFields
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


@page("/dashboard/campaigns")
async def campaigns_page(session: ReadSession, query: PageQuery) -> str:
    """List the campaigns with their progress."""
    return await render(
        "dashboard/campaigns/list.html", campaigns=await load_list(session, session.select(Campaign), query)
    )


@page("/dashboard/campaigns/<campaign_id>")
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
    progress = _progress(await get_row(session, Campaign, campaign_id))
    return await render_part("dashboard/campaigns/progress.html", **progress)


@live_part("/dashboard/campaigns/<campaign_id>/contacts/live")
async def campaign_contacts_live(session: ReadSession, campaign_id: UUID, query: CampaignContactQuery) -> str:
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


# Creating and editing a campaign, and adding people. Every list is previewed before it is saved.


@page("/dashboard/campaigns/new", role="builder")
async def new_campaign_page(session: ReadSession, viewer: Viewer, form: Form) -> str:
    beginning: JsonObject = {
        "max_concurrent": 5,
        "retry": {"attempts": 0, "delay_seconds": 3600, "on": ["busy", "no-answer"]},
        "voicemail_policy": {"carrier_detection": True},
    }
    people = await _people(session, form.values) if form.values else None
    return await _show_form(session, viewer, "new", form.starting_with(beginning), people=people)


@action("/dashboard/campaigns/new/preview")
async def preview_campaign(session: ReadSession, viewer: Viewer, fields: JsonObject, files: Files) -> str:
    """Show the form with a preview of its list. Nothing is saved."""
    form = Form(fields, errors=read_list_file(fields, files))
    return await _show_form(session, viewer, "new", form, people=await _people(session, fields))


async def _show_form(session: ReadSession, viewer: Viewer, template: str, form: Form, **context: object) -> str:
    return await render(
        f"dashboard/campaigns/{template}.html",
        form=form,
        **await list_campaign_choices(session),
        delays=list(DELAYS.items()),
        hours=get_calling_hours(viewer),
        **context,
    )


@action("/dashboard/campaigns/new", invalid=new_campaign_page)
async def add_campaign(session: WriteSession, viewer: Viewer, fields: JsonObject, files: Files) -> Next:
    """Create a draft campaign from the previewed list."""
    faults = read_list_file(fields, files)
    settings = _settings(fields, viewer)
    people = require_usable(await _people(session, fields), fields, faults)
    data = parse_form(CampaignCreate, {**settings, "contacts": people.people})  # type: ignore[dict-item]
    campaign = await campaigns.create_campaign(session, data)
    return go_to("campaign_page", _("Campaign created. It calls nobody until you start it."), campaign_id=campaign.id)


@page("/dashboard/campaigns/<campaign_id>/edit", role="builder")
async def edit_campaign_page(session: ReadSession, viewer: Viewer, campaign_id: UUID, form: Form) -> str:
    campaign = await get_row(session, Campaign, campaign_id)
    start = campaign.scheduled_at
    kept = {
        **campaign.model_dump(mode="json"),
        "scheduled_at": start.astimezone(ZoneInfo(viewer.timezone)).strftime("%Y-%m-%dT%H:%M") if start else None,
        "retry": campaign.retry or {"attempts": 0},
        "voicemail_policy": campaign.voicemail_policy or {"carrier_detection": True},
    }
    return await _show_form(session, viewer, "edit", form.starting_with(kept), campaign=campaign)


@action("/dashboard/campaigns/<campaign_id>/edit", invalid=edit_campaign_page)
async def save_campaign(session: WriteSession, viewer: Viewer, campaign_id: UUID, fields: JsonObject) -> Next:
    """Update the settings of a draft or paused campaign."""
    await campaigns.update_campaign(session, campaign_id, parse_form(CampaignFields, _settings(fields, viewer)))
    return go_to("campaign_page", _("Saved."), campaign_id=campaign_id)


@page("/dashboard/campaigns/<campaign_id>/people", role="builder")
async def campaign_people_page(session: ReadSession, campaign_id: UUID, form: Form) -> str:
    return await _show_people_form(session, campaign_id, form)


@action("/dashboard/campaigns/<campaign_id>/people/preview", invalid=campaign_people_page)
async def preview_campaign_people(session: ReadSession, campaign_id: UUID, fields: JsonObject, files: Files) -> str:
    """Preview a list to add. Nothing is saved."""
    return await _show_people_form(session, campaign_id, Form(fields, errors=read_list_file(fields, files)))


async def _show_people_form(session: ReadSession, campaign_id: UUID, form: Form) -> str:
    campaign = await _open_campaign(session, campaign_id)
    found = await _people(session, form.values, campaign) if form.values else None
    return await render("dashboard/campaigns/people.html", form=form, campaign=campaign, people=found)


@action("/dashboard/campaigns/<campaign_id>/people", invalid=campaign_people_page)
async def add_campaign_people(session: WriteSession, campaign_id: UUID, fields: JsonObject, files: Files) -> Next:
    """Add the previewed people to a campaign."""
    campaign, faults = await _open_campaign(session, campaign_id), read_list_file(fields, files)
    before = campaign.total_contacts
    people = require_usable(await _people(session, fields, campaign), fields, faults)
    after = await campaigns.add_contacts(session, campaign_id, people.people)
    added = after.total_contacts - before
    notice = ngettext(
        "%(number)s person was added.", "%(number)s people were added.", added, number=format_count(added)
    )
    return go_to("campaign_page", notice, campaign_id=campaign_id)


async def _open_campaign(session: ReadSession, campaign_id: UUID) -> Campaign:
    campaign = await get_row(session, Campaign, campaign_id)
    if campaign.status not in OPEN:
        raise InvalidState(_("The campaign is over. You cannot add people to it."))
    return campaign


async def _people(session: ReadSession, values: JsonObject, campaign: Campaign | None = None) -> ContactList:
    """Parse the list. Numbers without a country code are read like the campaign's own number."""
    number_id = campaign.phone_number_id if campaign else parse_id(str(values.get("phone_number_id")))
    return await parse_list(values, await numbers.find_active_number(session, number_id) if number_id else None)


def _settings(values: JsonObject, viewer: Viewer) -> JsonObject:
    """Return the form's settings as the API's body: a time with its zone, and no retry settings without retries."""
    settings = {name: value for name, value in values.items() if name in CampaignFields.model_fields}
    retry, scheduled_at = settings.get("retry"), settings.get("scheduled_at")
    if isinstance(retry, dict) and retry.get("attempts") in (None, "", "0"):
        settings["retry"] = None
    voicemail = settings.get("voicemail_policy")
    if isinstance(voicemail, dict) and not voicemail.get("action"):
        settings["voicemail_policy"] = None
    if isinstance(scheduled_at, str) and scheduled_at:
        with suppress(ValueError):  # text that is not a time is for the model to refuse
            moment = datetime.fromisoformat(scheduled_at).replace(tzinfo=ZoneInfo(viewer.timezone))
            settings["scheduled_at"] = moment.isoformat()
    return settings
