"""Contacts: list, search, edit, and import; and the do-not-call list."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, Literal
from urllib.parse import urlencode
from uuid import UUID

from pydantic import AwareDatetime, Field, ValidationError

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.contact_list import (
    parse_list_of_organization,
    read_list_file,
    require_usable,
)
from switchboard.apps.dashboard.forms.form import Files, Form
from switchboard.apps.dashboard.queries import list_newest_exchanges
from switchboard.apps.dashboard.ui.formats import count, phone
from switchboard.apps.dashboard.ui.labels import ENDED
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import LazyText, ngettext
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import Page, Query, RequestBody, WrittenNumber
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.agents.queries import get_agent_names
from switchboard.resources.appointments.queries import list_next_appointments
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns.csv_import import ContactList
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.models import Contact
from switchboard.resources.contacts.queries import get_contact_names, list_contacts_by_id, select_contacts
from switchboard.resources.contacts.schemas import MAX_LABEL, ContactCreate, ContactQuery, ContactUpdate
from switchboard.resources.contacts.search import search_contacts
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.do_not_call.queries import select_entries
from switchboard.resources.do_not_call.schemas import DoNotCallCreate, DoNotCallQuery
from switchboard.resources.identity.models import NoticeTone
from switchboard.resources.sms.models import SmsMessage

COMING = 5
"""Appointments on a contact's page."""


@page("/dashboard/contacts")
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


@action("/dashboard/contacts/selected")
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
    return await render("dashboard/contacts/edit.html", form=form, contact=None)


@action("/dashboard/contacts/new", role="agent", invalid=new_contact_page)
async def add_contact(session: WriteSession, data: ContactCreate) -> Next:
    contact = await contacts.create_contact(session, data)
    return go_to("contacts_page", _("%(name)s was created.", name=contact.name or contact.phone_number))


@page("/dashboard/contacts/<contact_id>")
async def contact_page(session: ReadSession, contact_id: UUID, form: Form) -> str:
    contact = await get_row(session, Contact, contact_id)
    return await render(
        "dashboard/contacts/edit.html",
        form=form.starting_with(contact.model_dump(mode="json")),
        contact=contact,
        is_not_called=await do_not_call.is_listed(session, contact.phone_number),
        coming=await list_next_appointments(session, contact.phone_number, limit=COMING),
    )


@action("/dashboard/contacts/<contact_id>", role="agent", invalid=contact_page)
async def save_contact(session: WriteSession, contact_id: UUID, data: ContactUpdate) -> Next:
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


@page("/dashboard/contacts/<contact_id>/timeline")
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


# Importing contacts from a list, which is previewed before it is saved.


IMPORTED_FIELDS: Final[Sequence[str]] = ("email", "company", "notes", "tags", "address", "role")
"""Columns that are read under the names of contacts' fields, besides number and name."""
MAX_CONTACTS: Final = 100_000


async def render_import(session: ReadSession, template: str, form: Form) -> str:
    """Render the form of an import, with the preview of a list that was sent."""
    found = await parse_list_of_organization(session, form.values) if form.values else None
    return await render(template, form=form, people=found)


@page("/dashboard/contacts/import", role="builder")
async def import_contacts_page(session: ReadSession, form: Form) -> str:
    return await render_import(session, "dashboard/contacts/import.html", form)


@action("/dashboard/contacts/import/preview")
async def preview_contacts(session: ReadSession, fields: JsonObject, files: Files) -> str:
    """Preview a list to import. Nothing is saved."""
    return await render_import(
        session, "dashboard/contacts/import.html", Form(fields, errors=read_list_file(fields, files))
    )


@action("/dashboard/contacts/import", invalid=import_contacts_page)
async def import_contacts(session: WriteSession, fields: JsonObject, files: Files) -> Next:
    """Import the previewed list."""
    faults = read_list_file(fields, files)
    found = require_usable(await parse_list_of_organization(session, fields), fields, faults)
    if len(found.people) > MAX_CONTACTS:
        raise ValidationFailed.field("people", _("has more than %(number)s contacts", number=count(MAX_CONTACTS)))
    created, updated = await contacts.import_contacts(session, _read_contacts(found))
    counts = {"created": count(created), "updated": count(updated)}
    return go_to("contacts_page", _("%(created)s contacts were created, and %(updated)s updated.", **counts))


def _read_contacts(found: ContactList) -> list[ContactCreate]:
    """Return the contacts with the fields that the header names. Raises `ValidationFailed` with the line."""
    heads = [head.strip().casefold() for head in found.columns]
    places = {name: heads.index(name) for name in IMPORTED_FIELDS if name in heads} if found.layout.header else {}
    read = []
    for person, line, cells in zip(found.people, found.lines, found.cells, strict=True):
        given: dict[str, str] = {
            name: cells[place] for name, place in places.items() if place < len(cells) and cells[place]
        }
        fields: dict[str, str | None] = {"phone_number": person.phone_number, "name": person.name, **given}
        try:
            read.append(ContactCreate.model_validate(fields))
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise ValidationFailed.field(
                "people", _("line %(line)s: %(fault)s", line=line, fault=f"{fault['loc'][0]}: {_(fault['msg'])}")
            ) from None
    return read


# The do-not-call list.


class DoNotCallListQuery(DoNotCallQuery):
    """Filters: a phone number in any common notation."""

    phone_number: WrittenNumber | None = None


HEARD = {"api": LazyText("dashboard or API"), "text": LazyText("text message"), "call": LazyText("call")}
"""Labels of an entry's source."""


@page("/dashboard/contacts/do-not-call")
async def do_not_call_page(session: ReadSession, query: DoNotCallListQuery, form: Form) -> str:
    """List the numbers, newest first."""
    found = await load_list(session, select_entries(session, phone_number=query.phone_number), query)
    names = await get_contact_names(session, {entry.phone_number for entry in found.items})
    return await render(
        "dashboard/contacts/do_not_call.html", entries=found, query=query, names=names, heard=HEARD, form=form
    )


@action("/dashboard/contacts/do-not-call", role="agent", invalid=do_not_call_page)
async def forbid_calling(session: WriteSession, data: DoNotCallCreate) -> Next:
    """Add a number to the do-not-call list."""
    entry = await do_not_call.add_entry(session, data.phone_number, source="api", note=data.note)
    return go_to(
        "do_not_call_page",
        _("%(phone_number)s was added to the do-not-call list.", phone_number=phone(entry.phone_number)),
    )


@action("/dashboard/contacts/do-not-call/<entry_id>/remove")
async def allow_calling(session: WriteSession, entry_id: UUID) -> Next:
    """Remove a number from the do-not-call list."""
    await do_not_call.delete_entry(session, entry_id)
    return go_to("do_not_call_page", _("The number was removed from the do-not-call list."), "warning")
