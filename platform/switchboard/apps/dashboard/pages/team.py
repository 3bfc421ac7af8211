"""The team: members, roles, and invitations."""

from uuid import UUID

from pydantic import Field

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.principal import ROLES
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.foundation.web.schemas import RequestBody
from switchboard.resources.identity import members
from switchboard.resources.identity.invitations import Inviter
from switchboard.resources.identity.members import Role
from switchboard.resources.identity.queries import list_invitations, list_members, list_support_sessions
from switchboard.resources.oauth.connections import revoke_after_commit
from switchboard.resources.oauth.queries import list_live_grants


class NewInvitation(RequestBody):
    """The e-mail address and role of an invitation."""

    email: str = Field(max_length=254)
    role: Role = "builder"


class RoleChange(RequestBody):
    """A member's new role."""

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


@action("/dashboard/team", role="owner", form=NewInvitation, invalid=team_page)
async def invite(viewer: Viewer, data: NewInvitation, inviter: Inviter) -> str:
    """Create an invitation, and send its link; show the link once if it cannot be sent."""
    sent = await inviter.invite(viewer.principal, email=data.email, role=data.role, invited_by=viewer.user.email)
    return await render("dashboard/team/invited.html", sent=sent)


@action("/dashboard/team/invitations/<invitation_id>/withdraw", role="owner")
async def withdraw_invitation(session: WriteSession, invitation_id: UUID) -> Next:
    """Withdraw an invitation."""
    await members.withdraw_invitation(session, invitation_id)
    return go_to("team_page", _("Invitation withdrawn."), "warning")


@action("/dashboard/team/<user_id>/role", role="owner", form=RoleChange)
async def change_role(session: WriteSession, user_id: UUID, data: RoleChange) -> Next:
    """Change a member's role."""
    await members.change_member_role(session, user_id, data.role)
    return go_to("team_page", _("Role changed."))


@action("/dashboard/team/<user_id>/remove", role="owner")
async def remove_member(session: WriteSession, user_id: UUID, limiter: RateLimiter) -> Next:
    """Remove a member, and revoke the access that the member granted to applications."""
    grants = await list_live_grants(session, user_id)
    await members.remove_member(session, user_id)
    revoke_after_commit(session, limiter, grants)
    return go_to("team_page", _("Member removed."), "warning")
