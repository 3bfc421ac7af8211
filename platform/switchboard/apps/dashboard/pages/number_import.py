"""Entering the numbers of a SIP trunk: one, or a list that is previewed before it is saved."""

from typing import Final

from pydantic import JsonValue
from quart import url_for

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.decorators import Next, action, page
from switchboard.apps.dashboard.forms.contact_list import (
    Values,
    parse_list,
    preview_list,
    read_list_form,
    require_usable,
    show_again,
)
from switchboard.apps.dashboard.forms.form import Form, parse_form
from switchboard.apps.dashboard.ui.formats import count
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import BrowserSessions, Viewer
from switchboard.foundation.database import TenantSession
from switchboard.foundation.languages import ngettext
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.campaigns.csv_import import ContactList, get_region
from switchboard.resources.phone_numbers import entering
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.schemas import PhoneNumbersImport

MAX_NUMBERS: Final = 1000


@dashboard.get("/dashboard/numbers/import")
@page(role="owner")
async def import_numbers_page(session: TenantSession, form: Form) -> str:
    """Show the form of an import."""
    found = None
    if form.was_sent:
        values, _ = await read_list_form()
        form, found = show_again(form, values), await _parse(session, values)
    return await render("dashboard/numbers/import.html", form=form, **preview_list(found))


@dashboard.post("/dashboard/numbers/import/preview")
@page(role="owner")
async def preview_numbers(session: TenantSession, viewer: Viewer, sessions: BrowserSessions) -> str:
    """Preview a list of numbers. Nothing is saved."""
    await sessions.check_form(viewer)
    values, faults = await read_list_form()
    found = await _parse(session, values)
    return await render("dashboard/numbers/import.html", form=Form(values, errors=faults), **preview_list(found))


@dashboard.post("/dashboard/numbers/import")
@action(role="owner", invalid=import_numbers_page)
async def import_numbers(session: TenantSession, registry: Registry) -> Next:
    """Enter the previewed numbers."""
    values, faults = await read_list_form()
    found = require_usable(await _parse(session, values), values, faults)
    if len(found.people) > MAX_NUMBERS:
        raise ValidationFailed.field("people", f"has more than {MAX_NUMBERS:,} numbers")
    rows: list[JsonValue] = [
        {"phone_number": person.phone_number, "friendly_name": person.name or None} for person in found.people
    ]
    entered = await entering.enter_numbers(session, registry, parse_form(PhoneNumbersImport, {"numbers": rows}))
    result = ngettext(
        "%(number)s number was entered.", "%(number)s numbers were entered.", len(entered), number=count(len(entered))
    )
    return Next(url_for("dashboard.numbers_page"), result)


async def _parse(session: TenantSession, values: Values) -> ContactList:
    """Parse the list. Numbers without a country code are read like the organization's first number."""
    own = await numbers.list_active_numbers(session)
    return await parse_list(values, region=get_region(own[0].phone_number) if own else None)
