"""The team: members, roles, invitations with their page, and the operator's support sessions."""

from uuid import UUID

from pydantic import Field
from quart import Response, redirect, request, url_for
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import Next, action, dashboard, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.sign_in import start_session
from switchboard.apps.dashboard.sign_in_limits import count_address
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import BrowserSessions, Viewer
from switchboard.foundation.database import Database, ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.principal import ROLES
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.foundation.web.schemas import RequestBody
from switchboard.resources.identity import invitations, members, sign_in, support
from switchboard.resources.identity.invitations import INVITATION_PATH, Inviter
from switchboard.resources.identity.members import Role
from switchboard.resources.identity.queries import list_invitations, list_members, list_support_sessions
from switchboard.resources.identity.service import IdentityError
from switchboard.resources.oauth.connections import revoke_after_commit
from switchboard.resources.oauth.queries import list_live_grants


class NewInvitation(RequestBody):
    """The e-mail address and role of an invitation."""

    email: str = Field(max_length=254)
    role: Role = "builder"


class RoleChange(RequestBody):
    role: Role


@page("/dashboard/team")
async def team_page(session: ReadSession, form: Form) -> str:
    """List the members, open invitations, and the operator's support sessions."""
    return await render(
        "dashboard/team/list.html",
        form=form,
        members=await list_members(session),
        roles=ROLES,
        invitations=await list_invitations(session),
        support_sessions=await list_support_sessions(session),
    )


@action("/dashboard/team", role="owner", invalid=team_page)
async def invite(viewer: Viewer, data: NewInvitation, inviter: Inviter) -> str:
    """Create an invitation, and send its link; show the link once if it cannot be sent."""
    sent = await inviter.invite(viewer.principal, email=data.email, role=data.role, invited_by=viewer.user.email)
    return await render("dashboard/team/invited.html", sent=sent)


@action("/dashboard/team/invitations/<invitation_id>/withdraw", role="owner")
async def withdraw_invitation(session: WriteSession, invitation_id: UUID) -> Next:
    await members.withdraw_invitation(session, invitation_id)
    return go_to("team_page", _("Invitation withdrawn."), "warning")


@action("/dashboard/team/<user_id>/role", role="owner")
async def change_role(session: WriteSession, user_id: UUID, data: RoleChange) -> Next:
    await members.change_member_role(session, user_id, data.role)
    return go_to("team_page", _("Role changed."))


@action("/dashboard/team/<user_id>/remove", role="owner")
async def remove_member(session: WriteSession, user_id: UUID, limiter: RateLimiter) -> Next:
    """Remove a member, and revoke the access that the member granted to applications."""
    grants = await list_live_grants(session, user_id)
    await members.remove_member(session, user_id)
    revoke_after_commit(session, limiter, grants)
    return go_to("team_page", _("Member removed."), "warning")


# Support sessions, as the organization that they are in sees them.


class SupportPolicy(RequestBody):
    allowed: bool


@action("/dashboard/support/leave")
async def leave_support_session(viewer: Viewer, database: Database) -> Next:
    """End the viewer's own support session."""
    if viewer.support is None:
        return go_to("overview")
    organization_id = viewer.organization_id
    await support.leave_support_session(database, viewer.support)
    return go_to("console_organization_page", _("You left."), organization_id=organization_id)


@action("/dashboard/support/policy", role="owner")
async def change_support_policy(session: WriteSession, data: SupportPolicy) -> Next:
    """Allow or forbid support sessions."""
    await support.allow_support(session, allowed=data.allowed)
    return go_to("team_page", _("Saved."))


@action("/dashboard/support/<support_session_id>/end", role="owner")
async def end_support_session(session: WriteSession, support_session_id: UUID) -> Next:
    await support.end_support_session(session, support_session_id)
    return go_to("team_page", _("The support session is over."), "warning")


# The page of an invitation: join as the signed-in user, or choose a password for a new account. An account whose
# address nobody has proven is replaced by a new one, whoever is signed in to it.


async def _show_invitation(database: Database, token: str, form: Form) -> Response:
    offer = await invitations.get_offer(database, token)
    page = await render("dashboard/team/invitation.html", form=form, offer=offer, admissions=invitations.Admission)
    return Response(page, 422 if form.message else 200)


@dashboard.get(f"{INVITATION_PATH}<token>")
@inject
async def invitation_page(token: str, sessions: BrowserSessions, limiter: RateLimiter) -> ResponseReturnValue:
    """Show an invitation. Requests are rate-limited as on the sign-in page."""
    await count_address(limiter, "invitation")
    await sessions.find_viewer()
    return await _show_invitation(sessions.database, token, Form())


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
        return await _show_invitation(sessions.database, token, Form(message=str(refusal)))
