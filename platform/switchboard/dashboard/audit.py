"""The audit log: who changed what, and never a value. Owners only."""

from pydantic import Field
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.dashboard.actors import actor_names
from switchboard.dashboard.blueprint import dashboard
from switchboard.dashboard.pages import page
from switchboard.dashboard.rendering import render, rows
from switchboard.dashboard.visitor import Visitor
from switchboard.identity import service as identity
from switchboard.web.schemas import PageQuery


class AuditQuery(PageQuery):
    """Entries of one actor or of one action."""

    actor: str = Field("", max_length=200)
    action: str = Field("", max_length=200)


@dashboard.get("/dashboard/audit")
@page(role="owner", query=AuditQuery)
async def audit_page(session: AsyncSession, visitor: Visitor, query: AuditQuery) -> str:
    """The entries, newest first; each name leads to all that it did."""
    entries = await rows(session, identity.audit_entries(session, actor=query.actor, action=query.action), query)
    names = await actor_names(session, visitor.organization_id)
    return await render("dashboard/audit/list.html", entries=entries, query=query, names=names)
