"""Testing an agent by phone or in the browser."""

from uuid import UUID

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.formats import number_name
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.engine.conversation.response_generator import find_placeholders
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery, ReferenceId
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.queries import select_calls
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


@action("/dashboard/agents/<agent_id>/call", form=TestCall, invalid=try_page)
async def place_test_call(session: WriteSession, agent_id: UUID, data: TestCall) -> Next:
    await get_row(session, Agent, agent_id)
    given = {name: value for name, value in data.metadata.items() if value != ""}
    call = await calls.place_call(session, data.model_copy(update={"agent_id": str(agent_id), "metadata": given}))
    return go_to("call_page", _("Calling %(to_number)s.", to_number=call.to_number), call_id=call.id)
