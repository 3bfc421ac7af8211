"""Sign-in through the operator's identity provider, if one is configured."""

import hmac

from quart import current_app, redirect, request, url_for
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.pages.sign_in import get_safe_path, refuse_sign_in, start_session
from switchboard.apps.dashboard.sign_in_limits import count_address
from switchboard.apps.dashboard.viewer import BrowserSessions, is_https
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity import invitations
from switchboard.resources.identity.service import IdentityError
from switchboard.resources.identity.single_sign_on import Attempt, SingleSignOn, SingleSignOnFailed

EXTENSION = "switchboard.single_sign_on"
COOKIE, COOKIE_SECONDS = "single_sign_on", 600


def _provider(settings: Settings) -> SingleSignOn:
    """Return the identity provider, created once so that its keys and endpoints are fetched once. Raises `NotFound` if
    none is configured.
    """
    if not settings.oidc_issuer:
        raise NotFound(_("Single sign-on is not set up here."))
    provider: SingleSignOn = current_app.extensions.setdefault(EXTENSION, SingleSignOn(settings))
    return provider


def _callback(settings: Settings) -> str:
    return settings.base_url + url_for("dashboard.finish_single_sign_on")


@dashboard.get("/dashboard/sign-in/single-sign-on")
@inject
async def begin_single_sign_on(settings: Settings, keyring: KeyRing, limiter: RateLimiter) -> ResponseReturnValue:
    """Redirect the browser to the identity provider."""
    await count_address(limiter, "single-sign-on")
    try:
        url, attempt = await _provider(settings).begin(_callback(settings), get_safe_path(request.args.get("after")))
    except SingleSignOnFailed as failure:
        return await refuse_sign_in(str(failure))
    response = redirect(url, 303)
    sealed = attempt.seal(keyring)
    response.set_cookie(
        COOKIE,
        sealed,
        max_age=COOKIE_SECONDS,
        secure=is_https(settings),
        httponly=True,
        samesite="Lax",
        path="/dashboard/sign-in",
    )
    return response


@dashboard.get("/dashboard/sign-in/callback")
@inject
async def finish_single_sign_on(settings: Settings, keyring: KeyRing, sessions: BrowserSessions) -> ResponseReturnValue:
    """Finish the sign-in of the browser that started it, once, with a matching state."""
    attempt = Attempt.unseal(request.cookies.get(COOKIE, ""), keyring)
    if attempt is None or not hmac.compare_digest(attempt.state.encode(), request.args.get("state", "").encode()):
        message = _("This sign-in was started in another browser, or has expired. Try again.")
        return await refuse_sign_in(message)
    try:
        email = await _provider(settings).finish(_callback(settings), attempt, code=request.args.get("code", ""))
        user = await invitations.find_or_create_invited_user(sessions.database, email)
        response = await start_session(sessions, user, attempt.after)
    except (SingleSignOnFailed, IdentityError) as failure:
        return await refuse_sign_in(str(failure))
    response.delete_cookie(COOKIE, path="/dashboard/sign-in")
    return response
