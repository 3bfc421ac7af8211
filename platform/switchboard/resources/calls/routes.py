"""Endpoints of calls."""

from uuid import UUID

from quart import Response

from switchboard.foundation.database import Database, ReadSession, WriteSession
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import (
    DestinationNotAllowed,
    InsufficientBalance,
    InvalidState,
    OutboundPaused,
    ProviderFailed,
    RangeNotSatisfiable,
    Unavailable,
)
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import Page
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.allowance import REQUESTS_TURN
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.responses import RecordingLinks, RecordingResponder
from switchboard.resources.calls.schemas import CallCreate, CallOut, CallQuery, RecordingLinkOut, TranscriptEntryOut
from switchboard.resources.calls.service import find_calls

blueprint = ApiBlueprint("calls", __name__, tags={"calls": "Calls, transcripts, and recordings."})


@blueprint.get("/v1/calls")
@endpoint(scope="calls:read", errors=[InvalidState])
async def list_calls(session: ReadSession, query: CallQuery, settings: Settings) -> Page[CallOut]:
    """List calls.

    Filters are combined. Filters of words, tags, and contacts are slower than the others; a range of time makes every
    filter faster.
    """
    found = await find_calls(session, query)
    items = [CallOut.from_row(call, base_url=settings.base_url) for call in found.items]
    return Page[CallOut].model_construct(items=items, total=found.total, limit=found.limit, offset=found.offset)


@blueprint.post("/v1/calls")
@endpoint(
    scope="calls:write",
    status=201,
    errors=[DestinationNotAllowed, InsufficientBalance, InvalidState, OutboundPaused],
    turn=REQUESTS_TURN,
)
async def create_call(session: WriteSession, data: CallCreate, settings: Settings) -> CallOut:
    """Start an outbound call through an agent.

    The response comes at once, with the call `queued`. Events and the call itself report its progress.
    """
    return CallOut.from_row(await calls.place_call(session, data, is_only=True), base_url=settings.base_url)


@blueprint.get("/v1/calls/<call_id>")
@endpoint(scope="calls:read")
async def get_call(session: ReadSession, call_id: UUID, settings: Settings) -> CallOut:
    """Get a call."""
    return CallOut.from_row(await get_row(session, Call, call_id), base_url=settings.base_url)


@blueprint.get("/v1/calls/<call_id>/transcript")
@endpoint(scope="calls:read")
async def get_call_transcript(session: WriteSession, call_id: UUID) -> list[TranscriptEntryOut]:
    """Get a call's transcript.

    It grows while the call goes on. 404 once the organization's retention has deleted it.
    """
    return [TranscriptEntryOut.model_validate(line) for line in await calls.read_transcript(session, call_id)]


@blueprint.get("/v1/calls/<call_id>/recording")
@endpoint(
    scope="calls:read",
    media_types=("audio/wav",),
    errors=[RangeNotSatisfiable, ProviderFailed, Unavailable],
)
async def get_call_recording(
    principal: Principal, call_id: UUID, database: Database, responder: RecordingResponder
) -> Response:
    """Stream a call's recording.

    Stereo WAV with the caller left and the agent right, or a carrier's own recording in the carrier's format.
    `Accept: audio/flac` or `audio/ogg` gets the recording as it is stored, if it is stored so. `Range` asks for a part.
    """
    call = await calls.read_recorded_call(database, principal.organization_id, call_id, actor=principal.actor)
    return await responder.respond(call)


@blueprint.get("/v1/calls/<call_id>/recording-url")
@endpoint(scope="calls:read", errors=[Unavailable])
async def get_call_recording_url(
    principal: Principal, call_id: UUID, database: Database, links: RecordingLinks
) -> RecordingLinkOut:
    """Get a link to a call's recording.

    The link needs no credential and is valid for 15 minutes. It returns the recording as it is stored.
    """
    call = await calls.read_recorded_call(database, principal.organization_id, call_id, actor=principal.actor)
    return await links.build_link(call)


@blueprint.get("/recordings/<token>")
@inject
async def follow_recording_link(
    token: str, database: Database, links: RecordingLinks, responder: RecordingResponder
) -> Response:
    """Stream the recording of a link, as it is stored."""
    return await responder.respond(await calls.read_call(database, *links.read_token(token)), as_stored=True)
