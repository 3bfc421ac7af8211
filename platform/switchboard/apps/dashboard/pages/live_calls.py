"""Live calls: list, listen, whisper, take over, hand back (docs/how-to/live-calls.md), and answer in the browser."""

import re
from uuid import UUID

from pydantic import BaseModel
from quart import Response, jsonify, url_for

from switchboard.apps.dashboard.blueprint import FinalPart, action, live_part, page
from switchboard.apps.dashboard.pages.agents.client_sdks import CLIENT_SDKS, list_installed_sdks, render_with_sdk
from switchboard.apps.dashboard.pages.calls import list_transcript_lines
from switchboard.apps.dashboard.ui.rendering import render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.engine.conversation.call import Supervisor
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import ClientName, Query
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent
from switchboard.resources.browser_calls.service import BrowserTokenMint
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.live.tickets import TicketAccess, TicketMint
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.queries import list_ongoing_calls
from switchboard.resources.calls.states import is_over
from switchboard.resources.contacts.queries import find_contact_by_number, get_contact_names
from switchboard.resources.destinations.clients import build_client_identity, find_client_carrier


@page("/dashboard/live")
async def live_page(session: ReadSession) -> str:
    return await render("dashboard/live/list.html", **await _ongoing(session))


@live_part("/dashboard/live/calls")
async def live_calls(session: ReadSession) -> str:
    return await render_part("dashboard/live/calls.html", **await _ongoing(session))


class LiveCallQuery(Query):
    """With `answer` the page takes the call over at once, or as soon as it is answered."""

    answer: bool = False


@page("/dashboard/live/<call_id>")
async def live_call_page(session: ReadSession, call_id: UUID, query: LiveCallQuery) -> str | Response:
    """Show a call in progress; redirect to the details of a call that has ended."""
    call = await get_row(session, Call, call_id)
    is_on_the_line = call.status == "in-progress" and call.holder is not None
    if not is_on_the_line and (is_over(call) or not query.answer):
        return Response("", 303, {"Location": url_for("dashboard.call_page", call_id=call_id)})
    other = calls.get_other_number(call)
    return await render(
        "dashboard/live/call.html",
        call=call,
        other=other,
        contact=await find_contact_by_number(session, other),
        agent=await session.find(Agent, call.agent_id) if call.agent_id else None,
        lines=await list_transcript_lines(session, call_id),
        is_live=True,
        answer=query.answer,
    )


@live_part("/dashboard/live/<call_id>/said")
async def live_call_said(session: ReadSession, call_id: UUID) -> str:
    """Render the transcript of a call until it ends."""
    call = await get_row(session, Call, call_id)
    ended = is_over(call) or call.transferred_to is not None
    shown = await render_part(
        "dashboard/live/said.html",
        call=call,
        lines=await list_transcript_lines(session, call_id),
        is_live=True,
        is_over=ended,
    )
    return FinalPart(shown) if ended else shown


@action("/dashboard/live/<call_id>/ticket", role="viewer", for_script=True)
async def follow_call(viewer: Viewer, session: WriteSession, call_id: UUID, mint: TicketMint) -> Response:
    """Return a ticket for the call's socket as `{"url": …}`. Viewers listen."""
    person = Supervisor(viewer.user.id, viewer.user.email)
    access: TicketAccess = "control" if viewer.has_role("agent") else "listen"
    ticket = await mint.mint_ticket(session, call_id, person, access, browser=viewer.session.id)
    return jsonify({"url": ticket.url})


async def _ongoing(session: ReadSession) -> dict[str, object]:
    found = await list_ongoing_calls(session)
    numbers = {number for call, _agent in found for number in (call.from_number, call.to_number)}
    return {"ongoing": found, "names": await get_contact_names(session, numbers)}


# Answering calls in the browser: `static/js/answer.js` waits for calls to a name that the user chooses.


NO_CARRIER = LazyText("None of the organization's carriers can ring browsers.")


class AnsweringForm(BaseModel):
    """The name under which the browser is rung."""

    name: ClientName


@page("/dashboard/live/answer", role="agent")
async def answering_page(session: ReadSession, viewer: Viewer, settings: Settings, registry: Registry) -> Response:
    """Show the page for answering calls. It may connect to the carrier of its client SDK only."""
    carrier = await find_client_carrier(session, registry)
    sdk = list_installed_sdks(settings).get(carrier or "")
    missing = "" if carrier else NO_CARRIER
    if carrier in CLIENT_SDKS and sdk is None:
        missing = _(
            "Answering calls here needs the client SDK of %(carrier)s, which the operator installs.",
            carrier=CLIENT_SDKS[carrier].title,
        )
    name = re.sub(r"[^A-Za-z0-9_]", "_", viewer.user.email.partition("@")[0])[:50]
    return await render_with_sdk(
        "dashboard/live/answer.html", None if missing else sdk, carrier=carrier or "", missing=missing, name=name
    )


@action("/dashboard/live/answer", role="agent", outlasts_support=True, for_script=True)
async def begin_answering(
    session: WriteSession, data: AnsweringForm, registry: Registry, mint: BrowserTokenMint
) -> Response:
    """Return the token and the connection with which the browser waits for calls."""
    carrier = await find_client_carrier(session, registry)
    if carrier is None:
        raise InvalidState(NO_CARRIER)
    identity = build_client_identity(session.organization_id, data.name)
    minted = await mint.mint_token(session, carrier=carrier, identity=identity, platform="web")
    return jsonify({"token": minted.token, "connection": minted.connection, "carrier": minted.provider})
