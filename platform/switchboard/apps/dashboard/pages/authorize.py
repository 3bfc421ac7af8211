"""The OAuth consent page."""

from urllib.parse import urlsplit

from quart import Response, redirect, request
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import content_security_policy, dashboard, show_error
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import BrowserSessions
from switchboard.foundation.database import Database
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import ApiError
from switchboard.foundation.web.openapi import AUTHORIZE
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.principal import SCOPES, get_role_scopes
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.identity import sign_in
from switchboard.resources.oauth import consent
from switchboard.resources.oauth.consent import RedirectedError, RequestRefused


class NotConnected(ApiError):
    """400: an authorization request whose error only the user sees."""

    status, code, title = 400, "invalid_request", "This application cannot be connected"


@dashboard.errorhandler(RequestRefused)
async def show_refusal(refusal: RequestRefused) -> ResponseReturnValue:
    """Show the error to the user, without redirecting."""
    return await show_error(
        NotConnected(_("The application sent a request that cannot be granted: %(refusal)s", refusal=refusal))
    )


@dashboard.errorhandler(RedirectedError)
async def send_back(error: RedirectedError) -> ResponseReturnValue:
    """Redirect to the application with the error, once the user has signed in (RFC 9700 section 4.11.2).

    Browsers apply the policy of a form's page to every redirect after it, and the sign-in page allows no other host, so
    that a page of its own leads from there to the application.
    """
    if request.method == "GET" and request.headers.get("Sec-Fetch-Site") == "same-origin":
        page = await render("dashboard/sent_back.html", location=error.location, host=urlsplit(error.location).netloc)
        return Response(page)
    return redirect(error.location, 303)


@dashboard.get(AUTHORIZE)
@inject
async def authorize_page(settings: Settings, database: Database, sessions: BrowserSessions) -> ResponseReturnValue:
    """Show the requested scopes and the organizations to choose from."""
    viewer = await sessions.require_viewer()
    consent_request = await consent.examine_request(database, settings.base_url, request.args.items(multi=True))
    organizations = await sign_in.list_user_organizations(database, viewer.user)
    roles = {role for _, role in organizations}
    everywhere = frozenset(SCOPES).intersection(*map(get_role_scopes, roles))
    anywhere = frozenset[str]().union(*map(get_role_scopes, roles))
    given = [scope for scope in consent_request.scopes if scope in anywhere]
    chosen = {"organization_id": str(viewer.organization.id) if viewer.organization else ""}
    page = await render(
        "dashboard/authorize.html",
        form=Form(chosen),
        application=consent_request.application,
        host=urlsplit(consent_request.redirect_uri).netloc,
        scopes=[(scope, SCOPES[scope]) for scope in given],
        beyond_role=[scope for scope in consent_request.scopes if scope not in everywhere],
        organizations=[(str(organization.id), organization.name) for organization, _ in organizations],
    )
    policy = content_security_policy(form_action=f"'self' {_get_form_target(consent_request.redirect_uri)}")
    return Response(page, headers={"Content-Security-Policy": policy})


@dashboard.post(AUTHORIZE)
@inject
async def decide(settings: Settings, database: Database, sessions: BrowserSessions) -> ResponseReturnValue:
    """Redirect the user to the application with a code, or with the refusal."""
    viewer = await sessions.require_viewer()
    await sessions.check_form(viewer)
    fields, parameters = await request.form, list(request.args.items(multi=True))
    if fields.get("decision") != "approve":
        return redirect(await consent.decline_request(database, settings.base_url, parameters), 303)
    organization_id = parse_id(fields.get("organization_id", ""))
    if organization_id is None:
        raise RequestRefused(_("Choose an organization."))
    return redirect(
        await consent.approve_request(
            database, settings.base_url, parameters, user_id=viewer.user.id, organization_id=organization_id
        ),
        303,
    )


def _get_form_target(redirect_uri: str) -> str:
    """Return the source expression of the addresses that the form may lead to.

    Browsers apply it to every redirect after the form, and applications redirect to other hosts of theirs, so that all
    of HTTPS is allowed. Plain HTTP is only allowed on the user's machine; a policy cannot name an IPv6 address.
    """
    url = urlsplit(redirect_uri)
    return f"http://{url.netloc}" if url.scheme == "http" and "[" not in url.netloc else f"{url.scheme}:"
