"""Destinations, for owners: those that the operator opens, and those that the organization closes for itself."""

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.destinations import service as destinations
from switchboard.resources.destinations.schemas import NarrowedDestinations


@page("/dashboard/destinations", role="owner")
async def destinations_page(session: ReadSession, form: Form) -> str:
    rules = await destinations.read_outbound_rules(session)
    values: JsonObject = {
        "countries": " ".join(rules.narrowed.countries),
        "block": " ".join(rules.narrowed.block),
    }
    return await render("dashboard/destinations.html", policy=rules.policy, form=form.starting_with(values))


@action("/dashboard/destinations", role="owner", invalid=destinations_page)
async def narrow_destinations(session: WriteSession, data: NarrowedDestinations) -> Next:
    """Save the destinations that the organization closes."""
    await destinations.narrow_destinations(session, data)
    return go_to("destinations_page", _("Saved."))
