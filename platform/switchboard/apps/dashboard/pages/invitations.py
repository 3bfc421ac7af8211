"""The page of an invitation: join as the signed-in user, or choose a password for a new account.

An account whose address nobody has proven is replaced by a new one, whoever is signed in to it.
"""

from quart import Response, redirect, request, url_for
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.sign_in import start_session
from switchboard.apps.dashboard.sign_in_limits import count_address
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import BrowserSessions
from switchboard.foundation.database import Database
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity import invitations, sign_in
from switchboard.resources.identity.invitations import INVITATION_PATH
from switchboard.resources.identity.service import IdentityError


async def _show(database: Database, token: str, form: Form) -> Response:
    offer = await invitations.get_offer(database, token)
    page = await render("dashboard/team/invitation.html", form=form, offer=offer, admissions=invitations.Admission)
    return Response(page, 422 if form.message else 200)


@dashboard.get(f"{INVITATION_PATH}<token>")
@inject
async def invitation_page(token: str, sessions: BrowserSessions, limiter: RateLimiter) -> ResponseReturnValue:
    """Show an invitation. Requests are rate-limited as on the sign-in page."""
    await count_address(limiter, "invitation")
    await sessions.find_viewer()
    return await _show(sessions.database, token, Form())


@dashboard.post(f"{INVITATION_PATH}<token>")
@inject
async def accept_invitation(token: str, sessions: BrowserSessions, limiter: RateLimiter) -> ResponseReturnValue:
    """Accept an invitation. The user of a new account is signed in, in a new session."""
    await count_address(limiter, "invitation")
    sessions.check_origin()
    viewer = await sessions.find_viewer()
    password = (await request.form).get("password", "")
    try:
        if viewer is not None:
            await sessions.check_form(viewer)
        organization_id = (await invitations.get_offer(sessions.database, token)).organization.id
        user = await invitations.accept_invitation(
            sessions.database, token, password=password, as_user=viewer.user.id if viewer else None
        )
        if viewer is not None and viewer.user.id == user.id:
            await sign_in.enter_organization(sessions.database, viewer.user, viewer.session.id, organization_id)
            return redirect(url_for("dashboard.overview"), 303)
        return await start_session(sessions, user, url_for("dashboard.overview"), organization_id=organization_id)
    except IdentityError as refusal:
        return await _show(sessions.database, token, Form(message=str(refusal)))
