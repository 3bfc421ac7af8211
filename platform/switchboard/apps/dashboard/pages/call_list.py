"""The list of calls: filters and saved views."""

from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Annotated, Final, Literal, Self
from urllib.parse import parse_qsl, urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import Field
from quart import url_for

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.pages.contacts import describe_contact_change
from switchboard.apps.dashboard.queries import list_selected_calls
from switchboard.apps.dashboard.ui.labels import ENDED, VALUES, describe_value
from switchboard.apps.dashboard.ui.rendering import load_page, render
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.pipeline import parse_query
from switchboard.foundation.web.schemas import Name, RequestBody, WrittenNumber, is_phone_number
from switchboard.resources.agents.queries import get_agent_names
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.schemas import CallQuery
from switchboard.resources.calls.service import find_calls
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.queries import get_contact_names
from switchboard.resources.contacts.schemas import MAX_LABEL
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.saved_views import service as saved_views
from switchboard.resources.saved_views.queries import list_views

PAGE: Final = "calls"
PLACES: Final = ("limit", "offset")
COMMON: Final = ("agent_id", "direction", "status", "phone", "first_day", "last_day")
"""Filters that the page always shows; the others are folded."""


class CallsQuery(CallQuery):
    """Filters of the list of calls: those of the API, with days of the organization's time zone."""

    phone: WrittenNumber | None = None
    first_day: date | None = None
    last_day: date | None = None

    def cover_days(self, timezone: str) -> Self:
        """Return the query with the days as times."""
        zone = ZoneInfo(timezone)
        times = {}
        if self.first_day is not None:
            times["created_after"] = datetime.combine(self.first_day, time(), zone)
        if self.last_day is not None:
            times["created_before"] = datetime.combine(self.last_day + timedelta(days=1), time(), zone)
        return self.model_copy(update=times)

    def encode_filters(self) -> str:
        """Return the filters that are set, URL-encoded."""
        return urlencode(self.model_dump(mode="json", exclude_none=True, exclude=set(PLACES)))


class ContactsOfCalls(RequestBody):
    """An action on the contacts of selected calls. `tag` is the tag to add, and `query` the filters of the list."""

    ids: list[UUID] = Field(min_length=1, max_length=100)
    act: Literal["tag", "do_not_call"]
    tag: Annotated[str, Field(max_length=MAX_LABEL, pattern="^[^,]*$")] = ""
    query: str = Field("", max_length=2_000)


class NewView(RequestBody):
    """A view to save: its name, and the filters as the page's query has them."""

    name: Name
    query: str = Field(max_length=2_000)


@page("/dashboard/calls", query=CallsQuery)
async def calls_page(session: ReadSession, viewer: Viewer, query: CallsQuery) -> str:
    """List the calls, newest first."""
    found = await load_page(partial(find_calls, session), query.cover_days(viewer.timezone))
    filters = query.encode_filters()
    return await render(
        "dashboard/calls/list.html",
        calls=found,
        query=query,
        filters=filters,
        has_more_filters=bool(query.model_dump(exclude_none=True).keys() - {*COMMON, *PLACES}),
        views=await list_views(session, PAGE),
        directions=_list_options("direction of a call"),
        statuses=_list_options("call"),
        sentiments=_list_options("sentiment"),
        ended_reasons=ENDED,
        agents=await get_agent_names(session),
        names=await get_contact_names(
            session, {number for call in found.items for number in (call.from_number, call.to_number)}
        ),
    )


@action("/dashboard/calls/contacts", form=ContactsOfCalls)
async def change_contacts_of_calls(session: WriteSession, data: ContactsOfCalls) -> Next:
    """Tag the contacts of the selected calls, or stop calling them; all of them or, after an error, none.

    Callers who are not contacts become contacts. Callers without a number are left out.
    """
    selected = await list_selected_calls(session, data.ids)
    numbers = sorted(filter(is_phone_number, {calls.get_other_number(call) for call in selected}))
    if data.act == "tag" and not data.tag:
        raise ValidationFailed.field("tag", _("is required"))
    for number in numbers:
        if data.act == "do_not_call":
            await do_not_call.add_entry(session, number, source="api")
        else:
            contact, _created = await contacts.get_or_create_contact(session, number)
            await contacts.add_tag(session, contact, data.tag)
    query = parse_query(CallsQuery, dict(parse_qsl(data.query)))
    return Next(
        f"{url_for('dashboard.calls_page')}?{query.encode_filters()}", describe_contact_change(data.act, len(numbers))
    )


@action("/dashboard/calls/views", role="agent", form=NewView)
async def save_calls_view(session: WriteSession, data: NewView) -> Next:
    """Save the filters under a name, for the whole organization."""
    query = parse_query(CallsQuery, dict(parse_qsl(data.query)))
    await saved_views.save_view(session, PAGE, data.name, query.encode_filters())
    return Next(f"{url_for('dashboard.calls_page')}?{query.encode_filters()}", _("%(name)s was saved.", name=data.name))


@action("/dashboard/calls/views/<view_id>/delete", role="agent")
async def delete_calls_view(session: WriteSession, view_id: UUID) -> Next:
    """Delete a saved view."""
    await saved_views.delete_view(session, view_id)
    return go_to("calls_page", _("The view was deleted."), "warning")


def _list_options(noun: str) -> list[tuple[str, str]]:
    return [(value, describe_value(value, noun)) for value in VALUES[noun]]
