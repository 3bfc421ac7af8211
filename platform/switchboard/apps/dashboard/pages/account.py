"""The user's own account: password, sessions, passkeys, and second factor."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Final
from uuid import UUID

import segno
from pydantic import BaseModel, StringConstraints
from quart import Response, jsonify

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.organization import LanguageChoice
from switchboard.apps.dashboard.sign_in_limits import PER_ACCOUNT, TOO_MANY_ATTEMPTS, SignInLimits
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
    current: str = ""
    new: str


@page("/dashboard/account", role="user")
async def account_page(
    viewer: Viewer, form: Form, database: Database, factors: SecondFactors, passkeys: Passkeys
) -> str:
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


@action("/dashboard/account/password", role="user", invalid=account_page)
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


@action("/dashboard/account/language", role="user", invalid=account_page)
async def choose_own_language(viewer: Viewer, data: LanguageChoice, database: Database) -> Next:
    await sign_in.save_language(database, viewer.user.id, data.language)
    viewer.user.language = data.language
    set_language(choose_page_language(viewer))
    return go_to("account_page", _("Saved."))


@action("/dashboard/account/sessions/<session_id>/end", role="user")
async def end_session(viewer: Viewer, session_id: UUID, database: Database) -> Next:
    await sign_in.sign_out(database, viewer.user.id, only=session_id)
    await record_in_current_organization(database, viewer, AuditAction.USER_SESSIONS_ENDED, session_id)
    return go_to("account_page", _("The session was signed out."), "warning")


@action("/dashboard/account/sessions/end", role="user")
async def end_other_sessions(viewer: Viewer, database: Database) -> Next:
    await sign_in.sign_out(database, viewer.user.id, but=viewer.session.id)
    await record_in_current_organization(database, viewer, AuditAction.USER_SESSIONS_ENDED, viewer.user.id)
    return go_to("account_page", _("All other sessions were signed out."), "warning")


# Passkeys.


class NewPasskey(BaseModel):
    """The browser's new credential with the state of its request, and the password that allows it."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
    password: str
    credential: str
    state: str


@page("/dashboard/account/passkeys/request", role="user")
async def begin_passkey(viewer: Viewer, passkeys: Passkeys) -> Response:
    """Return the request for a new passkey, for the script of `new_passkey_page`."""
    return jsonify(asdict(await passkeys.begin_registration(viewer.user, viewer.session.id)))


@page("/dashboard/account/passkeys/new", role="user")
async def new_passkey_page(viewer: Viewer, form: Form, passkeys: Passkeys) -> str:
    form = form.starting_with({"name": name_browser(viewer.session.user_agent)})
    return await render("dashboard/account/new_passkey.html", form=form, fault=passkeys.fault)


@action("/dashboard/account/passkeys/new", role="user", invalid=new_passkey_page)
async def add_passkey(viewer: Viewer, data: NewPasskey, passkeys: Passkeys, limiter: RateLimiter) -> Next:
    """Add a passkey. The password is asked for."""
    await require_password(limiter, viewer.user, data.password)
    added = await passkeys.add(
        viewer.user, viewer.session.id, name=data.name, credential=data.credential, state=data.state
    )
    await record_in_current_organization(passkeys.database, viewer, AuditAction.USER_PASSKEY_ADDED, added.id)
    return go_to("account_page", _("The passkey was added. Sign in with it from now on."))


@action("/dashboard/account/passkeys/<passkey_id>/remove", role="user")
async def remove_passkey(viewer: Viewer, passkey_id: UUID, passkeys: Passkeys) -> Next:
    await passkeys.remove(viewer.user.id, passkey_id)
    await record_in_current_organization(passkeys.database, viewer, AuditAction.USER_PASSKEY_REMOVED, passkey_id)
    return go_to("account_page", _("The passkey was removed."), "warning")


# The second factor.


class NewApp(BaseModel):
    """The secret that the page has shown, a code with which the app proves that it keeps it, and the password that
    allows it.
    """

    secret: str
    code: str
    password: str


class FactorRemoval(BaseModel):
    """A code of the app, or a recovery code."""

    code: str


@page("/dashboard/account/second-factor", role="user")
async def second_factor_page(viewer: Viewer, form: Form, factors: SecondFactors) -> str:
    """Show the second factor, or a new secret for an app."""
    if (factor := await factors.find(viewer.user.id)) is not None:
        return await render("dashboard/account/second_factor.html", form=form, factor=factor)
    secret, url = factors.begin(viewer.user, str(form.value("secret", "")))
    return await render(
        "dashboard/account/new_second_factor.html",
        form=form,
        secret=secret,
        qr_code=segno.make(url).svg_data_uri(scale=5, border=2, light="#fff"),
    )


@action("/dashboard/account/second-factor", role="user", invalid=second_factor_page)
async def add_second_factor(
    viewer: Viewer, database: Database, data: NewApp, factors: SecondFactors, limiter: RateLimiter
) -> str:
    """Store the app, and show the recovery codes once. The password is asked for, as for a passkey."""
    if not viewer.user.password_hash:
        raise IdentityError(_("You sign in through your identity provider, which has second factors of its own."))
    await require_password(limiter, viewer.user, data.password)
    codes = await factors.add(viewer.user, data.secret, data.code)
    await record_in_current_organization(database, viewer, AuditAction.USER_SECOND_FACTOR_ADDED, viewer.user.id)
    return await render("dashboard/account/recovery_codes.html", codes=codes)


@action("/dashboard/account/second-factor/remove", role="user", invalid=second_factor_page)
async def remove_second_factor(
    viewer: Viewer, database: Database, data: FactorRemoval, factors: SecondFactors, limits: SignInLimits
) -> Next:
    """Remove the app. Codes are counted as on the sign-in page."""
    await limits.count_code(viewer.user.id)
    await factors.remove(viewer.user.id, data.code)
    await limits.uncount_code(viewer.user.id)
    await record_in_current_organization(database, viewer, AuditAction.USER_SECOND_FACTOR_REMOVED, viewer.user.id)
    return go_to("account_page", _("The second factor was removed."), "warning")
