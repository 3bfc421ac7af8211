"""`/docs` with everything below it, and `/openapi.json`: anybody may read them."""

from quart import Blueprint, Response, request

from switchboard.apps.dashboard.blueprint import content_security_policy
from switchboard.apps.docs.docs_site import DocsSite
from switchboard.foundation.web.pipeline import inject

blueprint = Blueprint(
    "docs", __name__, template_folder="templates", static_folder="static", static_url_path="/docs/static"
)


@blueprint.get("/docs", defaults={"page": ""})
@blueprint.get("/docs/<path:page>")
@blueprint.get("/openapi.json", defaults={"page": "openapi.json"})
@inject
async def show_documentation(page: str, site: DocsSite) -> Response:
    """Serve a page of the documentation, the index of its search, or the OpenAPI document."""
    found = await site.find(request.path, request.cookies.get("theme", ""))
    accepted = request.accept_encodings.best_match(["gzip"]) is not None
    body = found.compressed if accepted else None
    response = Response(body or found.plain, found.status, content_type=found.media_type)
    if body:
        response.headers["Content-Encoding"] = "gzip"
    response.set_etag(found.entity_tag, weak=True)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["Vary"] = "Accept-Encoding, Cookie"
    response.headers["Content-Security-Policy"] = content_security_policy()
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    if found.status == 200:
        await response.make_conditional(request)
    return response
