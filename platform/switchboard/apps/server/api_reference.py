"""`/openapi.json`, and `/docs`: the same as a page, rendered without scripts or foreign hosts."""

import re

from markupsafe import Markup, escape
from quart import Blueprint, Response, current_app, render_template

from switchboard.foundation.events.catalog import CATALOG, build_delivery_model
from switchboard.foundation.web.openapi import Json, WebhookEvent, build_document
from switchboard.runtime import current_runtime

blueprint = Blueprint("reference", __name__, template_folder="templates")
CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


@blueprint.app_template_filter("inline_code")
def inline_code(text: str | None) -> Markup:
    """Render the `code` in a description as HTML code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text or ""))))  # noqa: S704 - escaped just now


def openapi_document() -> Json:
    """Build the OpenAPI document of the running application."""
    events = [WebhookEvent(name, kind.__doc__ or "", build_delivery_model(kind)) for name, kind in CATALOG.items()]
    return build_document(current_app, server=current_runtime().settings.base_url, events=events)


@blueprint.get("/openapi.json")
async def openapi_json() -> Json:
    """Serve the OpenAPI 3.1 document."""
    return openapi_document()


@blueprint.get("/docs")
async def docs() -> Response:
    """Serve the API reference."""
    page = await render_template("reference.html", api=openapi_document())
    return Response(
        page, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY}, content_type="text/html; charset=utf-8"
    )
