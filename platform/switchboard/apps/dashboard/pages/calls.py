"""Calls: list with filters and saved views, details (recording, transcript, latency, and costs), and placing a call."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Annotated, Final, Literal, Self
from urllib.parse import parse_qsl, urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import Field
from quart import Response, url_for

from switchboard.apps.dashboard.blueprint import FinalPart, Next, action, go_to, live_part, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.contacts import describe_contact_change
from switchboard.apps.dashboard.queries import list_selected_calls
from switchboard.apps.dashboard.ui import charts, waveform
from switchboard.apps.dashboard.ui.formats import dollars, number_name
from switchboard.apps.dashboard.ui.labels import (
    CAPABILITIES,
    CLAIMS,
    CONSENT_ANSWERS,
    COST_PARTS,
    ENDED,
    INTERVENTIONS,
    ORIGINS,
    VALUES,
    describe_value,
)
from switchboard.apps.dashboard.ui.rendering import load_page, render, render_part
from switchboard.apps.dashboard.ui.turn_latencies import STEPS, build_turns
from switchboard.apps.dashboard.ui.turn_pauses import PauseMark, build_pause_mark
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import Database, ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.object_store import ObjectStoreAway
from switchboard.foundation.web.errors import NotFound, Unavailable, ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.pipeline import parse_query
from switchboard.foundation.web.schemas import Name, Query, RequestBody, WrittenNumber, is_phone_number
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.agents.queries import get_agent_names
from switchboard.resources.appointments.queries import list_appointments_of_call
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.recordings import waveform_peaks
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.responses import RecordingResponder
from switchboard.resources.calls.schemas import CallCreate, CallQuery
from switchboard.resources.calls.service import find_calls
from switchboard.resources.calls.states import is_over
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.queries import find_contact_by_number, get_contact_names
from switchboard.resources.contacts.schemas import MAX_LABEL
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.phone_numbers.queries import list_active_numbers
from switchboard.resources.saved_views import service as saved_views
from switchboard.resources.saved_views.queries import list_views
from switchboard.resources.stored_files import FileDamaged

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


@page("/dashboard/calls")
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


@action("/dashboard/calls/contacts")
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


@action("/dashboard/calls/views", role="agent")
async def save_calls_view(session: WriteSession, data: NewView) -> Next:
    """Save the filters under a name, for the whole organization."""
    query = parse_query(CallsQuery, dict(parse_qsl(data.query)))
    await saved_views.save_view(session, PAGE, data.name, query.encode_filters())
    return Next(f"{url_for('dashboard.calls_page')}?{query.encode_filters()}", _("%(name)s was saved.", name=data.name))


@action("/dashboard/calls/views/<view_id>/delete", role="agent")
async def delete_calls_view(session: WriteSession, view_id: UUID) -> Next:
    await saved_views.delete_view(session, view_id)
    return go_to("calls_page", _("The view was deleted."), "warning")


def _list_options(noun: str) -> list[tuple[str, str]]:
    return [(value, describe_value(value, noun)) for value in VALUES[noun]]


# One call.


class NewCallQuery(Query):
    """Initial values of the form of a new call."""

    to_number: str = Field("", max_length=20)
    agent_id: str = Field("", max_length=64)


@dataclass(frozen=True, slots=True)
class Line:
    """A transcript entry: speech with its pauses, or a tool call with its result as indented JSON.

    `agent` is the name of the agent, if the call had several.
    """

    entry: TranscriptLine
    agent: str = ""
    tool: str = ""
    result: str = ""
    pauses: Sequence[PauseMark] = ()


@page("/dashboard/calls/new", role="agent")
async def new_call_page(session: ReadSession, query: NewCallQuery, form: Form) -> str:
    form.starting_with(query.model_dump())
    own = await list_active_numbers(session)
    return await render(
        "dashboard/calls/new.html",
        form=form,
        agents=await get_agent_names(session, status="active"),
        numbers=[(number.id, number_name(number)) for number in own],
    )


@action("/dashboard/calls/new", role="agent", invalid=new_call_page)
async def place_call(session: WriteSession, data: CallCreate) -> Next:
    call = await calls.place_call(session, data)
    return go_to("call_page", call_id=call.id)


@page("/dashboard/calls/<call_id>")
async def call_page(session: WriteSession, call_id: UUID) -> str:
    """Show a call, and record in the audit log who reads its transcript."""
    call = await get_row(session, Call, call_id)
    if call.has_transcript:
        await calls.read_transcript(session, call_id)
    return await render("dashboard/calls/call.html", **(await _talk(session, call) | await _about(session, call)))


@live_part("/dashboard/calls/<call_id>/talk")
async def call_talk(session: ReadSession, call_id: UUID) -> str:
    """Render the transcript of a call; at its end, with the recording."""
    call = await get_row(session, Call, call_id)
    shown = await render_part("dashboard/calls/talk.html", **await _talk(session, call))
    return FinalPart(shown) if is_over(call) and not _awaits_recording(call) else shown


@live_part("/dashboard/calls/<call_id>/about")
async def call_about(session: ReadSession, call_id: UUID) -> str:
    """Render the details of a call until it has ended and is analyzed."""
    call = await get_row(session, Call, call_id)
    shown = await render_part("dashboard/calls/about.html", **await _about(session, call))
    return shown if _changes(call) else FinalPart(shown)


@page("/dashboard/calls/<call_id>/recording")
async def call_recording(viewer: Viewer, call_id: UUID, database: Database, responder: RecordingResponder) -> Response:
    """Serve a call's recording, with ranges, as the API does."""
    call = await calls.read_recorded_call(database, viewer.organization_id, call_id, actor=viewer.principal.actor)
    return await responder.respond(call)


@page("/dashboard/calls/<call_id>/waveform")
async def call_waveform(viewer: Viewer, call_id: UUID, database: Database, archive: RecordingArchive) -> str:
    """Render the waveform of a recording in the store."""
    call = await calls.read_call(database, viewer.organization_id, call_id)
    try:
        peaks = await waveform_peaks.measure_peaks(archive, call, waveform.PARTS)
    except (ObjectStoreAway, FileDamaged) as error:
        raise Unavailable(_("The recording cannot be read at the moment.")) from error
    if peaks is None:
        raise NotFound(_("The store has no recording of the call."))
    drawn = waveform.draw_waveform(peaks)
    return await render_part("dashboard/calls/waveform.html", drawn=drawn, width=waveform.WIDTH, height=waveform.HEIGHT)


def _changes(call: Call) -> bool:
    """Return whether the call's details will still change."""
    return not is_over(call) or call.analysis_due_at is not None


def _awaits_recording(call: Call) -> bool:
    """Return whether the call's recording is not in the store yet."""
    return call.recording_due_at is not None and not call.has_recording and call.recording_error is None


async def _talk(session: ReadSession, call: Call) -> dict[str, object]:
    return {
        "call": call,
        "is_live": not is_over(call),
        "has_recording": is_over(call) and (call.has_recording or call.carrier_recording_id is not None),
        "has_waveform": call.has_recording,
        "awaits_recording": is_over(call) and _awaits_recording(call),
        "lines": await list_transcript_lines(session, call.id) if call.has_transcript else [],
    }


async def _about(session: ReadSession, call: Call) -> dict[str, object]:
    other = calls.get_other_number(call)
    names = await get_agent_names(session)
    parts = sorted(
        ((COST_PARTS.get(name, name), float(cost), "accent") for name, cost in call.cost_parts.items()),
        key=lambda part: -part[1],
    )
    return {
        "call": call,
        "changes": _changes(call),
        "agent_name": names.get(call.agent_id) if call.agent_id else None,
        "contact": await find_contact_by_number(session, other),
        "other": other,
        "appointments": await list_appointments_of_call(session, call.id),
        "ended": ENDED.get(call.ended_reason or "", call.ended_reason),
        "consent_answer": CONSENT_ANSWERS.get((call.consent or {}).get("by") or "", _("No answer")),
        "served_by": [(CAPABILITIES.get(name, name), provider) for name, provider in call.served_by.items()],
        "costs": charts.build_shares(parts, dollars),
        "handoffs": [
            (one["timestamp_ms"] / 1000, names.get(UUID(one["to_agent_id"])), one["mode"]) for one in call.handoffs
        ],
        "agent_costs": [
            (names.get(UUID(agent_id)), Decimal(str(sum(parts.values()))))
            for agent_id, parts in call.agent_costs.items()
        ],
        "turns": build_turns(call.latencies),
        "steps": STEPS,
        "extracted": _plain(call.extracted_data.value),
        "interventions": [
            (one["timestamp_ms"] / 1000, CLAIMS.get(one["name"], one["name"]), INTERVENTIONS.get(one["action"]))
            for one in call.interventions
        ],
        "variables": [
            (name, known["value"], ORIGINS.get(known["origin"], known["origin"]))
            for name, known in call.variables.value.items()
        ],
        "metadata": _plain(call.call_metadata.value),
    }


async def list_transcript_lines(session: ReadSession, call_id: UUID) -> list[Line]:
    """Return a call's transcript for `calls/lines.html`, with the agents' names if there were several. Raises
    `NotFound`.
    """
    entries = await calls.get_transcript(session, call_id)
    several = len({entry.agent_id for entry in entries if entry.agent_id is not None}) > 1
    names = await get_agent_names(session) if several else {}
    return [
        _tool(entry)
        if entry.role == "tool"
        else Line(
            entry,
            agent=names.get(entry.agent_id, "") if entry.agent_id is not None else "",
            pauses=[build_pause_mark(entry.timestamp_ms, pause) for pause in entry.pauses],
        )
        for entry in entries
    ]


def _tool(entry: TranscriptLine) -> Line:
    try:
        used = json.loads(entry.content.value)
    except ValueError:
        used = None
    if not isinstance(used, dict) or "tool" not in used:
        return Line(entry, tool="tool", result=entry.content.value)
    return Line(entry, tool=str(used["tool"]), result=json.dumps(used.get("result"), indent=2, ensure_ascii=False))


def _plain(data: JsonObject) -> list[tuple[str, str]]:
    """Return names and values for display: strings unchanged, everything else as JSON."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in data.items()
    ]
