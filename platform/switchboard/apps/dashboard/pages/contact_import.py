"""Importing contacts from a list, which is previewed before it is saved."""

from collections.abc import Sequence
from typing import Final

from pydantic import ValidationError
from werkzeug.datastructures import FileStorage, MultiDict

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.contact_list import (
    Values,
    parse_list_of_organization,
    read_list_file,
    require_usable,
)
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.formats import count
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.resources.campaigns.csv_import import ContactList
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.schemas import ContactCreate

FIELDS: Final[Sequence[str]] = ("email", "company", "notes", "tags", "address", "role")
"""Columns that are read under the names of contacts' fields, besides number and name."""
MAX_CONTACTS: Final = 100_000


async def render_import(session: ReadSession, template: str, form: Form) -> str:
    """Render the form of an import, with the preview of a list that was sent."""
    found = await parse_list_of_organization(session, form.values) if form.values else None
    return await render(template, form=form, people=found)


@page("/dashboard/contacts/import", role="builder")
async def import_contacts_page(session: ReadSession, form: Form) -> str:
    """Show the form of an import."""
    return await render_import(session, "dashboard/contacts/import.html", form)


@action("/dashboard/contacts/import/preview")
async def preview_contacts(session: ReadSession, fields: Values, files: "MultiDict[str, FileStorage]") -> str:
    """Preview a list to import. Nothing is saved."""
    faults = read_list_file(fields, files)
    return await render_import(session, "dashboard/contacts/import.html", Form(fields, errors=faults))


@action("/dashboard/contacts/import", invalid=import_contacts_page)
async def import_contacts(session: WriteSession, fields: Values, files: "MultiDict[str, FileStorage]") -> Next:
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
    places = {name: heads.index(name) for name in FIELDS if name in heads} if found.layout.header else {}
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
