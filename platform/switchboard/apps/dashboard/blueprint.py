"""The dashboard's blueprint: response headers, and errors as pages."""

from http import HTTPStatus

import structlog
from quart import Blueprint, Response, current_app, g, redirect, request, url_for
from quart.typing import ResponseReturnValue
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException

from switchboard.apps.dashboard.ui.rendering import install_filters, install_translations, render
from switchboard.apps.dashboard.viewer import (
    NoOrganization,
    NotSignedIn,
    Viewer,
    choose_page_language,
    get_sending_page,
)
from switchboard.foundation.keyring import SecretError
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.languages import set_language
from switchboard.foundation.web.errors import ApiError, NotFound, Unavailable
from switchboard.foundation.web.problems import translate_database_error, translate_http_error

logger = structlog.get_logger()
dashboard = Blueprint(
    "dashboard", __name__, template_folder="templates", static_folder="static", static_url_path="/dashboard/static"
)

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "media-src": "'self' blob:",
    "worker-src": "'self'",
    "manifest-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
"""The content security policy: nothing from other hosts, and no inline scripts or styles."""


def content_security_policy(**changed: str) -> str:
    """Return the header's value. A page that needs another directive names it with `_` for `-`."""
    changes = {name.replace("_", "-"): value for name, value in changed.items()}
    return "; ".join(f"{name} {value}" for name, value in {**POLICY, **changes}.items())


install_filters(dashboard)
install_translations(dashboard)


@dashboard.before_request
async def choose_browser_language() -> None:
    """Use the browser's language until the viewer is known."""
    set_language(choose_page_language(None))


@dashboard.after_request
async def set_security_headers(response: Response) -> Response:
    """Set the headers of every response. The referrer policy is `same-origin`: with `no-referrer`, browsers would not
    send the origin of the dashboard's own forms.
    """
    response.headers.setdefault("Content-Security-Policy", content_security_policy())
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers["Permissions-Policy"] = "microphone=(self), camera=(), geolocation=()"
    if request.endpoint not in ("dashboard.static", "dashboard.client_sdk", "dashboard.organization_logo"):
        response.headers["Cache-Control"] = "no-store"
    return response


@dashboard.errorhandler(NotSignedIn)
async def to_sign_in(error: NotSignedIn) -> ResponseReturnValue:
    """Redirect to the sign-in page, and from there to the requested page, or to the page whose form was sent."""
    after = request.full_path.rstrip("?") if request.method == "GET" else get_sending_page()
    return redirect(url_for("dashboard.sign_in_page", after=after or None), HTTPStatus.SEE_OTHER)


@dashboard.errorhandler(NoOrganization)
async def to_console(error: NoOrganization) -> ResponseReturnValue:
    """Redirect a superadmin who has entered no organization to the operator console; show others the error."""
    viewer: Viewer | None = g.get("viewer")
    if viewer is None or not viewer.has_role("superadmin"):
        return await show_error(error)
    return redirect(url_for("dashboard.console_page"), HTTPStatus.SEE_OTHER)


@dashboard.errorhandler(ApiError)
async def show_error(error: ApiError) -> ResponseReturnValue:
    """Show any other API error as a page."""
    page = await render("dashboard/error.html", title=_(error.title), detail=_(error.detail), status=error.status)
    return Response(page, error.status, error.headers)


@dashboard.errorhandler(HTTPException)
async def show_http_error(error: HTTPException) -> ResponseReturnValue:
    """Show an error that the framework raised, such as 404 for an unknown file."""
    return await show_error(translate_http_error(error))


@dashboard.errorhandler(SQLAlchemyError)
async def show_database_error(error: SQLAlchemyError) -> ResponseReturnValue:
    """Show that the database cannot be reached, or that it refused a value."""
    return await show_error(translate_database_error(error))


@dashboard.errorhandler(SecretError)
async def show_missing_key(_error: SecretError) -> ResponseReturnValue:
    """Show that this process lacks the key of a text. The log has which one."""
    logger.exception("a key that the page needs is missing")
    return await show_error(Unavailable())


@dashboard.errorhandler(Exception)
async def show_crash(error: Exception) -> ResponseReturnValue:
    """Show an internal error without details. The log has them, by the request's id."""
    if current_app.testing:
        raise error
    logger.exception("page failed")
    return await show_error(ApiError())


@dashboard.get("/")
async def front_door() -> ResponseReturnValue:
    """Redirect the server's root to the dashboard."""
    return redirect(url_for("dashboard.overview"), HTTPStatus.SEE_OTHER)


@dashboard.get("/dashboard/<path:nowhere>")
async def nowhere(nowhere: str) -> ResponseReturnValue:
    """Show an error for any other address."""
    raise NotFound(_("The page /dashboard/%(nowhere)s does not exist.", nowhere=nowhere))
