"""Sign-in through the operator's identity provider, if one is configured."""

import hmac

from quart import Response, current_app, redirect, request, url_for
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.sign_in import ATTEMPTS, get_browser, get_safe_path, redirect_signed_in
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import count_attempt, is_https
from switchboard.foundation.web.errors import NotFound, RateLimited
from switchboard.resources.identity import invitations, sign_in
from switchboard.resources.identity.service import IdentityError
from switchboard.resources.identity.single_sign_on import Attempt, SingleSignOn, SingleSignOnFailed
from switchboard.runtime import current_runtime

EXTENSION = "switchboard.single_sign_on"
COOKIE, COOKIE_SECONDS = "single_sign_on", 600


def _provider() -> SingleSignOn:
    """Return the identity provider, created once so that its keys and endpoints are fetched once. Raises `NotFound` if
    none is configured.
    """
    settings = current_runtime().settings
    if not settings.oidc_issuer:
        raise NotFound("Single sign-on is not set up here.")
    provider: SingleSignOn = current_app.extensions.setdefault(EXTENSION, SingleSignOn(settings))
    return provider


def _callback() -> str:
    return current_runtime().settings.base_url + url_for("dashboard.finish_single_sign_on")


@dashboard.get("/dashboard/sign-in/single-sign-on")
async def begin_single_sign_on() -> ResponseReturnValue:
    """Redirect the browser to the identity provider."""
    if not (await count_attempt("single-sign-on", get_browser().address, ATTEMPTS)).allowed:
        raise RateLimited("Too many attempts. Wait a moment, then try again.")
    try:
        url, attempt = await _provider().begin(_callback(), get_safe_path(request.args.get("after")))
    except SingleSignOnFailed as failure:
        return await _refuse(str(failure))
    response = redirect(url, 303)
    sealed = attempt.seal(current_runtime().keyring)
    response.set_cookie(
        COOKIE,
        sealed,
        max_age=COOKIE_SECONDS,
        secure=is_https(),
        httponly=True,
        samesite="Lax",
        path="/dashboard/sign-in",
    )
    return response


@dashboard.get("/dashboard/sign-in/callback")
async def finish_single_sign_on() -> ResponseReturnValue:
    """Finish the sign-in of the browser that started it, once, with a matching state."""
    attempt = Attempt.unseal(request.cookies.get(COOKIE, ""), current_runtime().keyring)
    if attempt is None or not hmac.compare_digest(attempt.state.encode(), request.args.get("state", "").encode()):
        return await _refuse("This sign-in was started in another browser, or has expired. Try again.")
    try:
        email = await _provider().finish(_callback(), attempt, code=request.args.get("code", ""))
        user_id = await invitations.find_or_create_invited_user(current_runtime().database, email)
    except (SingleSignOnFailed, IdentityError) as failure:
        return await _refuse(str(failure))
    response = redirect_signed_in(
        await sign_in.create_session_for(current_runtime().database, user_id, get_browser()), attempt.after
    )
    response.delete_cookie(COOKIE, path="/dashboard/sign-in")
    return response


async def _refuse(message: str) -> Response:
    page = await render("dashboard/sign_in.html", form=Form(message=message), after="/dashboard")
    return Response(page, 422, content_type="text/html; charset=utf-8")
