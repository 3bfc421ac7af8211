"""Phone numbers: list, search, buy, enter, configure, and release."""

from typing import Final
from uuid import UUID

from pydantic import Field, JsonValue, field_validator
from quart import url_for

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.contact_list import (
    parse_list_of_organization,
    read_list_file,
    require_usable,
)
from switchboard.apps.dashboard.forms.form import Files, Form, parse_form
from switchboard.apps.dashboard.forms.rows import drop_blank_rows, list_slots
from switchboard.apps.dashboard.pages.contacts import render_import
from switchboard.apps.dashboard.ui.formats import count, day, phone
from switchboard.apps.dashboard.ui.labels import OUTSIDE, list_countries
from switchboard.apps.dashboard.ui.opening_hours import HOURS, Opening, list_timezones
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.languages import ngettext
from switchboard.foundation.web.errors import ApiError, ValidationFailed
from switchboard.foundation.web.schemas import PageQuery, Query, WrittenNumber
from switchboard.plugin_sdk import JsonObject
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.queries import get_agent_names
from switchboard.resources.phone_numbers import entering, purchases
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.queries import select_phone_numbers
from switchboard.resources.phone_numbers.schemas import (
    NumberSearch,
    PhoneNumberBuy,
    PhoneNumbersImport,
    PhoneNumberUpdate,
)


class SearchQuery(Query):
    """The location to search in. Nothing is searched without a country."""

    country: str = Field("", max_length=2)
    area_code: str = Field("", max_length=6)


class OrderQuery(Query):
    """The phone number to buy."""

    phone_number: WrittenNumber


class NumberForm(PhoneNumberUpdate):
    """The API's body, without empty rows of opening hours and holidays."""

    @field_validator(*HOURS, mode="before")
    @classmethod
    def _without_blanks(cls, value: JsonValue) -> JsonValue:
        return drop_blank_rows(value)


@page("/dashboard/numbers")
async def numbers_page(session: ReadSession, query: PageQuery, registry: Registry) -> str:
    found = await load_list(session, select_phone_numbers(session), query)
    moment = now()
    openings = {number.id: Opening.from_schedule(number.schedule, moment) for number in found.items}
    return await render(
        "dashboard/numbers/list.html",
        numbers=found,
        openings=openings,
        agents=await get_agent_names(session),
        enters=await entering.find_entering_carrier(session, registry) is not None,
    )


@page("/dashboard/numbers/buy", role="owner")
async def search_numbers_page(viewer: Viewer, session: ReadSession, query: SearchQuery, providers: Providers) -> str:
    values, found = query.model_dump(), None
    form = Form(values)
    if query.country:
        try:
            wanted = parse_form(NumberSearch, values)
            found = await purchases.search_available_numbers(providers, viewer.organization_id, wanted)
        except ApiError as error:
            form = Form(values, errors=error.errors, message=error.detail)
    return await render(
        "dashboard/numbers/search.html",
        form=form,
        found=found,
        countries=list_countries(),
        price=await numbers.get_monthly_price(session),
    )


@page("/dashboard/numbers/order", role="owner")
async def order_page(session: ReadSession, query: OrderQuery, form: Form) -> str:
    return await render(
        "dashboard/numbers/order.html",
        form=form.starting_with({"phone_number": query.phone_number}),
        number=query.phone_number,
        agents=await get_agent_names(session),
        price=await numbers.get_monthly_price(session),
    )


@action("/dashboard/numbers/order", role="owner", invalid=order_page)
async def buy_number(viewer: Viewer, data: PhoneNumberBuy, buyer: purchases.NumberBuyer) -> Next:
    number = await buyer.buy_number(viewer.organization_id, data, actor=viewer.principal.actor)
    return go_to(
        "number_page", _("%(phone_number)s was bought.", phone_number=phone(number.phone_number)), number_id=number.id
    )


@page("/dashboard/numbers/<number_id>")
async def number_page(viewer: Viewer, session: ReadSession, number_id: UUID, form: Form) -> str:
    """Show a phone number: its agent, opening hours, and webhook."""
    return await _number_page(viewer, session, await numbers.get_phone_number(session, number_id), form)


async def _number_page(
    viewer: Viewer, session: ReadSession, number: PhoneNumber, form: Form, *, secret: str | None = None
) -> str:
    moment = now()
    forms = {
        name: form if form.was_sent and form.value(name) is not None else Form(_list_stored_values(viewer, number))
        for name in _FORMS
    }
    return await render(
        "dashboard/numbers/number.html",
        number=number,
        forms=forms,
        secret=secret,
        agents=await get_agent_names(session),
        openings={name: Opening.from_schedule(getattr(number, name), moment) for name in HOURS},
        slots={name: list_slots(forms[name].value(name)) for name in HOURS},
        zones=list_timezones(),
        outside=OUTSIDE,
    )


_FORMS = ("friendly_name", *HOURS, "forward_webhook_url")
"""A field that each of the page's forms always sends."""


def _list_stored_values(viewer: Viewer, number: PhoneNumber) -> JsonObject:
    fresh: JsonObject = {"enabled": False, "timezone": viewer.timezone}
    plain = {"friendly_name", "inbound_agent_id", "forward_number", "forward_webhook_url"}
    values = number.model_dump(mode="json", include=plain)
    return {**values, "schedule": number.schedule or fresh, "sms_schedule": number.sms_schedule or fresh}


@action("/dashboard/numbers/<number_id>", invalid=number_page)
async def save_number(
    session: WriteSession, number_id: UUID, data: NumberForm, updater: numbers.PhoneNumberUpdater
) -> Next:
    """Update a phone number's name, agent, or opening hours."""
    # Another webhook URL creates a secret, which only `save_number_webhook` shows.
    data.model_fields_set.discard("forward_webhook_url")
    await updater.update(session, number_id, data)
    return go_to("number_page", _("Saved."), number_id=number_id)


@action("/dashboard/numbers/<number_id>/webhook", role="owner", invalid=number_page)
async def save_number_webhook(
    viewer: Viewer, session: WriteSession, number_id: UUID, data: NumberForm, updater: numbers.PhoneNumberUpdater
) -> Next | str:
    """Set the webhook for calls outside opening hours, and show its signing secret."""
    number, secret = await updater.update(session, number_id, data)
    if secret is not None:
        return await _number_page(viewer, session, number, Form(), secret=secret)
    after = url_for("dashboard.number_page", number_id=number_id)
    return Next(after, _("Saved.")) if number.forward_webhook_url else Next(after, _("Webhook disabled."), "warning")


@action("/dashboard/numbers/<number_id>/release", role="owner")
async def release_number(session: WriteSession, number_id: UUID) -> Next:
    """Release a phone number at the end of the paid month."""
    number = await numbers.schedule_release(session, number_id)
    return go_to(
        "numbers_page",
        _(
            "%(phone_number)s works until %(release_at)s and is then released.",
            phone_number=phone(number.phone_number),
            release_at=day(number.release_at),
        ),
        "warning",
    )


# Entering the numbers of a SIP trunk: one, or a list that is previewed before it is saved.


MAX_NUMBERS: Final = 1000


@page("/dashboard/numbers/import", role="owner")
async def import_numbers_page(session: ReadSession, form: Form) -> str:
    return await render_import(session, "dashboard/numbers/import.html", form)


@action("/dashboard/numbers/import/preview", role="owner")
async def preview_numbers(session: ReadSession, fields: JsonObject, files: Files) -> str:
    """Preview a list of numbers. Nothing is saved."""
    return await render_import(
        session, "dashboard/numbers/import.html", Form(fields, errors=read_list_file(fields, files))
    )


@action("/dashboard/numbers/import", role="owner", invalid=import_numbers_page)
async def import_numbers(session: WriteSession, fields: JsonObject, files: Files, registry: Registry) -> Next:
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
