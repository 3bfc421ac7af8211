"""Contacts: list, search, and edit."""

from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import urlencode
from uuid import UUID

from pydantic import AwareDatetime, Field

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.queries import list_newest_exchanges
from switchboard.apps.dashboard.ui.labels import ENDED
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.languages import ngettext
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import Page, Query, RequestBody
from switchboard.resources.agents.queries import get_agent_names
from switchboard.resources.appointments.queries import list_next_appointments
from switchboard.resources.calls.models import Call
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.models import Contact
from switchboard.resources.contacts.queries import list_contacts_by_id, select_contacts
from switchboard.resources.contacts.schemas import MAX_LABEL, ContactCreate, ContactQuery, ContactUpdate
from switchboard.resources.contacts.search import search_contacts
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.identity.models import NoticeTone
from switchboard.resources.sms.models import SmsMessage

COMING = 5
"""Appointments on a contact's page."""


@page("/dashboard/contacts", query=ContactQuery)
async def contacts_page(session: ReadSession, query: ContactQuery) -> str:
    """List or search the contacts."""
    if query.search:
        part, total = await search_contacts(session, query)
        listing = Page[Contact].model_construct(items=part, total=total, limit=query.limit, offset=query.offset)
    else:
        listing = await load_list(session, select_contacts(session, phone_number=query.phone), query)
    filters = urlencode(query.model_dump(exclude_defaults=True, exclude={"limit", "offset"}))
    return await render("dashboard/contacts/list.html", contacts=listing, query=query, filters=filters)


class SelectedContacts(RequestBody):
    """An action on selected contacts. `tag` is the tag to add."""

    ids: list[UUID] = Field(min_length=1, max_length=100)
    act: Literal["tag", "do_not_call", "delete"]
    tag: Annotated[str, Field(max_length=MAX_LABEL, pattern="^[^,]*$")] = ""


@action("/dashboard/contacts/selected", form=SelectedContacts)
async def change_selected_contacts(session: WriteSession, data: SelectedContacts) -> Next:
    """Tag, delete, or stop calling the selected contacts; all of them or, after an error, none."""
    selected = await list_contacts_by_id(session, data.ids)
    for contact in selected:
        if data.act == "delete":
            await contacts.delete_contact(session, contact.id)
        elif data.act == "do_not_call":
            if not await do_not_call.is_listed(session, contact.phone_number):
                await do_not_call.add_entry(session, contact.phone_number, source="api")
        elif data.tag:
            await contacts.add_tag(session, contact, data.tag)
        else:
            raise ValidationFailed.field("tag", _("is required"))
    tone: NoticeTone = "warning" if data.act == "delete" else "done"
    return go_to("contacts_page", describe_contact_change(data.act, len(selected)), tone)


def describe_contact_change(act: Literal["tag", "do_not_call", "delete"], number: int) -> str:
    """Return the notice of a change of several contacts."""
    match act:
        case "tag":
            text = ngettext("%(number)s contact was tagged.", "%(number)s contacts were tagged.", number)
        case "delete":
            text = ngettext("%(number)s contact was deleted.", "%(number)s contacts were deleted.", number)
        case _:
            text = ngettext(
                "%(number)s contact was put on the do-not-call list.",
                "%(number)s contacts were put on the do-not-call list.",
                number,
            )
    return text % {"number": number}


@page("/dashboard/contacts/new", role="agent")
async def new_contact_page(form: Form) -> str:
    """Show the form of a new contact."""
    return await render("dashboard/contacts/edit.html", form=form, contact=None)


@action("/dashboard/contacts/new", role="agent", form=ContactCreate, invalid=new_contact_page)
async def add_contact(session: WriteSession, data: ContactCreate) -> Next:
    """Create a contact."""
    contact = await contacts.create_contact(session, data)
    return go_to("contacts_page", _("%(name)s was created.", name=contact.name or contact.phone_number))


@page("/dashboard/contacts/<contact_id>")
async def contact_page(session: ReadSession, contact_id: UUID, form: Form) -> str:
    """Show a contact."""
    contact = await get_row(session, Contact, contact_id)
    return await render(
        "dashboard/contacts/edit.html",
        form=form.starting_with(contact.model_dump(mode="json")),
        contact=contact,
        is_not_called=await do_not_call.is_listed(session, contact.phone_number),
        coming=await list_next_appointments(session, contact.phone_number, limit=COMING),
    )


@action("/dashboard/contacts/<contact_id>", role="agent", form=ContactUpdate, invalid=contact_page)
async def save_contact(session: WriteSession, contact_id: UUID, data: ContactUpdate) -> Next:
    """Update a contact."""
    await contacts.update_contact(session, contact_id, data)
    return go_to("contact_page", _("Saved."), contact_id=contact_id)


@action("/dashboard/contacts/<contact_id>/delete")
async def delete_contact(session: WriteSession, contact_id: UUID) -> Next:
    """Delete a contact permanently. Its calls and text messages are kept."""
    await contacts.delete_contact(session, contact_id)
    return go_to("contacts_page", _("Contact deleted."), "warning")


ENTRIES = 50


async def load_timeline(
    session: ReadSession, phone_number: str, *, before: datetime | None, limit: int
) -> tuple[list[Call | SmsMessage], datetime | None]:
    """Return the newest calls and messages of a phone number before a moment, newest first, and the moment from which
    the next part goes on, None at the end. Rows of the same microsecond are in one part.
    """
    entries = await list_newest_exchanges(session, phone_number, before=before, limit=limit + 1)
    if len(entries) <= limit:
        return entries, None
    last = entries[limit - 1].created_at
    return [row for row in entries if row.created_at >= last], last


class TimelineQuery(Query):
    """The moment before which the timeline is shown."""

    before: AwareDatetime | None = None


@page("/dashboard/contacts/<contact_id>/timeline", query=TimelineQuery)
async def timeline_page(session: ReadSession, contact_id: UUID, query: TimelineQuery) -> str:
    """Show the calls and text messages with a contact."""
    contact = await get_row(session, Contact, contact_id)
    entries, more_before = await load_timeline(session, contact.phone_number, before=query.before, limit=ENTRIES)
    return await render(
        "dashboard/contacts/timeline.html",
        contact=contact,
        entries=entries,
        before=query.before,
        next_before=more_before.isoformat() if more_before else None,
        calls={entry.id for entry in entries if isinstance(entry, Call)},
        agents=await get_agent_names(session),
        ended=ENDED,
    )
