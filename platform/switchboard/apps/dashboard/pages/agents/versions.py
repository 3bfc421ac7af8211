"""An agent's versions: list, compare, and restore."""

import asyncio
from uuid import UUID

from pydantic import Field

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.pages.agents.form_page import list_reference_names
from switchboard.apps.dashboard.ui.actors import get_actor_names
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.apps.dashboard.ui.version_diff import compare_settings, list_changed_fields
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery, Query
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.models import Agent, AgentVersion
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.queries import select_versions


class CompareQuery(Query):
    """The version to compare with; by default the previous one."""

    to: int | None = Field(None, ge=1)


@page("/dashboard/agents/<agent_id>/versions")
async def versions_page(session: ReadSession, agent_id: UUID, query: PageQuery) -> str:
    """List the versions, newest first, with the fields that each changed."""
    agent = await get_row(session, Agent, agent_id)
    listing = await load_list(session, select_versions(session, agent_id), query)
    oldest = listing.items[-1].version if listing.items else 1
    before = await agents.get_version(session, agent_id, oldest - 1) if oldest > 1 else None
    earlier = [*listing.items[1:], before]
    changed = {
        new.version: list_changed_fields(old.settings, new.settings) if old else []
        for new, old in zip(listing.items, earlier, strict=False)
    }
    return await render(
        "dashboard/agents/versions.html",
        agent=agent,
        versions=listing,
        changed=changed,
        makers=await _makers(session, listing.items),
    )


@page("/dashboard/agents/<agent_id>/versions/<number>")
async def version_page(session: ReadSession, agent_id: UUID, number: str, query: CompareQuery) -> str:
    """Show the differences between a version and the previous or another one."""
    agent = await get_row(session, Agent, agent_id)
    shown = await agents.get_version(session, agent_id, _number(number))
    other = await agents.get_version(session, agent_id, query.to if query.to is not None else max(shown.version - 1, 1))
    old, new = sorted((shown, other), key=lambda version: version.version)
    names = await list_reference_names(session)
    return await render(
        "dashboard/agents/version.html",
        agent=agent,
        shown=shown,
        old=old,
        new=new,
        changes=await asyncio.to_thread(compare_settings, old.settings, new.settings, names),
        makers=await _makers(session, [shown]),
    )


@action("/dashboard/agents/<agent_id>/versions/<number>/restore")
async def restore_version(
    session: WriteSession, viewer: Viewer, agent_id: UUID, number: str, *, publisher: AgentPublisher
) -> Next:
    """Publish an old version again, as a new version."""
    old = _number(number)
    agent = await publisher.restore_version(session, agent_id, old, viewer.principal)
    return go_to(
        "agent_page",
        _("Version %(old)s was restored as version %(version)s.", old=old, version=agent.version),
        agent_id=agent_id,
    )


async def _makers(session: ReadSession, versions: list[AgentVersion]) -> dict[int, str]:
    """Return the name of the author of each version."""
    names = await get_actor_names(session)
    return {
        version.version: names.get(version.made_by or "", _("a former member") if version.made_by else "–")
        for version in versions
    }


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise NotFound
    return int(text)
