"""Beginnings of new agents: templates, files, and copies."""

import json
import re
from uuid import UUID

from quart import Response

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Files, Form
from switchboard.apps.dashboard.pages.agents.form_page import AgentFormPage, AgentStartQuery, build_fresh_agent
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.permissions import may_set_receivers
from switchboard.resources.agents.portable import export_agent, read_agent_file
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.schemas import AgentCreate, AgentUpdate
from switchboard.resources.agents.templates import load_templates

NAME_CHARACTERS = 255
FILE_BYTES = 2 * 1024 * 1024


@page("/dashboard/agents/templates", role="builder", query=AgentStartQuery)
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
