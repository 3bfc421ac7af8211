"""Search over everything: pages, actions, and the organization's rows by name, number, or id. The search dialog of each
page shows the same results.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlencode

from pydantic import Field

from switchboard.apps.dashboard.blueprint import page
from switchboard.apps.dashboard.queries import list_numbers_like, list_rows_named
from switchboard.apps.dashboard.ui.formats import number_name, phone
from switchboard.apps.dashboard.ui.labels import describe_value
from switchboard.apps.dashboard.ui.navigation import COMMANDS, SECTIONS, Entry
from switchboard.apps.dashboard.ui.rendering import render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.schemas import SPACING, Query, is_phone_number, parse_id
from switchboard.resources.agents.models import Agent
from switchboard.resources.appointments.models import AppointmentType
from switchboard.resources.automations.models import Automation
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns.models import Campaign
from switchboard.resources.contacts.schemas import ContactQuery
from switchboard.resources.contacts.search import search_contacts
from switchboard.resources.knowledge_bases.models import KnowledgeBase, KnowledgeDocument

MOST: Final = 5
"""Rows of one kind that are shown."""
SHORTEST: Final = 2
"""Letters from which rows are looked for."""
Named: TypeAlias = Agent | AppointmentType | Automation | Campaign | KnowledgeBase | KnowledgeDocument
NAMED: Final[Sequence[tuple[str, type[Named], str, str]]] = (
    (LazyText("Agents"), Agent, "agent", "/dashboard/agents"),
    (LazyText("Campaigns"), Campaign, "campaign", "/dashboard/campaigns"),
    (LazyText("Automations"), Automation, "bolt", "/dashboard/automations"),
    (LazyText("Appointment types"), AppointmentType, "list", "/dashboard/appointment-types"),
    (LazyText("Knowledge"), KnowledgeBase, "book", "/dashboard/knowledge"),
    (LazyText("Documents"), KnowledgeDocument, "book", "/dashboard/documents"),
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A result: `icon` is a name in `static/icons.svg`."""

    title: str
    path: str
    icon: str
    detail: str = ""


async def find_everywhere(session: ReadSession, viewer: Viewer, text: str) -> list[tuple[str, list[Hit]]]:
    """Return what matches a text, by kind; without a text, every page and action that the viewer may open."""
    text = text.strip()
    groups = [(_("Go to"), _find_entries(viewer, text, [entry for section in SECTIONS for entry in section.entries]))]
    if len(text) >= SHORTEST:
        agents, *others = [
            (name, await _find_named(session, model, text, icon, path)) for name, model, icon, path in NAMED
        ]
        groups += [agents, (_("Contacts"), await _find_contacts(session, text))]
        groups += [(_("Phone numbers"), await _find_numbers(session, text)), *others]
    groups.append((_("Do"), _find_entries(viewer, text, COMMANDS)))
    if len(text) >= SHORTEST:
        # Calls come last: their link to a search of transcripts is shown even if no transcript has the words.
        groups.append((_("Calls"), await _find_calls(session, text)))
    return [(name, hits) for name, hits in groups if hits]


def _find_entries(viewer: Viewer, text: str, entries: Sequence[Entry]) -> list[Hit]:
    words = text.casefold().split()
    return [
        Hit(entry.name, entry.path, entry.icon)
        for entry in entries
        if viewer.may_see(entry.role) and all(word in _(entry.name).casefold() for word in words)
    ]


async def _find_contacts(session: ReadSession, text: str) -> list[Hit]:
    found, _ = await search_contacts(session, ContactQuery(search=text, limit=MOST))
    return [
        Hit(
            contact.name or phone(contact.phone_number),
            f"/dashboard/contacts/{contact.id}",
            "person",
            contact.company or (phone(contact.phone_number) if contact.name else ""),
        )
        for contact in found
    ]


async def _find_calls(session: ReadSession, text: str) -> list[Hit]:
    """Return the call with an id, the calls with a number, or else those whose transcript has the words."""
    if call_id := parse_id(text):
        call = await session.find(Call, call_id)
        if call is None:
            return []
        title = _("Call with %(number)s", number=phone(call.to_number))
        return [Hit(title, f"/dashboard/calls/{call.id}", "phone", describe_value(call.status, "call"))]
    number = SPACING.sub("", text)
    title, query = _("Calls whose transcript has “%(text)s”", text=text), {"transcript": text}
    if is_phone_number(number):
        title, query = _("Calls with %(number)s", number=phone(number)), {"phone": number}
    return [Hit(title, f"/dashboard/calls?{urlencode(query)}", "phone")]


async def _find_named(session: ReadSession, model: type[Named], text: str, icon: str, path: str) -> list[Hit]:
    name = "filename" if model is KnowledgeDocument else "name"
    rows = await list_rows_named(session, model, name, text, most=MOST)
    return [Hit(getattr(row, name), f"{path}/{row.id}", icon) for row in rows]


async def _find_numbers(session: ReadSession, text: str) -> list[Hit]:
    found = await list_numbers_like(session, text, SPACING.sub("", text), most=MOST)
    return [Hit(number_name(number), f"/dashboard/numbers/{number.id}", "hash") for number in found]


class SearchQuery(Query):
    """Words to look for; without words, every page is found."""

    q: str = Field("", max_length=200)


@page("/dashboard/search")
async def search_page(session: ReadSession, viewer: Viewer, query: SearchQuery) -> str:
    """Show what the words find."""
    return await render(
        "dashboard/search/page.html", query=query, groups=await find_everywhere(session, viewer, query.q)
    )


@page("/dashboard/search/results")
async def search_results(session: ReadSession, viewer: Viewer, query: SearchQuery) -> str:
    """Render the results alone, for the dialog."""
    groups = await find_everywhere(session, viewer, query.q)
    return await render_part("dashboard/search/results.html", groups=groups, query=query, role="option")
