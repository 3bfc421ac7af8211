"""Agents: list, create, edit, pause, and delete."""

from typing import Final
from uuid import UUID
from zoneinfo import available_timezones

from pydantic import Field
from quart import request, url_for

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.decorators import Next, action, page
from switchboard.apps.dashboard.forms import agent as forms
from switchboard.apps.dashboard.forms.form import Form, nest_fields
from switchboard.apps.dashboard.ui.rendering import load_list, render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.engine.providers.extensions import Extensions
from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.offers import list_offered_models
from switchboard.engine.providers.service import list_provider_names
from switchboard.engine.providers.voices import VoiceCatalog
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import Conflict
from switchboard.foundation.web.schemas import PageQuery, Query
from switchboard.plugin_sdk import AgentTool, PrivateDataDetector
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.permissions import may_set_receivers
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.redaction import list_kinds
from switchboard.resources.agents.schemas import AgentCreate, AgentUpdate
from switchboard.resources.agents.tools import list_tool_names
from switchboard.resources.disclosure.presets import load_presets
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.phone_numbers import service as numbers

LANGUAGES: Final = (
    "de-DE",
    "en-AU",
    "en-GB",
    "en-IN",
    "en-US",
    "es-ES",
    "es-MX",
    "fr-CA",
    "fr-FR",
    "it-IT",
    "ja-JP",
    "nl-NL",
    "pl-PL",
    "pt-BR",
    "sv-SE",
)
"""Suggestions; an agent accepts any language."""


class OfferQuery(Query):
    """The provider whose voices or models are requested."""

    provider: str = Field(max_length=255)


@dashboard.get("/dashboard/agents")
@page(query=PageQuery)
async def agents_page(session: TenantSession, query: PageQuery) -> str:
    """List the agents with their phone numbers."""
    listing = await load_list(session, agents.list_agents(session), query)
    reached = await numbers.list_numbers_answered_by(session, [agent.id for agent in listing.items])
    return await render("dashboard/agents/list.html", agents=listing, reached=reached)


@dashboard.get("/dashboard/agents/new")
@page(role="builder")
async def new_agent_page(session: TenantSession, form: Form, voices: VoiceCatalog, extensions: Extensions) -> str:
    """Show the form of a new agent, with the defaults filled in."""
    fresh = Agent(organization_id=session.organization_id, name="", llm_provider="", tts_provider="", stt_provider="")
    for field, capability in agents.PROVIDER_FIELDS.items():
        setattr(fresh, field, next(iter(await list_provider_names(session, capability)), ""))
    form = form.starting_with(forms.agent_to_form(fresh))
    return await _form_page(
        session, voices, form, None, tools=list_tool_names(extensions.registry, fresh), extensions=extensions
    )


@dashboard.post("/dashboard/agents/new")
@action(invalid=new_agent_page)
async def add_agent(session: TenantSession, viewer: Viewer, publisher: AgentPublisher) -> Next:
    """Create an agent."""
    shows_receivers = may_set_receivers(viewer.principal)
    with forms.read_agent_form(AgentCreate, nest_fields(await request.form), shows_receivers=shows_receivers) as data:
        agent = await publisher.create_agent(session, data, viewer.principal)
    return Next(
        url_for("dashboard.agent_page", agent_id=agent.id), f"{agent.name} was created. Test it before you take calls."
    )


@dashboard.get("/dashboard/agents/voices")
@page(role="builder", query=OfferQuery)
async def voices_part(viewer: Viewer, query: OfferQuery, voices: VoiceCatalog) -> str:
    """Render a provider's voices as options of a field."""
    found = await voices.list_voices(viewer.organization_id, query.provider)
    return await render_part("dashboard/agents/voices.html", voices=found)


@dashboard.get("/dashboard/agents/models")
@page(role="builder", query=OfferQuery)
async def models_part(viewer: Viewer, query: OfferQuery, providers: Providers) -> str:
    """Render a provider's models as options of a field."""
    found = await list_offered_models(providers, viewer.organization_id, query.provider)
    return await render_part("dashboard/agents/models.html", models=found)


@dashboard.get("/dashboard/agents/<agent_id>")
@page()
async def agent_page(
    session: TenantSession, agent_id: UUID, form: Form, *, voices: VoiceCatalog, extensions: Extensions
) -> str:
    """Show the settings of an agent."""
    agent = await agents.get_agent(session, agent_id)
    form = form.starting_with(forms.agent_to_form(agent))
    return await _form_page(
        session, voices, form, agent, tools=list_tool_names(extensions.registry, agent), extensions=extensions
    )


@dashboard.post("/dashboard/agents/<agent_id>")
@action(invalid=agent_page)
async def save_agent(session: TenantSession, viewer: Viewer, agent_id: UUID, publisher: AgentPublisher) -> Next:
    """Update an agent and publish it as a new version."""
    values = nest_fields(await request.form)
    _refuse_overwriting(await agents.get_agent(session, agent_id, lock=True), str(values.get("seen_version", "")))
    with forms.read_agent_form(AgentUpdate, values, shows_receivers=may_set_receivers(viewer.principal)) as data:
        agent = await publisher.update_agent(session, agent_id, data, viewer.principal)
    return Next(
        url_for("dashboard.agent_page", agent_id=agent_id),
        f"Version {agent.version} is published. New calls use it.",
    )


@dashboard.post("/dashboard/agents/<agent_id>/pause")
@action()
async def pause_agent(session: TenantSession, viewer: Viewer, agent_id: UUID, publisher: AgentPublisher) -> Next:
    """Pause an agent: it does not take or place calls."""
    agent = await publisher.update_agent(session, agent_id, AgentUpdate(status="paused"), viewer.principal)
    return Next(_came_from_list(agent_id), f"{agent.name} is paused. It does not take or place calls.")


@dashboard.post("/dashboard/agents/<agent_id>/activate")
@action()
async def activate_agent(session: TenantSession, viewer: Viewer, agent_id: UUID, publisher: AgentPublisher) -> Next:
    """Activate a paused agent."""
    agent = await publisher.update_agent(session, agent_id, AgentUpdate(status="active"), viewer.principal)
    return Next(_came_from_list(agent_id), f"{agent.name} is active.")


@dashboard.post("/dashboard/agents/<agent_id>/delete")
@action()
async def delete_agent(session: TenantSession, agent_id: UUID) -> Next:
    """Delete an agent permanently."""
    await agents.delete_agent(session, agent_id)
    return Next(url_for("dashboard.agents_page"), "Agent deleted. Its calls are kept.")


def _refuse_overwriting(agent: Agent, seen_version: str) -> None:
    """Raise `Conflict` if the agent has changed since the form was opened: the form sends every field, and would undo
    the change.
    """
    if seen_version and seen_version != str(agent.version):
        raise Conflict(
            f"Version {agent.version} was published after you opened this page. See Versions for its changes. "
            "Save again to replace it."
        )


def _came_from_list(agent_id: UUID) -> str:
    """Return the address of the page that the button was on: the list, or the agent."""
    from_list = request.headers.get("Referer", "").partition("?")[0].endswith(url_for("dashboard.agents_page"))
    return url_for("dashboard.agents_page") if from_list else url_for("dashboard.agent_page", agent_id=agent_id)


async def _form_page(
    session: TenantSession,
    voices: VoiceCatalog,
    form: Form,
    agent: Agent | None,
    *,
    tools: list[str],
    extensions: Extensions,
) -> str:
    offered = {
        field: _with(await list_provider_names(session, capability), form.value(field))
        for field, capability in agents.PROVIDER_FIELDS.items()
    }
    speaker = str(form.value("tts_provider", ""))
    return await render(
        "dashboard/agents/edit.html",
        form=form,
        agent=agent,
        offered=offered,
        preset_names=[(name, preset.jurisdiction) for name, preset in load_presets().items()],
        tool_names=[(name, name) for name in tools],
        reasons=await extensions.list_reasons(session, AgentTool),
        kinds=await _list_offered_kinds(session, extensions, agent),
        bases=await knowledge.resolve_knowledge_bases(session, None),
        models={
            field: await agents.list_models_in_use(session, field) for field in ("llm_model", "tts_model", "stt_model")
        },
        voices=await voices.list_voices(session.organization_id, speaker) if speaker in offered["tts_provider"] else (),
        languages=LANGUAGES,
        zones=sorted(available_timezones()),
    )


async def _list_offered_kinds(
    session: TenantSession, extensions: Extensions, agent: Agent | None
) -> list[tuple[str, str]]:
    """List the kinds of private data that can be redacted, and those that the agent redacts, with their titles."""
    chosen = agent.redaction["kinds"] if agent is not None and agent.redaction else ()
    missing = (await extensions.list_reasons(session, PrivateDataDetector)).keys() - set(chosen)
    return [(kind, title) for kind, title in list_kinds(extensions.registry).items() if kind not in missing]


def _with(names: list[str], chosen: object) -> list[str]:
    """Add the chosen provider to the options: an agent may name a provider that was removed."""
    return [*names, str(chosen)] if chosen and chosen not in names else names
