"""Agents: list, create (from a template, a file, or a copy), edit, pause, and delete."""

import json
import re
from collections.abc import Mapping
from uuid import UUID

from pydantic import Field, JsonValue
from quart import Response, request, url_for

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms import agent as forms
from switchboard.apps.dashboard.forms.form import Files, Form
from switchboard.apps.dashboard.pages.agents.form_page import AgentFormPage, AgentStartQuery, build_fresh_agent
from switchboard.apps.dashboard.ui.rendering import load_list, render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.offers import VoiceCatalog, list_offered_models
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import Conflict, ValidationFailed
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.foundation.web.schemas import PageQuery, Query
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.drafts import DraftEditor
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.permissions import may_set_receivers
from switchboard.resources.agents.portable import export_agent, read_agent_file
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.queries import select_agents
from switchboard.resources.agents.schemas import AgentCreate, AgentUpdate
from switchboard.resources.agents.templates import load_templates
from switchboard.resources.phone_numbers.queries import list_numbers_answered_by


class OfferQuery(Query):
    """The provider whose voices or models are requested."""

    provider: str = Field(max_length=255)


@page("/dashboard/agents")
async def agents_page(session: ReadSession, query: PageQuery) -> str:
    """List the agents with their phone numbers."""
    listing = await load_list(session, select_agents(session), query)
    reached = await list_numbers_answered_by(session, [agent.id for agent in listing.items])
    return await render("dashboard/agents/list.html", agents=listing, reached=reached)


@page("/dashboard/agents/new", role="builder")
async def new_agent_page(session: WriteSession, query: AgentStartQuery, form: Form, form_page: AgentFormPage) -> str:
    """Show the form of a new agent, with the defaults or a template filled in."""
    template = load_templates().get(query.template or "")
    shown = await build_fresh_agent(session)
    given: dict[str, object] = {}
    if query.knowledge_base_id is not None:
        given["knowledge_base_ids"] = [str(query.knowledge_base_id)]
    if template is not None:
        shown.name = template.name
        given |= {"greeting_message": template.greeting_message, "system_prompt": template.system_prompt}
    shown.settings = shown.settings.model_copy(update=given)
    return await form_page.render_new(session, form, shown, started_from=template)


@action("/dashboard/agents/new", invalid=new_agent_page)
async def add_agent(session: WriteSession, viewer: Viewer, fields: JsonObject, publisher: AgentPublisher) -> Next:
    shows_receivers = may_set_receivers(viewer.principal)
    with forms.read_agent_form(AgentCreate, fields, shows_receivers=shows_receivers) as data:
        agent = await publisher.create_agent(session, data, viewer.principal)
    return go_to(
        "agent_page", _("%(name)s was created. Test it before you take calls.", name=agent.name), agent_id=agent.id
    )


@page("/dashboard/agents/voices", role="builder")
async def voices_part(viewer: Viewer, query: OfferQuery, voices: VoiceCatalog) -> str:
    """Render a provider's voices as options of a field."""
    found = await voices.list_voices(viewer.organization_id, query.provider)
    return await render_part("dashboard/agents/voices.html", voices=found)


@page("/dashboard/agents/models", role="builder")
async def models_part(viewer: Viewer, query: OfferQuery, providers: Providers) -> str:
    """Render a provider's models as options of a field."""
    found = await list_offered_models(providers, viewer.organization_id, query.provider)
    return await render_part("dashboard/agents/models.html", models=found)


@page("/dashboard/agents/<agent_id>")
async def agent_page(session: ReadSession, agent_id: UUID, form: Form, *, form_page: AgentFormPage) -> str:
    """Show the settings of an agent, or of its draft."""
    return await form_page.render_agent(session, form, await get_row(session, Agent, agent_id))


@action("/dashboard/agents/<agent_id>", invalid=agent_page)
async def save_agent(
    session: WriteSession, viewer: Viewer, fields: JsonObject, agent_id: UUID, editor: DraftEditor
) -> Next:
    """Update an agent and publish it as a new version; a draft is gone with it."""
    seen, published = str(fields.get("seen_version", "")), await lock_row(session, Agent, agent_id)
    if seen and seen != str(published.version):
        # The form sends every field, and would undo the change.
        message = _(
            "Version %(version)s was published after you opened this page. See Versions for its changes. "
            "Save again to replace it.",
            version=published.version,
        )
        raise Conflict(message)
    with forms.read_agent_form(AgentUpdate, fields, shows_receivers=may_set_receivers(viewer.principal)) as data:
        agent = await editor.publish_update(session, agent_id, read_revision(fields), data, viewer.principal)
    return go_to(
        "agent_page", _("Version %(version)s is published. New calls use it.", version=agent.version), agent_id=agent_id
    )


@action("/dashboard/agents/<agent_id>/pause")
async def pause_agent(session: WriteSession, viewer: Viewer, agent_id: UUID, publisher: AgentPublisher) -> Next:
    """Pause an agent: it does not take or place calls."""
    agent = await publisher.update_agent(session, agent_id, AgentUpdate(status="paused"), viewer.principal)
    return Next(
        _came_from_list(agent_id), _("%(name)s is paused. It does not take or place calls.", name=agent.name), "warning"
    )


@action("/dashboard/agents/<agent_id>/activate")
async def activate_agent(session: WriteSession, viewer: Viewer, agent_id: UUID, publisher: AgentPublisher) -> Next:
    agent = await publisher.update_agent(session, agent_id, AgentUpdate(status="active"), viewer.principal)
    return Next(_came_from_list(agent_id), _("%(name)s is active.", name=agent.name))


@action("/dashboard/agents/<agent_id>/delete")
async def delete_agent(session: WriteSession, agent_id: UUID) -> Next:
    await agents.delete_agent(session, agent_id)
    return go_to("agents_page", _("Agent deleted. Its calls are kept."), "warning")


def read_revision(values: Mapping[str, JsonValue]) -> str | None:
    """Return the revision of the draft that the form shows; None if it shows none."""
    return str(values.get("seen_revision") or "") or None


def _came_from_list(agent_id: UUID) -> str:
    """Return the address of the page that the button was on: the list, or the agent."""
    from_list = request.headers.get("Referer", "").partition("?")[0].endswith(url_for("dashboard.agents_page"))
    return url_for("dashboard.agents_page") if from_list else url_for("dashboard.agent_page", agent_id=agent_id)


# Beginnings of new agents: templates, files, and copies.


NAME_CHARACTERS = 255
FILE_BYTES = 2 * 1024 * 1024


@page("/dashboard/agents/templates", role="builder")
async def agent_templates_page(form: Form, query: AgentStartQuery) -> str:
    """Show the templates, and the form of an import."""
    return await render("dashboard/agents/templates.html", form=form, query=query, templates=load_templates().values())


@action("/dashboard/agents/import", invalid=agent_templates_page)
async def import_agent(session: WriteSession, viewer: Viewer, files: Files, form_page: AgentFormPage) -> str:
    """Show the form of a new agent with the settings of a file. Nothing is saved until it is sent."""
    file = files.get("file")
    if file is None or not file.filename:
        raise ValidationFailed.field("file", _("Choose a file."))
    content = file.stream.read(FILE_BYTES + 1)
    if len(content) > FILE_BYTES:
        raise ValidationFailed.field("file", _("is larger than %(name)s MiB", name=FILE_BYTES // 2**20))
    data = read_agent_file(content)
    if not may_set_receivers(viewer.principal) and (data.tools or data.webhook_url):
        raise ValidationFailed.field("file", _("has tools or a webhook, which owners of the organization import"))
    shown = await build_fresh_agent(session)
    shown.name = data.name
    given = {name: value for name, value in data.list_given().items() if value is not None}
    shown.settings = shown.settings.model_copy(update=given)
    return await form_page.render_new(session, Form(), shown)


@page("/dashboard/agents/<agent_id>/export")
async def export_agent_file(session: ReadSession, agent_id: UUID) -> Response:
    agent = await get_row(session, Agent, agent_id)
    name = re.sub(r"[^A-Za-z0-9]+", "-", agent.name).strip("-").lower() or "agent"
    return Response(
        json.dumps(export_agent(agent), indent=2, ensure_ascii=False) + "\n",
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}.json"'},
    )


@action("/dashboard/agents/<agent_id>/duplicate")
async def duplicate_agent(session: WriteSession, viewer: Viewer, agent_id: UUID, publisher: AgentPublisher) -> Next:
    """Create a copy of an agent, with its knowledge bases and without its webhook secret."""
    agent = await get_row(session, Agent, agent_id)
    fields = {
        **export_agent(agent),
        "name": f"Copy of {agent.name}"[:NAME_CHARACTERS],
        "knowledge_base_ids": agent.settings.knowledge_base_ids,
        "appointment_type_ids": agent.settings.appointment_type_ids,
    }
    copy = await publisher.create_agent(session, AgentCreate.model_validate(fields), viewer.principal)
    if agent.timezone:
        await publisher.update_agent(session, copy.id, AgentUpdate(timezone=agent.timezone), viewer.principal)
    return go_to("agent_page", _("%(name)s was created.", name=copy.name), agent_id=copy.id)
