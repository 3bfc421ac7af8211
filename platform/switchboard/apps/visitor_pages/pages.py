"""The widget's script, its frame, and its demo page (docs/decisions/0082-website-widgets.md)."""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from quart import Blueprint, Response, redirect, render_template, request, send_file, url_for
from quart.typing import ResponseReturnValue

from switchboard.apps.visitor_pages.labels import choose_language, translate_labels
from switchboard.foundation.database import Database
from switchboard.foundation.web.errors import ApiError, Forbidden, NotFound
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.pipeline import inject
from switchboard.resources.agents.models import Agent
from switchboard.resources.identity.models import Organization
from switchboard.resources.widgets.models import Widget
from switchboard.resources.widgets.origins import is_allowed_origin
from switchboard.resources.widgets.service import get_public_widget
from switchboard.resources.widgets.visitors import build_greeting

blueprint = Blueprint(
    "visitor_pages", __name__, template_folder="templates", static_folder="static", static_url_path="/widget/static"
)
SCRIPT: Final = Path(__file__).parent / "static" / "js" / "v1.js"
SCRIPT_SECONDS: Final = 3600
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "media-src 'self' blob:; worker-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'"
)


@blueprint.get("/widget/v1.js")
async def script() -> Response:
    """Serve the script that pages include. Browsers keep it for an hour."""
    response = await send_file(SCRIPT, mimetype="text/javascript", conditional=True)
    response.headers["Cache-Control"] = f"public, max-age={SCRIPT_SECONDS}"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


@blueprint.get("/widget/<public_key>/frame")
@inject
async def frame(public_key: str, database: Database) -> ResponseReturnValue:
    """Serve the widget, for frames of the allowed sites only."""
    if request.headers.get("Sec-Fetch-Dest") == "document":
        return redirect(url_for("visitor_pages.demo", public_key=public_key))
    widget, agent = await _find(database, public_key)
    page = urlsplit(request.headers.get("Referer", ""))
    origin = f"{page.scheme}://{page.netloc}"
    if page.netloc not in ("", request.host) and not is_allowed_origin(widget.allowed_origins, origin):
        raise Forbidden(f"Add {origin} to the origins that may show the widget.")
    language = choose_language(widget, request.args.get("language", ""))
    shown = await render_template(
        "visitor_pages/frame.html",
        widget=widget,
        labels=translate_labels(language),
        language=language,
        title=widget.title or agent.name,
        greeting=widget.greeting or build_greeting(agent),
    )
    ancestors = " ".join(["'self'", *widget.allowed_origins])
    return _respond(shown, f"{POLICY}; frame-ancestors {ancestors}")


@blueprint.get("/demo/<public_key>")
@inject
async def demo(public_key: str, database: Database) -> Response:
    """Serve the widget's demo page, which needs no site."""
    widget, agent = await _find(database, public_key)
    if not widget.demo_enabled:
        raise NotFound("The demo page of this widget is turned off.")
    async with database.read(widget.organization_id) as session:
        organization = await session.get_one(Organization, widget.organization_id)
    language = choose_language(widget)
    shown = await render_template(
        "visitor_pages/demo.html",
        widget=widget,
        organization=organization,
        labels=translate_labels(language),
        language=language,
        title=widget.title or agent.name,
    )
    return _respond(shown, f"{POLICY}; frame-ancestors 'none'")


async def _find(database: Database, public_key: str) -> tuple[Widget, Agent]:
    """Return a widget and its agent. Raises `NotFound`."""
    widget = await get_public_widget(database, public_key)
    async with database.read(widget.organization_id) as session:
        return widget, await get_row(session, Agent, widget.agent_id)


@blueprint.errorhandler(ApiError)
async def show_visitor_error(error: ApiError) -> Response:
    """Show an error as a page."""
    shown = await render_template("visitor_pages/error.html", title=error.title, detail=error.detail)
    return _respond(shown, f"{POLICY}; frame-ancestors 'none'", error.status)


def _respond(shown: str, policy: str, status: int = 200) -> Response:
    headers = {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
        "Cache-Control": "no-store",
        "X-Robots-Tag": "noindex",
    }
    return Response(shown, status, headers)
