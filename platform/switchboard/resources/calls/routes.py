"""Endpoints of calls."""

from functools import partial
from uuid import UUID

from quart import Response

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import TenantSession
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.blueprint import ApiBlueprint
from switchboard.foundation.web.endpoint import endpoint
from switchboard.foundation.web.errors import InsufficientBalance, InvalidState, ProviderFailed
from switchboard.foundation.web.paging import paginate
from switchboard.foundation.web.schemas import Page
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.after import recordings
from switchboard.resources.calls.schemas import CallCreate, CallOut, CallQuery, TranscriptEntryOut

blueprint = ApiBlueprint("calls", __name__, tags={"calls": "Calls, transcripts, and recordings."})


@blueprint.get("/v1/calls")
@endpoint(scope="calls:read", query=CallQuery, answer=Page[CallOut])
async def list_calls(session: TenantSession, query: CallQuery, settings: Settings) -> Page[CallOut]:
    """List calls."""
    return await paginate(
        session, calls.list_calls(session, query), partial(CallOut.of, base_url=settings.base_url), query
    )


@blueprint.post("/v1/calls")
@endpoint(scope="calls:write", body=CallCreate, answer=CallOut, status=201, errors=[InsufficientBalance, InvalidState])
async def create_call(session: TenantSession, data: CallCreate, settings: Settings) -> CallOut:
    """Start an outbound call through an agent.

    The response comes at once, with the call `queued`. Events and the call itself report its progress.
    """
    return CallOut.of(await calls.place_call(session, data), base_url=settings.base_url)


@blueprint.get("/v1/calls/<call_id>")
@endpoint(scope="calls:read", answer=CallOut)
async def get_call(session: TenantSession, call_id: UUID, settings: Settings) -> CallOut:
    """Get a call."""
    return CallOut.of(await calls.get_call(session, call_id), base_url=settings.base_url)


@blueprint.get("/v1/calls/<call_id>/transcript")
@endpoint(scope="calls:read", answer=list[TranscriptEntryOut])
async def get_call_transcript(session: TenantSession, call_id: UUID) -> list[TranscriptEntryOut]:
    """Get a call's transcript.

    It grows while the call goes on.
    """
    return [TranscriptEntryOut.of(line) for line in await calls.get_transcript(session, call_id)]


@blueprint.get("/v1/calls/<call_id>/recording")
@endpoint(scope="calls:read", answer=None, media_type="audio/wav", errors=[ProviderFailed])
async def get_call_recording(
    session: TenantSession, call_id: UUID, settings: Settings, providers: Providers
) -> Response:
    """Stream a call's recording.

    Stereo WAV with the caller left and the agent right, or a carrier's own recording in the carrier's format.
    `Range` requests get status 206.
    """
    return await recordings.respond_with_recording(settings, providers, await calls.get_call(session, call_id))
