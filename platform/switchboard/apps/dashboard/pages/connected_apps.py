"""Connected applications: list and disconnect. Owners see those of all users, members their own."""

from uuid import UUID

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import PageForbidden, Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.oauth import connections


@page("/dashboard/connected-apps")
async def connected_apps_page(session: ReadSession, viewer: Viewer) -> str:
    """List the applications, newest first."""
    owner_id = None if viewer.may_see("owner") else viewer.user.id
    found = await connections.list_connections(session, user_id=owner_id)
    return await render("dashboard/connected_apps.html", connections=found)


@action("/dashboard/connected-apps/<application_id>/<user_id>/disconnect", role="viewer")
async def disconnect_app(
    session: WriteSession, viewer: Viewer, application_id: UUID, user_id: UUID, limiter: RateLimiter
) -> Next:
    """Revoke an application's access for one user."""
    if user_id != viewer.user.id and not viewer.has_role("owner"):
        raise PageForbidden
    await connections.disconnect(session, limiter, application=application_id, user_id=user_id)
    return go_to("connected_apps_page", _("Application disconnected."), "warning")
