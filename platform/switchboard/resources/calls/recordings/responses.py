"""HTTP responses with a call's recording: ours from the store, or the stream that the carrier returns."""

from abc import abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Final
from uuid import UUID

from quart import Response, request
from quart.wrappers.response import ResponseBody
from werkzeug.exceptions import RequestedRangeNotSatisfiable

from switchboard.engine.conversation.media.recording import HEADER, build_wav_header
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.object_store import ObjectStoreAway
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound, ProviderFailed, RangeNotSatisfiable, Unavailable
from switchboard.foundation.web.signed_links import LINK_LIFETIME, SignedTokens
from switchboard.plugin_sdk import ProviderError, RecordingStream, TelephonyProvider
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.archive import RecordingArchive, StoredAudio
from switchboard.resources.calls.recordings.file_formats import BLOCK_FRAMES, FILE_FORMATS, FRAME_BYTES
from switchboard.resources.calls.schemas import RecordingLinkOut
from switchboard.resources.stored_files import FileDamaged, StoredObject, run_in_thread

WAV: Final = FILE_FORMATS["wav"].content_type
CHUNK_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class RecordingResponder:
    archive: RecordingArchive
    providers: Providers

    async def respond(self, call: Call, *, as_stored: bool = False) -> Response:
        """Stream a call's recording as WAV, or as it is stored if the request's `Accept` or the caller asks for that.

        Raises `NotFound` if the call has no recording (yet), `Unavailable` if the store cannot be reached, and
        `ProviderFailed` if the carrier does not return its recording.
        """
        try:
            stored = await self.archive.find(call)
            if stored is not None:
                own = FILE_FORMATS[call.recording_format].content_type
                return await self._respond_from_store(stored, own, as_stored=as_stored)
        except (ObjectStoreAway, FileDamaged) as error:
            raise Unavailable("The recording cannot be read at the moment.") from error
        if call.carrier_recording_id is not None:
            return await self._stream_from_carrier(call, call.carrier_recording_id)
        raise NotFound("The call has no recording.")

    async def _respond_from_store(self, stored: StoredObject, own: str, *, as_stored: bool) -> Response:
        content_type = own if as_stored else request.accept_mimetypes.best_match([WAV, own], default=WAV)
        body: _StoredBody | _WavBody
        if content_type == own:
            body = _StoredBody(self.archive, stored)
        else:
            body = _WavBody(await run_in_thread(self.archive.open_audio, stored))
        response = Response(body, content_type=content_type)
        response.timeout = None  # an hour of audio takes longer than a page
        response.content_length = body.size
        response.headers["Accept-Ranges"] = "bytes"
        response.headers["Vary"] = "Accept"
        tag = stored.file.etag.strip('"')
        response.set_etag(f"{tag}-{content_type.partition('/')[2]}")
        try:
            await response.make_conditional(request, accept_ranges=True, complete_length=body.size)
        except RequestedRangeNotSatisfiable:
            raise RangeNotSatisfiable(headers={"Content-Range": f"bytes */{body.size}"}) from None
        return response

    async def _stream_from_carrier(self, call: Call, recording_id: str) -> Response:
        try:
            async with self.providers.use(call.organization_id, TelephonyProvider, call.carrier) as carrier:
                recording = await carrier.fetch_recording(recording_id, request.headers.get("Range"))
        except ProviderError as error:
            raise ProviderFailed(error.message) from error
        response = Response(_iterate_chunks(recording), recording.status, content_type=recording.content_type)
        if recording.content_length is not None:
            response.headers["Content-Length"] = str(recording.content_length)
        if recording.content_range is not None:
            response.headers["Content-Range"] = recording.content_range
        return response


class _RangedBody(ResponseBody):
    """A body of `size` bytes, of which those from `begin` to before `end` are sent (the protocol of Quart's
    `Response.make_conditional`).
    """

    def __init__(self, size: int) -> None:
        self.size = self.end = size
        self.begin = 0

    async def __aenter__(self) -> AsyncIterator[bytes]:
        return self._read()

    async def __aexit__(self, kind: type[BaseException], error: BaseException, trace: TracebackType) -> None:
        """Do nothing: a body holds nothing open."""

    async def make_conditional(self, begin: int, end: int | None) -> int:
        """Limit the body to a range; a negative `begin` counts from the end."""
        self.begin = max(0, self.size + begin) if begin < 0 else begin
        self.end = self.size if end is None else min(self.size, end)
        if self.begin >= self.end:
            raise RequestedRangeNotSatisfiable  # Quart's own bodies raise it
        return self.size

    @abstractmethod
    def _read(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the range."""


class _StoredBody(_RangedBody):
    """An object as it is stored, or was before its encryption."""

    def __init__(self, archive: RecordingArchive, stored: StoredObject) -> None:
        super().__init__(stored.size)
        self._archive = archive
        self._stored = stored

    async def _read(self) -> AsyncIterator[bytes]:
        for position in range(self.begin, self.end, CHUNK_BYTES):
            yield await self._archive.read(self._stored, position, min(position + CHUNK_BYTES, self.end))


class _WavBody(_RangedBody):
    """A recording that is decoded to WAV while it is sent, block by block."""

    def __init__(self, audio: StoredAudio) -> None:
        super().__init__(HEADER.size + audio.frames * FRAME_BYTES)
        self._audio = audio

    async def _read(self) -> AsyncIterator[bytes]:
        if self.begin < HEADER.size:
            yield build_wav_header(self._audio.frames)[self.begin : self.end]
        position, end = max(0, self.begin - HEADER.size), self.end - HEADER.size
        while position < end:
            first, skipped = divmod(position, FRAME_BYTES)
            count = min(BLOCK_FRAMES, -(-end // FRAME_BYTES) - first)
            frames = await run_in_thread(self._audio.read, first, count)
            chunk = frames.astype("<i2").tobytes()[skipped : end - first * FRAME_BYTES]
            position += len(chunk)
            yield chunk


async def _iterate_chunks(recording: RecordingStream) -> AsyncIterator[bytes]:
    async for chunk in recording.chunks:
        yield chunk


# Links to recordings that need no credential for a while: the store's own, or ours with a signed token.

PURPOSE: Final = "recording link"


@dataclass(frozen=True, slots=True)
class RecordingLinks:
    settings: Settings
    keyring: KeyRing
    archive: RecordingArchive

    async def build_link(self, call: Call) -> RecordingLinkOut:
        """Build a link to a call's recording, valid for 15 minutes. The link to an encrypted recording is always our
        own.

        Raises `NotFound` if the call has no recording (yet), and `Unavailable` if the store cannot be reached or cannot
        sign.
        """
        token, expires_at = self._links.sign_link(call.organization_id, call.id)
        try:
            stored = await self.archive.find(call)
            if stored is not None and stored.sealed is None and self.archive.recordings.signs_urls:
                url = await self.archive.recordings.sign_url(stored.file.key, LINK_LIFETIME)
            elif stored is not None or call.carrier_recording_id is not None:
                url = f"{self.settings.base_url}/recordings/{token}"
            else:
                raise NotFound("The call has no recording.")
        except (ObjectStoreAway, FileDamaged) as error:
            raise Unavailable("The store cannot sign a link at the moment.") from error
        content_type = FILE_FORMATS[call.recording_format].content_type if stored is not None else None
        return RecordingLinkOut(url=url, expires_at=expires_at, content_type=content_type)

    def read_token(self, token: str) -> tuple[UUID, UUID]:
        """Return organization and call of one of our links. Raises `NotFound` if it is not ours, or has expired."""
        return self._links.read_link(token)

    @property
    def _links(self) -> SignedTokens:
        return SignedTokens(self.keyring, PURPOSE)
