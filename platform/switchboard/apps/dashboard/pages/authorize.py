"""The consent page: an application asks, the user decides."""

from urllib.parse import urlsplit

from quart import Response, redirect, request
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import content_security_policy, dashboard, show_error
from switchboard.apps.dashboard.decorators import HTML
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import check_form, current_viewer
from switchboard.foundation.web.errors import ApiError
from switchboard.foundation.web.openapi import AUTHORIZE
from switchboard.foundation.web.principal import OWNERS_SCOPES, SCOPES
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.identity import sign_in
from switchboard.resources.oauth import consent
from switchboard.resources.oauth.consent import RedirectedError, RequestRefused
from switchboard.runtime import current_runtime


class NotConnected(ApiError):
    """400: a request that is answered to nobody but the user."""

    status, code, title = 400, "invalid_request", "This application cannot be connected"


@dashboard.errorhandler(RequestRefused)
async def show_refusal(refusal: RequestRefused) -> ResponseReturnValue:
    """The user learns why, and goes nowhere."""
    return await show_error(NotConnected(f"It sent you here with a request that cannot be granted: {refusal}"))


@dashboard.errorhandler(RedirectedError)
async def send_back(error: RedirectedError) -> ResponseReturnValue:
    """The application learns why, once the user has signed in (RFC 9700 section 4.11.2). Browsers hold each redirect after a form to the policy of
    the form's page, and the sign-in's lets nobody else be reached: from there a page leads on."""
    if request.method == "GET" and request.headers.get("Sec-Fetch-Site") == "same-origin":
        page = await render("dashboard/sent_back.html", location=error.location, host=urlsplit(error.location).netloc)
        return Response(page, content_type=HTML)
    return redirect(error.location, 303)


@dashboard.get(AUTHORIZE)
async def authorize_page() -> ResponseReturnValue:
    """What the application asks for, and in which organization it may have it."""
    viewer = await current_viewer()
    database = current_runtime().database
    asked = await consent.examine_request(database, current_runtime().settings.base_url, request.args.items(multi=True))
    organizations = await sign_in.list_user_organizations(database, viewer.user)
    roles = {role for _, role in organizations}
    only_owners = [scope for scope in asked.scopes if scope in OWNERS_SCOPES] if roles - {"owner"} else []
    given = asked.scopes if "owner" in roles else [scope for scope in asked.scopes if scope not in OWNERS_SCOPES]
    chosen = {"organization_id": str(viewer.organization.id) if viewer.organization else ""}
    page = await render(
        "dashboard/authorize.html",
        form=Form(chosen),
        application=asked.application,
        host=urlsplit(asked.redirect_uri).netloc,
        scopes=[(scope, SCOPES[scope]) for scope in given],
        only_owners=only_owners,
        organizations=[(str(organization.id), organization.name) for organization, _ in organizations],
    )
    policy = content_security_policy(form_action=f"'self' {_reached(asked.redirect_uri)}")
    return Response(page, headers={"Content-Security-Policy": policy}, content_type=HTML)


@dashboard.post(AUTHORIZE)
async def decide() -> ResponseReturnValue:
    """Send the user back to the application with a code, or with the news that there is none."""
    viewer = await current_viewer()
    await check_form(viewer)
    fields, parameters = await request.form, list(request.args.items(multi=True))
    database, issuer = current_runtime().database, current_runtime().settings.base_url
    if fields.get("decision") != "approve":
        return redirect(await consent.decline_request(database, issuer, parameters), 303)
    organization_id = parse_id(fields.get("organization_id", ""))
    if organization_id is None:
        raise RequestRefused("No organization was chosen.")
    return redirect(
        await consent.approve_request(
            database, issuer, parameters, user_id=viewer.user.id, organization_id=organization_id
        ),
        303,
    )


def _reached(redirect_uri: str) -> str:
    """Where the form may lead. Browsers hold every redirect after it to this, and applications lead on to pages of theirs on other hosts; so all of
    https. Plain http is on this machine, and a policy has no way to name an IPv6 address."""
    url = urlsplit(redirect_uri)
    return f"http://{url.netloc}" if url.scheme == "http" and "[" not in url.netloc else f"{url.scheme}:"
