"""The audit log, for owners: actors, actions, and subjects, without values."""

from pydantic import Field

from switchboard.apps.dashboard.blueprint import page
from switchboard.apps.dashboard.ui.actors import get_actor_names
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.foundation.database import ReadSession
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.identity.queries import select_audit_entries


class AuditQuery(PageQuery):
    """Filters: one actor, one action."""

    actor: str = Field("", max_length=200)
    action: str = Field("", max_length=200)


@page("/dashboard/audit", role="owner")
async def audit_page(session: ReadSession, query: AuditQuery) -> str:
    """List the entries, newest first. Actors and actions link to their entries."""
    entries = await load_list(session, select_audit_entries(session, actor=query.actor, action=query.action), query)
    names = await get_actor_names(session)
    return await render("dashboard/audit/list.html", entries=entries, query=query, names=names)
