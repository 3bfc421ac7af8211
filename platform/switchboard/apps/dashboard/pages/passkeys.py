"""Passkeys: adding and removing those of one's account, and signing in with one."""

import secrets
from dataclasses import asdict
from typing import Annotated, Final
from uuid import UUID

from pydantic import BaseModel, StringConstraints
from quart import Response, jsonify, request
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import Next, action, dashboard, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.account import name_browser, require_password
from switchboard.apps.dashboard.pages.sign_in import get_safe_path, refuse_sign_in, start_session
from switchboard.apps.dashboard.sign_in_limits import SignInLimits, count_address
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import BrowserSessions, Viewer, is_https, record_in_current_organization
from switchboard.foundation.audit import AuditAction
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import RateLimited
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity.passkeys import CHALLENGE_SECONDS, Passkeys
from switchboard.resources.identity.service import IdentityError

COOKIE: Final = "switchboard-passkey"


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
    """Show the form for a new passkey."""
    form = form.starting_with({"name": name_browser(viewer.session.user_agent)})
    return await render("dashboard/account/new_passkey.html", form=form, fault=passkeys.fault)


@action("/dashboard/account/passkeys/new", role="user", form=NewPasskey, invalid=new_passkey_page)
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
    """Remove a passkey."""
    await passkeys.remove(viewer.user.id, passkey_id)
    await record_in_current_organization(passkeys.database, viewer, AuditAction.USER_PASSKEY_REMOVED, passkey_id)
    return go_to("account_page", _("The passkey was removed."), "warning")


@dashboard.get("/dashboard/sign-in/passkey")
@inject
async def begin_passkey_sign_in(sessions: BrowserSessions, passkeys: Passkeys) -> ResponseReturnValue:
    """Return the request for a passkey, for the sign-in page's script, and bind it to this browser by a cookie."""
    browser = request.cookies.get(COOKIE) or secrets.token_urlsafe(32)
    response = jsonify(asdict(passkeys.begin_sign_in(browser)))
    response.set_cookie(
        COOKIE,
        browser,
        max_age=CHALLENGE_SECONDS,
        secure=is_https(sessions.settings),
        httponly=True,
        samesite="Strict",
        path="/dashboard/sign-in/passkey",
    )
    return response


@dashboard.post("/dashboard/sign-in/passkey")
@inject
async def sign_in_with_passkey(
    sessions: BrowserSessions, limits: SignInLimits, passkeys: Passkeys
) -> ResponseReturnValue:
    """Start a session for the user of a passkey. No code is asked for: the authenticator has verified the user."""
    sessions.check_origin()
    fields = await request.form
    after = get_safe_path(fields.get("after"))
    try:
        await count_address(limits.limiter, "sign-in")
        user = await passkeys.verify_sign_in(
            request.cookies.get(COOKIE, ""), credential=fields.get("credential", ""), state=fields.get("state", "")
        )
        response = await start_session(sessions, user, after)
    except (IdentityError, RateLimited) as refusal:
        return await refuse_sign_in(str(refusal), after, status=429 if isinstance(refusal, RateLimited) else 422)
    limits.remember_browser(response, user.email)
    return response
