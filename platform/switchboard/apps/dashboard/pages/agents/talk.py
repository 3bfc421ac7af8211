"""Testing an agent by phone, and talking to it in the browser.

`static/js/talk.js` dials over the carrier's client SDK if it is installed, else over this server's socket.
"""

from uuid import UUID

from pydantic import BaseModel, Field
from quart import Response, jsonify

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.agents.client_sdks import CLIENT_SDKS, list_installed_sdks, render_with_sdk
from switchboard.apps.dashboard.ui.formats import number_name
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.engine.conversation.call import Supervisor
from switchboard.engine.conversation.variables import find_placeholders
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import InvalidState, NotFound
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery, ReferenceId
from switchboard.resources.agents.models import Agent
from switchboard.resources.browser_calls.service import BrowserTokenMint
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.browser import AGENT
from switchboard.resources.calls.live.tickets import TicketMint
from switchboard.resources.calls.queries import find_call_by_carrier_id, select_calls
from switchboard.resources.calls.schemas import CallCreate, CallQuery
from switchboard.resources.phone_numbers.queries import list_active_numbers

LATEST = 5


class TestCall(CallCreate):
    """A call by the agent of the page."""

    agent_id: ReferenceId = ""


@page("/dashboard/agents/<agent_id>/try", role="builder")
async def try_page(session: ReadSession, agent_id: UUID, form: Form) -> str:
    """Show the form of a test call, and the agent's latest calls."""
    agent = await get_row(session, Agent, agent_id)
    names = find_placeholders(agent.settings.greeting_message, agent.settings.system_prompt)
    return await render(
        "dashboard/agents/try.html",
        agent=agent,
        form=form,
        numbers=[(number.id, number_name(number)) for number in await list_active_numbers(session)],
        # The form would turn a name with a dot into an object.
        names=[name for name in names if "." not in name],
        latest=await load_list(
            session, select_calls(session, CallQuery(agent_id=str(agent_id))), PageQuery(limit=LATEST)
        ),
    )


@action("/dashboard/agents/<agent_id>/call", invalid=try_page)
async def place_test_call(session: WriteSession, agent_id: UUID, data: TestCall) -> Next:
    await get_row(session, Agent, agent_id)
    given = {name: value for name, value in data.metadata.items() if value != ""}
    call = await calls.place_call(session, data.model_copy(update={"agent_id": str(agent_id), "metadata": given}))
    return go_to("call_page", _("Calling %(to_number)s.", to_number=call.to_number), call_id=call.id)


# Talking in the browser.


class Connected(BaseModel):
    """The call that the page has started: the carrier, and the carrier's call id."""

    carrier: str = Field(min_length=1, max_length=255)
    carrier_call_id: str = Field(min_length=1, max_length=255)


@page("/dashboard/agents/<agent_id>/talk", role="builder")
async def talk_page(session: ReadSession, agent_id: UUID, mint: BrowserTokenMint) -> Response:
    agent = await get_row(session, Agent, agent_id)
    carrier, missing = "", ""
    try:
        carrier = await mint.find_talk_carrier(session, list_installed_sdks(mint.settings))
    except InvalidState as refusal:
        missing = refusal.detail
    sdk = CLIENT_SDKS.get(carrier)
    return await render_with_sdk("dashboard/agents/talk.html", sdk, agent=agent, carrier=carrier, missing=missing)


@action("/dashboard/agents/<agent_id>/talk", outlasts_support=True, for_script=True)
async def begin_talking(session: WriteSession, viewer: Viewer, agent_id: UUID, mint: BrowserTokenMint) -> Response:
    """Return the token and the connection for one call."""
    agent = await get_row(session, Agent, agent_id)
    if agent.status != "active":
        raise InvalidState(_("The agent is paused: it does not take or place calls."))
    carrier = await mint.find_talk_carrier(session, list_installed_sdks(mint.settings))
    identity = f"user_{viewer.user.id.hex}"
    minted = await mint.mint_token(session, carrier=carrier, identity=identity, platform="web")
    return jsonify(
        {
            "token": minted.token,
            "connection": minted.connection,
            "carrier": minted.provider,
            "to_number": f"{AGENT}{agent_id}",
        }
    )


@action("/dashboard/agents/<agent_id>/talk/transcript", for_script=True)
async def follow_talk(
    session: WriteSession, viewer: Viewer, agent_id: UUID, data: Connected, mint: TicketMint
) -> Response:
    """Return the address of the live transcript, once the call is answered."""
    call = await find_call_by_carrier_id(session, data.carrier, data.carrier_call_id)
    if call is None or call.agent_id != agent_id:
        raise NotFound
    person = Supervisor(viewer.user.id, viewer.user.email)
    ticket = await mint.mint_ticket(session, call.id, person, "transcript", browser=viewer.session.id)
    return jsonify({"url": ticket.url, "call": f"/dashboard/calls/{call.id}"})
