"""Logos of organizations, for anybody who has the address: invitations and the widget's demo page show them, too."""

from uuid import UUID

from quart import Response

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.foundation.database import Database
from switchboard.foundation.web.pipeline import inject
from switchboard.resources.identity.logos import load_logo

FOREVER = "public, max-age=31536000, immutable"


@dashboard.get("/dashboard/logos/<uuid:organization_id>/<digest>")
@inject
async def organization_logo(organization_id: UUID, digest: str, database: Database) -> Response:
    """Serve a logo. Its address changes with its content; a browser that opens it alone runs nothing of it."""
    logo = await load_logo(database, organization_id, digest)
    response = Response(logo.content, content_type=logo.media_type)
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.headers["Cache-Control"] = FOREVER
    return response
