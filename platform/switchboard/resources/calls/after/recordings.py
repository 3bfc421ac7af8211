"""HTTP responses with a call's recording: our own file, or the stream that the carrier returns."""

from collections.abc import AsyncIterator
from pathlib import Path

from quart import Response, request, send_file

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound, ProviderFailed
from switchboard.plugin_sdk import ProviderError, RecordingStream, TelephonyProvider
from switchboard.resources.calls.media.call_runner import build_recording_path
from switchboard.resources.calls.models import Call


async def respond_with_recording(settings: Settings, providers: Providers, call: Call) -> Response:
    """Stream a call's recording.

    Raises `NotFound` if the call has no recording (yet), and `ProviderFailed` if the carrier does not return it.
    """
    if (path := find_recording_file(settings, call)) is not None:
        return await _send_file(path)
    if call.carrier_recording_id is not None:
        return await _stream_from_carrier(providers, call, call.carrier_recording_id)
    raise NotFound("The call has no recording.")


def find_recording_file(settings: Settings, call: Call) -> Path | None:
    """Return the path of a call's recording, or None if we have no file of it."""
    path = build_recording_path(settings, call)
    return path if call.has_recording and path.exists() else None


async def _send_file(path: Path) -> Response:
    response = await send_file(path, mimetype="audio/wav", conditional=True)
    response.headers["Accept-Ranges"] = "bytes"
    return response


async def _stream_from_carrier(providers: Providers, call: Call, recording_id: str) -> Response:
    try:
        async with providers.use(call.organization_id, TelephonyProvider, call.carrier) as carrier:
            recording = await carrier.fetch_recording(recording_id, request.headers.get("Range"))
    except ProviderError as error:
        raise ProviderFailed(error.message) from error
    response = Response(_iterate_chunks(recording), recording.status, content_type=recording.content_type)
    if recording.content_length is not None:
        response.headers["Content-Length"] = str(recording.content_length)
    if recording.content_range is not None:
        response.headers["Content-Range"] = recording.content_range
    return response


async def _iterate_chunks(recording: RecordingStream) -> AsyncIterator[bytes]:
    async for chunk in recording.chunks:
        yield chunk
