"""Signing in and out, and choosing an organization."""

import re
from uuid import UUID

from quart import Response, redirect, request, url_for
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.sign_in_limits import TOO_MANY_ATTEMPTS, SignInLimits, count_address
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import BrowserSessions, get_sending_page
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import NotFound, RateLimited
from switchboard.foundation.web.openapi import AUTHORIZE
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.rate_limits import build_rate_limit_headers
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.identity import sign_in
from switchboard.resources.identity.models import User
from switchboard.resources.identity.second_factors import SecondFactors
from switchboard.resources.identity.service import IdentityError


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
    sessions.set_cookie(response, token)
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
    sessions.delete_cookie(response)
    return response


@dashboard.get("/dashboard/organizations")
@inject
async def organizations_page(sessions: BrowserSessions) -> ResponseReturnValue:
    """List the user's organizations."""
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
