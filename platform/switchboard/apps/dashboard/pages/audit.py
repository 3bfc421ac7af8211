"""The audit log: who changed what, and never a value. Owners only."""

from pydantic import Field

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.decorators import page
from switchboard.apps.dashboard.ui.actors import get_actor_names
from switchboard.apps.dashboard.ui.rendering import render, rows
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.identity import service as identity


class AuditQuery(PageQuery):
    """Entries of one actor or of one action."""

    actor: str = Field("", max_length=200)
    action: str = Field("", max_length=200)


@dashboard.get("/dashboard/audit")
@page(role="owner", query=AuditQuery)
async def audit_page(session: TenantSession, query: AuditQuery) -> str:
    """The entries, newest first; each name leads to all that it did."""
    entries = await rows(session, identity.list_audit_entries(session, actor=query.actor, action=query.action), query)
    names = await get_actor_names(session)
    return await render("dashboard/audit/list.html", entries=entries, query=query, names=names)
