"""Signing in and out, by password, passkey, or identity provider; forgotten passwords; and choosing an organization."""

import hmac
import re
import secrets
from dataclasses import asdict
from typing import Final
from uuid import UUID

from quart import Response, current_app, jsonify, redirect, request, url_for
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.sign_in_limits import TOO_MANY_ATTEMPTS, SignInLimits, count_address, digest_email
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import BrowserSessions, Cookie, get_sending_page
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.mail import Mailer
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound, RateLimited
from switchboard.foundation.web.openapi import AUTHORIZE
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter, build_rate_limit_headers
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.identity import invitations, sign_in
from switchboard.resources.identity.models import User
from switchboard.resources.identity.passkeys import CHALLENGE_SECONDS, Passkeys
from switchboard.resources.identity.password_links import LINK_PATH, PasswordLinks
from switchboard.resources.identity.second_factors import SecondFactors
from switchboard.resources.identity.service import IdentityError
from switchboard.resources.identity.single_sign_on import Attempt, SingleSignOn, SingleSignOnFailed


def get_safe_path(text: str | None) -> str:
    """Return the page to open after sign-in: a dashboard page, or the overview for any other address."""
    return text if text and re.fullmatch(r"/(dashboard|oauth/authorize)([/?][!-\[\]-~]*)?", text) else "/dashboard"


@dashboard.get("/dashboard/sign-in")
@inject
async def sign_in_page(sessions: BrowserSessions) -> ResponseReturnValue:
    """Show the sign-in form; redirect a signed-in user."""
    after = get_safe_path(request.args.get("after"))
    if await sessions.find_viewer() is not None:
        return redirect(after, 303)
    return await render("dashboard/sign_in/sign_in.html", form=Form(), after=after)


@dashboard.post("/dashboard/sign-in")
@inject
async def sign_in_now(sessions: BrowserSessions, limits: SignInLimits, factors: SecondFactors) -> ResponseReturnValue:
    """Start a new session and ignore the browser's cookie, against session fixation; ask for a code before if the user
    has a second factor.
    """
    sessions.check_origin()
    fields = await request.form
    after, email, password = get_safe_path(fields.get("after")), fields.get("email", ""), fields.get("password", "")
    limit, verdict = await limits.count_attempt(email)
    if not verdict.allowed:
        refused = await refuse_sign_in(_(TOO_MANY_ATTEMPTS), after, status=429)
        refused.headers.update(build_rate_limit_headers(limit, verdict))
        return refused
    try:
        user = await sign_in.verify_user(sessions.database, email, password)
        if await factors.find(user.id) is not None:
            response = await show_code_form(Form(), factors.prove_password(user), after)
        else:
            response = await start_session(sessions, user, after)
    except IdentityError as refusal:
        return await refuse_sign_in(str(refusal), after, email=email)
    await limits.uncount_attempt(email)
    limits.remember_browser(response, email)
    return response


async def refuse_sign_in(message: str, after: str = "/dashboard", *, email: str = "", status: int = 422) -> Response:
    """Show the sign-in form with the reason why a sign-in was refused."""
    form = Form({"email": email}, message=message)
    return Response(await render("dashboard/sign_in/sign_in.html", form=form, after=after), status)


async def show_code_form(form: Form, proof: str, after: str) -> Response:
    """Show the form for the code of a second factor."""
    page = await render("dashboard/sign_in/code.html", form=form, proof=proof, after=after)
    return Response(page, 422 if form.message else 200)


@dashboard.post("/dashboard/sign-in/code")
@inject
async def sign_in_with_code(
    sessions: BrowserSessions, limits: SignInLimits, factors: SecondFactors
) -> ResponseReturnValue:
    """Start a session for a user who has just given the right password, with a code of the second factor."""
    sessions.check_origin()
    await count_address(limits.limiter, "sign-in")
    fields = await request.form
    after, proof = get_safe_path(fields.get("after")), fields.get("proof", "")
    try:
        user = await factors.read_proof(proof)
    except IdentityError as refusal:
        return await refuse_sign_in(str(refusal), after)
    try:
        await limits.count_code(user.id)
        await factors.check(user.id, fields.get("code", ""))
        response = await start_session(sessions, user, after)
    except (IdentityError, RateLimited) as refusal:
        return await show_code_form(Form(message=str(refusal)), proof, after)
    await limits.uncount_code(user.id)
    return response


async def start_session(
    sessions: BrowserSessions, user: User, after: str, *, organization_id: UUID | None = None
) -> Response:
    """Start a session as `create_session` does; return the response that sets its cookie and redirects."""
    address, user_agent = request.remote_addr or "", request.headers.get("User-Agent", "")
    token = await sign_in.create_session(
        sessions.database, user, address=address, user_agent=user_agent, organization_id=organization_id
    )
    response = Response("", 303, {"Location": after})
    sessions.cookie.set(response, token, sessions.settings)
    return response


@dashboard.post("/dashboard/sign-out")
@inject
async def sign_out_now(sessions: BrowserSessions) -> ResponseReturnValue:
    """End this browser's session. A user who signs out on the consent page returns to it after signing in again."""
    viewer = await sessions.require_viewer()
    await sessions.check_form(viewer)
    await sign_in.sign_out(sessions.database, viewer.user.id, only=viewer.session.id)
    sending_page = get_sending_page()
    after = sending_page if sending_page.startswith(f"{AUTHORIZE}?") else None
    response = Response("", 303, {"Location": url_for("dashboard.sign_in_page", after=after)})
    sessions.cookie.delete(response, sessions.settings)
    response.headers["Clear-Site-Data"] = '"cache", "storage"'  # everything that the browser has stored for this site
    return response


@dashboard.get("/dashboard/organizations")
@inject
async def organizations_page(sessions: BrowserSessions) -> ResponseReturnValue:
    viewer = await sessions.require_viewer()
    return await render(
        "dashboard/organizations.html",
        organizations=await sign_in.list_user_organizations(sessions.database, viewer.user),
    )


@dashboard.post("/dashboard/organizations/<organization_id>")
@inject
async def enter_organization(organization_id: str, sessions: BrowserSessions) -> ResponseReturnValue:
    """Switch to another organization."""
    viewer = await sessions.require_viewer()
    await sessions.check_form(viewer)
    if (entered := parse_id(organization_id)) is None:
        raise NotFound
    await sign_in.enter_organization(sessions.database, viewer.user, viewer.session.id, entered)
    return redirect(url_for("dashboard.overview"), 303)


# Signing in with a passkey.


PASSKEY_COOKIE: Final = Cookie("switchboard-passkey", CHALLENGE_SECONDS, "/dashboard/sign-in/passkey", "Strict")


@dashboard.get("/dashboard/sign-in/passkey")
@inject
async def begin_passkey_sign_in(sessions: BrowserSessions, passkeys: Passkeys) -> ResponseReturnValue:
    """Return the request for a passkey, for the sign-in page's script, and bind it to this browser by a cookie."""
    browser = PASSKEY_COOKIE.read() or secrets.token_urlsafe(32)
    response = jsonify(asdict(passkeys.begin_sign_in(browser)))
    PASSKEY_COOKIE.set(response, browser, sessions.settings)
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
            PASSKEY_COOKIE.read(), credential=fields.get("credential", ""), state=fields.get("state", "")
        )
        response = await start_session(sessions, user, after)
    except (IdentityError, RateLimited) as refusal:
        return await refuse_sign_in(str(refusal), after, status=429 if isinstance(refusal, RateLimited) else 422)
    limits.remember_browser(response, user.email)
    return response


# Signing in through the operator's identity provider, if one is configured.


EXTENSION = "switchboard.single_sign_on"
PROVIDER_COOKIE = Cookie("single_sign_on", 600, "/dashboard/sign-in")


def _get_identity_provider(settings: Settings) -> SingleSignOn:
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
        url, attempt = await _get_identity_provider(settings).begin(
            _callback(settings), get_safe_path(request.args.get("after"))
        )
    except SingleSignOnFailed as failure:
        return await refuse_sign_in(str(failure))
    response = redirect(url, 303)
    PROVIDER_COOKIE.set(response, attempt.seal(keyring), settings)
    return response


@dashboard.get("/dashboard/sign-in/callback")
@inject
async def finish_single_sign_on(settings: Settings, keyring: KeyRing, sessions: BrowserSessions) -> ResponseReturnValue:
    """Finish the sign-in of the browser that started it, once, with a matching state."""
    attempt = Attempt.unseal(PROVIDER_COOKIE.read(), keyring)
    if attempt is None or not hmac.compare_digest(attempt.state.encode(), request.args.get("state", "").encode()):
        message = _("This sign-in was started in another browser, or has expired. Try again.")
        return await refuse_sign_in(message)
    try:
        email = await _get_identity_provider(settings).finish(
            _callback(settings), attempt, code=request.args.get("code", "")
        )
        user = await invitations.find_or_create_invited_user(sessions.database, email)
        response = await start_session(sessions, user, attempt.after)
    except (SingleSignOnFailed, IdentityError) as failure:
        return await refuse_sign_in(str(failure))
    PROVIDER_COOKIE.delete(response, settings)
    return response


# Users who forgot their password ask for a link by e-mail, and choose a new password.


LINK_PURPOSE = "password-link"
"""Name of the limits: requests are rate-limited as on the sign-in page."""
LINKS_PER_ACCOUNT = Limit(per_second=1 / 900, burst=3)
"""Three e-mails, then one every 15 minutes. Further requests get the same page, and no e-mail is sent."""


@dashboard.get("/dashboard/forgotten-password")
@inject
async def forgotten_password_page(mailer: Mailer) -> ResponseReturnValue:
    """Show the form that asks for a link, or where else to get one."""
    return await _show_link_request(mailer)


@dashboard.post("/dashboard/forgotten-password")
@inject
async def request_password_link(
    sessions: BrowserSessions, mailer: Mailer, links: PasswordLinks, limiter: RateLimiter
) -> ResponseReturnValue:
    """Send a link to a user. The page, and the time that it takes, are the same for an unknown address, and e-mails to
    it are counted, too.
    """
    await count_address(limiter, LINK_PURPOSE)
    sessions.check_origin()
    email = (await request.form).get("email", "")
    if mailer.is_set_up and (await limiter.check(LINK_PURPOSE, digest_email(email), LINKS_PER_ACCOUNT)).allowed:
        await links.request(email)
    return await _show_link_request(mailer, asked_for=email)


async def _show_link_request(mailer: Mailer, asked_for: str = "") -> str:
    return await render(
        "dashboard/sign_in/forgotten_password.html", form=Form(), sends_mail=mailer.is_set_up, asked_for=asked_for
    )


async def _show_password_form(links: PasswordLinks, token: str, form: Form) -> Response:
    email = await links.find_email(token)
    page = await render("dashboard/sign_in/new_password.html", form=form, email=email, is_changed=False)
    return Response(page, 422 if form.message else 200)


@dashboard.get(f"{LINK_PATH}<token>")
@inject
async def new_password_page(token: str, links: PasswordLinks, limiter: RateLimiter) -> ResponseReturnValue:
    """Show the form for a new password."""
    await count_address(limiter, LINK_PURPOSE)
    return await _show_password_form(links, token, Form())


@dashboard.post(f"{LINK_PATH}<token>")
@inject
async def choose_password(
    token: str, sessions: BrowserSessions, links: PasswordLinks, limiter: RateLimiter
) -> ResponseReturnValue:
    """Change the password, which proves the address. The user then signs in with the password, so that the link alone
    gives no session.
    """
    await count_address(limiter, LINK_PURPOSE)
    sessions.check_origin()
    try:
        await links.change_password(token, (await request.form).get("password", ""))
    except IdentityError as refusal:
        return await _show_password_form(links, token, Form(message=str(refusal)))
    return await render("dashboard/sign_in/new_password.html", form=Form(), email="", is_changed=True)
