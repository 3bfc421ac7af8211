"""The user's own account: password and sessions."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from pydantic import BaseModel

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.organization import LanguageChoice
from switchboard.apps.dashboard.sign_in_limits import PER_ACCOUNT, TOO_MANY_ATTEMPTS
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import Viewer, choose_page_language, record_in_current_organization
from switchboard.foundation.audit import AuditAction
from switchboard.foundation.database import Database, now
from switchboard.foundation.languages import LANGUAGES, set_language
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import RateLimited
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity import passwords, sign_in
from switchboard.resources.identity.models import User
from switchboard.resources.identity.passkeys import Passkeys
from switchboard.resources.identity.second_factors import SecondFactors
from switchboard.resources.identity.service import IdentityError

# Checked in this order: browsers based on Chromium also name Chrome and Safari.
PROGRAMS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)
RECENT: Final = timedelta(minutes=10)
"""Age of a browser session in which a user without a password is taken to have just signed in."""


class PasswordChange(BaseModel):
    """The current and the new password."""

    current: str = ""
    new: str


@page("/dashboard/account", role="user")
async def account_page(
    viewer: Viewer, form: Form, database: Database, factors: SecondFactors, passkeys: Passkeys
) -> str:
    """Show the account."""
    sessions = await sign_in.list_sessions(database, viewer.user.id)
    return await render(
        "dashboard/account/account.html",
        form=form,
        look=Form({"language": viewer.user.language}),
        languages=list(LANGUAGES.items()),
        passkeys=await passkeys.list_passkeys(viewer.user.id),
        sessions=[(one, name_browser(one.user_agent)) for one in sessions],
        second_factor=await factors.find(viewer.user.id),
        can_choose_password=bool(viewer.user.password_hash) or is_recent(viewer),
    )


def name_browser(user_agent: str) -> str:
    """Return a readable browser name, such as `Firefox on Linux`."""
    program = next((name for mark, name in PROGRAMS if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    return _("%(program)s on %(system)s", program=program, system=system) if program and system else user_agent[:60]


def is_recent(viewer: Viewer) -> bool:
    """Return whether the viewer has signed in within ten minutes."""
    return viewer.session.created_at > now() - RECENT


async def require_password(limiter: RateLimiter, user: User, password: str) -> None:
    """Raise `IdentityError` unless the password is the user's, before something is added that signs in later: a stolen
    session must not become a lasting key. Attempts are counted as on the sign-in page. Raises `RateLimited`.
    """
    if not (await limiter.check("password", f"user:{user.id}", PER_ACCOUNT)).allowed:
        raise RateLimited(_(TOO_MANY_ATTEMPTS))
    if not await passwords.verify_password(user.password_hash, password):
        raise IdentityError(_("The current password is wrong."))


@action("/dashboard/account/password", role="user", form=PasswordChange, invalid=account_page)
async def change_password(viewer: Viewer, data: PasswordChange, database: Database, limiter: RateLimiter) -> Next:
    """Change the password and end all other sessions. A user without one must have just signed in through the identity
    provider.
    """
    if viewer.user.password_hash:
        await require_password(limiter, viewer.user, data.current)
    elif not is_recent(viewer):
        raise IdentityError(_("Sign in again, and choose the password within ten minutes after that."))
    await sign_in.change_password(database, viewer.user, new=data.new, keep=viewer.session.id)
    await record_in_current_organization(database, viewer, AuditAction.USER_PASSWORD_CHANGED, viewer.user.id)
    return go_to("account_page", _("Password changed. All other sessions were signed out."))


@action("/dashboard/account/language", role="user", form=LanguageChoice, invalid=account_page)
async def choose_own_language(viewer: Viewer, data: LanguageChoice, database: Database) -> Next:
    """Save the user's language."""
    await sign_in.save_language(database, viewer.user.id, data.language)
    viewer.user.language = data.language
    set_language(choose_page_language(viewer))
    return go_to("account_page", _("Saved."))


@action("/dashboard/account/sessions/<session_id>/end", role="user")
async def end_session(viewer: Viewer, session_id: UUID, database: Database) -> Next:
    """End one session."""
    await sign_in.sign_out(database, viewer.user.id, only=session_id)
    await record_in_current_organization(database, viewer, AuditAction.USER_SESSIONS_ENDED, session_id)
    return go_to("account_page", _("The session was signed out."), "warning")


@action("/dashboard/account/sessions/end", role="user")
async def end_other_sessions(viewer: Viewer, database: Database) -> Next:
    """End all other sessions."""
    await sign_in.sign_out(database, viewer.user.id, but=viewer.session.id)
    await record_in_current_organization(database, viewer, AuditAction.USER_SESSIONS_ENDED, viewer.user.id)
    return go_to("account_page", _("All other sessions were signed out."), "warning")
