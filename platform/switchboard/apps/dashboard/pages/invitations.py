"""The page of an invitation: join as the signed-in user, or choose a password for a new account."""

from quart import Response, redirect, request, url_for
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.sign_in import ATTEMPTS, get_browser, redirect_signed_in
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import check_form, check_origin, count_attempt, find_viewer
from switchboard.foundation.web.errors import RateLimited
from switchboard.resources.identity import invitations, sign_in
from switchboard.resources.identity.service import IdentityError
from switchboard.runtime import current_runtime


@dashboard.get("/dashboard/invitations/<token>")
async def invitation_page(token: str) -> ResponseReturnValue:
    """Show an invitation."""
    return await _show(token, Form())


@dashboard.post("/dashboard/invitations/<token>")
async def accept_invitation(token: str) -> ResponseReturnValue:
    """Accept an invitation. A new user is signed in, in a new session."""
    check_origin()
    database, viewer = current_runtime().database, await find_viewer()
    try:
        if viewer is not None:
            await check_form(viewer)
            organization_id = (await invitations.get_offer(database, token)).organization.id
            await invitations.accept_invitation(database, token, as_user=viewer.user.id)
            await sign_in.enter_organization(database, viewer.user, viewer.session.id, organization_id)
            return redirect(url_for("dashboard.overview"), 303)
        user_id = await invitations.accept_invitation(
            database, token, password=(await request.form).get("password", "")
        )
    except IdentityError as refusal:
        return await _show(token, Form(message=str(refusal)))
    return redirect_signed_in(
        await sign_in.create_session_for(database, user_id, get_browser()), url_for("dashboard.overview")
    )


async def _show(token: str, form: Form) -> Response:
    if not (await count_attempt("invitation", get_browser().address, ATTEMPTS)).allowed:
        raise RateLimited("Too many attempts. Wait a moment, then try again.")
    await find_viewer()
    page = await render(
        "dashboard/team/invitation.html",
        form=form,
        offer=await invitations.get_offer(current_runtime().database, token),
    )
    return Response(page, 422 if form.message else 200, content_type="text/html; charset=utf-8")
