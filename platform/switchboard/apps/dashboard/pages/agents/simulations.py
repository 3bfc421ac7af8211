"""Simulations of an agent: list, create, and follow."""

import json
from uuid import UUID

from pydantic import Field

from switchboard.apps.dashboard.blueprint import Next, action, go_to, live_part, page
from switchboard.apps.dashboard.forms import simulation as forms
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.rendering import load_list, render, render_part
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery, Query, parse_id
from switchboard.plugin_sdk import JsonObject
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent, Simulation
from switchboard.resources.agents.tools import list_tool_names
from switchboard.resources.simulations import service as simulations
from switchboard.resources.simulations.queries import select_simulations
from switchboard.resources.simulations.schemas import SimulationCreate, SimulationOut


class FreshQuery(Query):
    """The simulation that a new one copies."""

    like: str | None = Field(None, max_length=64)


@page("/dashboard/agents/<agent_id>/simulations")
async def simulations_page(session: ReadSession, agent_id: UUID, query: PageQuery) -> str:
    """List the agent's simulations with their results."""
    agent = await get_row(session, Agent, agent_id)
    listing = await load_list(session, select_simulations(session, agent_id), query)
    return await render("dashboard/agents/simulations.html", agent=agent, simulations=listing, query=query)


@live_part("/dashboard/agents/<agent_id>/simulations/rows")
async def live_simulations(session: ReadSession, agent_id: UUID, query: PageQuery) -> str:
    await get_row(session, Agent, agent_id)
    return await render_part(
        "dashboard/agents/simulation_rows.html",
        agent_id=agent_id,
        simulations=await load_list(session, select_simulations(session, agent_id), query),
    )


@page("/dashboard/agents/<agent_id>/simulations/new", role="builder")
async def new_simulation_page(
    session: ReadSession, agent_id: UUID, query: FreshQuery, form: Form, registry: Registry
) -> str:
    """Show the form of a new simulation, empty or copied from another."""
    agent = await get_row(session, Agent, agent_id)
    values = forms.FRESH
    if query.like is not None:
        like = parse_id(query.like)
        if like is None:
            raise NotFound
        values = forms.simulation_to_form(await simulations.get_simulation(session, agent_id, like))
    can_ring = await simulations.find_simulated_number(session, registry, agent_id) is not None
    return await render(
        "dashboard/agents/simulation_new.html",
        agent=agent,
        form=form.starting_with(values),
        tools=list_tool_names(registry, agent),
        can_ring=can_ring,
    )


@action("/dashboard/agents/<agent_id>/simulations/new", invalid=new_simulation_page)
async def run_new_simulation(session: WriteSession, agent_id: UUID, fields: JsonObject, registry: Registry) -> Next:
    """Create a simulation, which a worker runs."""
    with forms.read_simulation_form(fields) as data:
        return await _start(session, registry, agent_id, data)


@page("/dashboard/agents/<agent_id>/simulations/<simulation_id>")
async def simulation_page(session: ReadSession, agent_id: UUID, simulation_id: UUID) -> str:
    agent = await get_row(session, Agent, agent_id)
    return await render(
        "dashboard/agents/simulation.html",
        agent=agent,
        **_build_context(await simulations.get_simulation(session, agent_id, simulation_id)),
    )


@live_part("/dashboard/agents/<agent_id>/simulations/<simulation_id>/result")
async def live_simulation(session: ReadSession, agent_id: UUID, simulation_id: UUID) -> str:
    simulation = await simulations.get_simulation(session, agent_id, simulation_id)
    return await render_part("dashboard/agents/simulation_result.html", **_build_context(simulation))


@action("/dashboard/agents/<agent_id>/simulations/<simulation_id>/again")
async def run_simulation_again(session: WriteSession, agent_id: UUID, simulation_id: UUID, registry: Registry) -> Next:
    """Run the simulation again with the current version of the agent."""
    done = await simulations.get_simulation(session, agent_id, simulation_id)
    return await _start(
        session,
        registry,
        agent_id,
        SimulationCreate.model_validate(done.model_dump(include=set(SimulationCreate.model_fields))),
    )


async def _start(session: WriteSession, registry: Registry, agent_id: UUID, data: SimulationCreate) -> Next:
    simulation = await simulations.create_simulation(session, registry, agent_id, data)
    return go_to("simulation_page", agent_id=agent_id, simulation_id=simulation.id)


def _build_context(simulation: Simulation) -> dict[str, object]:
    return {
        "simulation": SimulationOut.model_validate(simulation),
        "spoken": [_line(entry) for entry in simulation.transcript.value],
    }


def _line(entry: dict[str, str]) -> dict[str, str]:
    """Return a transcript entry; a tool's name is separate from its arguments and result."""
    if entry["role"] != "tool":
        return entry
    tool_result: JsonObject = json.loads(entry["content"])
    name = str(tool_result.pop("tool", ""))
    return {
        **entry,
        "tool": name,
        "content": "\n".join(f"{part}: {json.dumps(value, ensure_ascii=False)}" for part, value in tool_result.items()),
    }
