"""An agent's draft: save, compare, test, and discard."""

import asyncio
from dataclasses import asdict
from uuid import UUID

from pydantic import ValidationError
from quart import Response, jsonify

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms import agent as forms
from switchboard.apps.dashboard.pages.agents.agents import agent_page, read_revision
from switchboard.apps.dashboard.pages.agents.form_page import list_reference_names
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.ui.version_diff import compare_settings
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.plugin_sdk import JsonObject
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents import drafts
from switchboard.resources.agents.drafts import DraftEditor
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.permissions import may_set_receivers
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.schemas import AgentChanges, AgentUpdate
from switchboard.resources.simulations import service as simulations
from switchboard.resources.simulations.chat import AgentChat, ChatMessage


@action("/dashboard/agents/<agent_id>/draft", invalid=agent_page)
async def save_draft(
    session: WriteSession, viewer: Viewer, fields: JsonObject, agent_id: UUID, editor: DraftEditor
) -> Next:
    if fields.pop("webhook_secret", None):
        raise ValidationFailed.field("webhook_secret", _("A draft keeps no secret. Publish to change it."))
    with forms.read_agent_form(AgentChanges, fields, shows_receivers=may_set_receivers(viewer.principal)) as data:
        await editor.save_draft(session, agent_id, read_revision(fields), data, viewer.principal)
    return go_to(
        "agent_page", _("Draft saved. Calls use the published version until you publish it."), agent_id=agent_id
    )


@page("/dashboard/agents/<agent_id>/draft")
async def draft_page(session: ReadSession, agent_id: UUID) -> str:
    """Show the differences between the draft and the published agent."""
    agent, draft = await get_row(session, Agent, agent_id), await drafts.get_draft(session, agent_id)
    old, new = agent.list_fields(), drafts.build_drafted_agent(agent, draft).list_fields()
    names = await list_reference_names(session)
    return await render(
        "dashboard/agents/draft.html",
        agent=agent,
        draft=draft,
        changes=await asyncio.to_thread(compare_settings, old, new, names),
    )


@action("/dashboard/agents/<agent_id>/draft/discard")
async def discard_draft(session: WriteSession, agent_id: UUID) -> Next:
    await drafts.discard_draft(session, agent_id)
    return go_to("agent_page", _("The draft was discarded."), "warning", agent_id=agent_id)


@action("/dashboard/agents/<agent_id>/draft/simulations")
async def simulate_draft(session: WriteSession, agent_id: UUID, registry: Registry) -> Next:
    """Run the required simulations with the draft."""
    agent, draft = await get_row(session, Agent, agent_id), await drafts.get_draft(session, agent_id)
    missing = await simulations.run_required_simulations(session, registry, agent, draft)
    notice = (
        _("Write a text simulation named %(missing)s first.", missing=", ".join(missing))
        if missing
        else _("The simulations run.")
    )
    return go_to("simulations_page", notice, agent_id=agent_id)


@action("/dashboard/agents/<agent_id>/chat", for_script=True)
async def chat_with_agent(
    viewer: Viewer, agent_id: UUID, fields: JsonObject, publisher: AgentPublisher, chat: AgentChat
) -> Response:
    """Return the answer of the agent, with the settings of the form, which need not be saved."""
    try:
        message = ChatMessage.model_validate_json(str(fields.get("chat", "")))
    except ValidationError as error:
        raise ValidationFailed.from_error(error) from None
    with forms.read_agent_form(AgentUpdate, fields, shows_receivers=may_set_receivers(viewer.principal)) as data:
        async with chat.database.write(viewer.organization_id) as session:
            agent = (await get_row(session, Agent, agent_id)).build_copy()
            await publisher.apply_changes(session, agent, data, viewer.principal)
    return jsonify(asdict(await chat.answer(agent, message)))
