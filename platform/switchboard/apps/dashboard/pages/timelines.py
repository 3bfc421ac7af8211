"""A contact's timeline: calls and text messages, newest first."""

from datetime import datetime
from uuid import UUID

from pydantic import AwareDatetime

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.decorators import page
from switchboard.apps.dashboard.ui.labels import ENDED
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.schemas import Query
from switchboard.resources.agents import service as agents
from switchboard.resources.calls.models import Call
from switchboard.resources.contacts import service as contacts
from switchboard.resources.timelines.service import load_timeline

ENTRIES = 50


class TimelineQuery(Query):
    """The moment before which the timeline is shown."""

    before: AwareDatetime | None = None


@dashboard.get("/dashboard/contacts/<contact_id>/timeline")
@page(query=TimelineQuery)
async def timeline_page(session: TenantSession, contact_id: UUID, query: TimelineQuery) -> str:
    """Show the calls and text messages with a contact."""
    contact = await contacts.get_contact(session, contact_id)
    part = await load_timeline(session, contact.phone_number, before=query.before, limit=ENTRIES)
    return await render(
        "dashboard/contacts/timeline.html",
        contact=contact,
        part=part,
        before=query.before,
        next_before=_format(part.more_before),
        calls={entry.id for entry in part.entries if isinstance(entry, Call)},
        agents=await agents.get_agent_names(session),
        ended=ENDED,
    )


def _format(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
