"""Support sessions, as the organization that they are in sees them."""

from uuid import UUID

from switchboard.apps.dashboard.blueprint import Next, action, go_to
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import Database, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.schemas import RequestBody
from switchboard.resources.identity import support


class SupportPolicy(RequestBody):
    """Permission for support sessions."""

    allowed: bool


@action("/dashboard/support/leave")
async def leave_support_session(viewer: Viewer, database: Database) -> Next:
    """End the viewer's own support session."""
    if viewer.support is None:
        return go_to("overview")
    organization_id = viewer.organization_id
    await support.leave_support_session(database, viewer.support)
    return go_to("console_organization_page", _("You left."), organization_id=organization_id)


@action("/dashboard/support/policy", role="owner", form=SupportPolicy)
async def change_support_policy(session: WriteSession, data: SupportPolicy) -> Next:
    """Allow or forbid support sessions."""
    await support.allow_support(session, allowed=data.allowed)
    return go_to("team_page", _("Saved."))


@action("/dashboard/support/<support_session_id>/end", role="owner")
async def end_support_session(session: WriteSession, support_session_id: UUID) -> Next:
    """End a support session."""
    await support.end_support_session(session, support_session_id)
    return go_to("team_page", _("The support session is over."), "warning")
