"""Endpoint of files of text messages."""

from uuid import UUID

from quart import Blueprint, Response

from switchboard.foundation.web.endpoint import endpoint
from switchboard.foundation.web.errors import Unavailable
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.principal import Principal
from switchboard.resources.sms_media.responses import PATH, MediaResponder
from switchboard.resources.sms_media.schemas import MediaLinkOut

blueprint = Blueprint("sms_media", __name__)


@blueprint.get("/v1/sms/media/<media_id>")
@endpoint(scope="sms:read", answer=None, media_types=("application/octet-stream",), errors=[Unavailable])
async def get_sms_media(principal: Principal, media_id: UUID, responder: MediaResponder) -> Response:
    """Get a file of a received message.

    The content type is the file's own. While the file is being fetched from the carrier, which takes seconds, the
    response is 503.
    """
    return await responder.respond(principal.organization_id, media_id, actor=principal.actor)


@blueprint.get("/v1/sms/media/<media_id>/url")
@endpoint(scope="sms:read", answer=MediaLinkOut, errors=[Unavailable])
async def get_sms_media_url(principal: Principal, media_id: UUID, responder: MediaResponder) -> MediaLinkOut:
    """Get a link to a file of a received message.

    The link needs no credential and is valid for 15 minutes.
    """
    return await responder.build_link(principal.organization_id, media_id, actor=principal.actor)


@blueprint.get(f"{PATH}<token>")
@inject
async def follow_sms_media_link(token: str, responder: MediaResponder) -> Response:
    """Stream the file of a link."""
    return await responder.follow_link(token)
