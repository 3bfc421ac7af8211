"""Audit entries of changes that belong to no organization: accounts of users, and applications."""

from collections.abc import Iterable

from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database


async def record_in_current_organization(
    database: Database, viewer: Viewer, action: AuditAction, subject: object, fields: Iterable[str] = ()
) -> None:
    """Record a change in the audit log of the viewer's current organization, if there is one."""
    if viewer.organization is None:
        return
    async with database.tenant(viewer.organization_id, actor=viewer.principal.actor) as session:
        record_audit(session, action, subject, fields=fields)
