"""Users of the installation: search, end sessions, reset a second factor, and confirm an address."""

from uuid import UUID

from pydantic import Field

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.console.queries import ConsoleQueries
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.audit import AuditAction
from switchboard.foundation.database import Database
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.identity import sign_in
from switchboard.resources.identity.models import User
from switchboard.resources.identity.password_links import PasswordLinks
from switchboard.resources.identity.second_factors import SecondFactors


class UserQuery(PageQuery):
    """A part of an e-mail address."""

    search: str = Field("", max_length=254)


@page("/dashboard/console/users", role="superadmin", query=UserQuery)
async def console_users_page(queries: ConsoleQueries, query: UserQuery) -> str:
    """List or search the users, with their organizations."""
    users = await queries.list_users(query.search, query)
    memberships = await queries.list_memberships([user.id for user in users.items])
    return await render("dashboard/console/users.html", users=users, memberships=memberships, query=query)


@action("/dashboard/console/users/<account_id>/sign-out", role="superadmin")
async def sign_out_user(viewer: Viewer, account_id: UUID, queries: ConsoleQueries, database: Database) -> Next:
    """End all sessions of a user."""
    user = await queries.get(User, account_id)
    await sign_in.sign_out(database, user.id)
    await queries.record_for_user(user.id, viewer.operator, AuditAction.USER_SESSIONS_ENDED)
    return go_to(
        "console_users_page", _("%(email)s was signed out everywhere.", email=user.email), "warning", search=user.email
    )


@action("/dashboard/console/users/<account_id>/reset-second-factor", role="superadmin")
async def reset_user_second_factor(
    viewer: Viewer, account_id: UUID, queries: ConsoleQueries, factors: SecondFactors
) -> Next:
    """Let a user who has lost the second factor sign in with the password alone."""
    user = await queries.get(User, account_id)
    await factors.reset(user.email)
    await queries.record_for_user(user.id, viewer.operator, AuditAction.USER_SECOND_FACTOR_REMOVED)
    notice = _("%(email)s signs in with the password alone.", email=user.email)
    return go_to("console_users_page", notice, "warning", search=user.email)


@action("/dashboard/console/users/<account_id>/confirm", role="superadmin")
async def confirm_user(viewer: Viewer, account_id: UUID, queries: ConsoleQueries, links: PasswordLinks) -> str:
    """Confirm the address of a user, and show the link for a new password once."""
    user = await queries.get(User, account_id)
    link = await links.confirm(user.email, actor=viewer.operator)
    return await render("dashboard/console/confirmed_user.html", email=user.email, link=link)
