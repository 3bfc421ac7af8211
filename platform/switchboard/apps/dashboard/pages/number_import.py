"""Entering the numbers of a SIP trunk: one, or a list that is previewed before it is saved."""

from typing import Final

from pydantic import JsonValue
from werkzeug.datastructures import FileStorage, MultiDict

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.contact_list import (
    Values,
    parse_list_of_organization,
    read_list_file,
    require_usable,
)
from switchboard.apps.dashboard.forms.form import Form, parse_form
from switchboard.apps.dashboard.pages.contact_import import render_import
from switchboard.apps.dashboard.ui.formats import count
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import ngettext
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.phone_numbers import entering
from switchboard.resources.phone_numbers.schemas import PhoneNumbersImport

MAX_NUMBERS: Final = 1000


@page("/dashboard/numbers/import", role="owner")
async def import_numbers_page(session: ReadSession, form: Form) -> str:
    """Show the form of an import."""
    return await render_import(session, "dashboard/numbers/import.html", form)


@action("/dashboard/numbers/import/preview", role="owner")
async def preview_numbers(session: ReadSession, fields: Values, files: "MultiDict[str, FileStorage]") -> str:
    """Preview a list of numbers. Nothing is saved."""
    faults = read_list_file(fields, files)
    return await render_import(session, "dashboard/numbers/import.html", Form(fields, errors=faults))


@action("/dashboard/numbers/import", role="owner", invalid=import_numbers_page)
async def import_numbers(
    session: WriteSession, fields: Values, files: "MultiDict[str, FileStorage]", registry: Registry
) -> Next:
    """Enter the previewed numbers."""
    faults = read_list_file(fields, files)
    found = require_usable(await parse_list_of_organization(session, fields), fields, faults)
    if len(found.people) > MAX_NUMBERS:
        raise ValidationFailed.field("people", f"has more than {MAX_NUMBERS:,} numbers")
    rows: list[JsonValue] = [
        {"phone_number": person.phone_number, "friendly_name": person.name or None} for person in found.people
    ]
    entered = await entering.enter_numbers(session, registry, parse_form(PhoneNumbersImport, {"numbers": rows}))
    result = ngettext(
        "%(number)s number was entered.", "%(number)s numbers were entered.", len(entered), number=count(len(entered))
    )
    return go_to("numbers_page", result)
