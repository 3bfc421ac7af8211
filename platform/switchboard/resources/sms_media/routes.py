"""Endpoint of files of text messages."""

from uuid import UUID

from quart import Blueprint, Response

from switchboard.foundation.web.endpoint import endpoint
from switchboard.foundation.web.errors import Unavailable
from switchboard.foundation.web.principal import Principal
from switchboard.resources.sms_media.responses import MediaResponder

blueprint = Blueprint("sms_media", __name__)


@blueprint.get("/v1/sms/media/<media_id>")
@endpoint(scope="sms:read", answer=None, media_types=("application/octet-stream",), errors=[Unavailable])
async def get_sms_media(principal: Principal, media_id: UUID, responder: MediaResponder) -> Response:
    """Get a file of a received message.

    The content type is the file's own. While the file is being fetched from the carrier, which takes seconds, the
    response is 503.
    """
    return await responder.respond(principal.organization_id, media_id, actor=principal.actor)
