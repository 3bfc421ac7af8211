"""Streaming of a carrier's recordings and files. Only the platform sees the carrier's credential."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from switchboard.plugin_sdk.connection_faults import describe_connection_fault
from switchboard.plugin_sdk.provider import ProviderError
from switchboard.plugin_sdk.public_addresses import ForbiddenAddress
from switchboard.plugin_sdk.public_http import PublicHttpClient
from switchboard.plugin_sdk.telephony import MessageFile, RecordingStream

CHUNK_BYTES: Final = 65_536
# A recording may be long, so only gaps in the stream are bounded, not its duration.
_PATIENCE: Final = aiohttp.ClientTimeout(total=None, sock_connect=4.0, sock_read=20.0)


@dataclass(frozen=True, slots=True)
class CarrierFiles:
    """Files of a carrier's, fetched over public addresses only.

    `carrier` is the name for error messages. `api` is the session of the carrier's API, if the files are at that API,
    and `headers` the credential for it: see `PublicHttpClient.get`.
    """

    http: PublicHttpClient
    carrier: str
    api: aiohttp.ClientSession | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


async def stream_carrier_recording(files: CarrierFiles, url: str, byte_range: str | None) -> RecordingStream:
    """Start to stream a recording. The caller reads the chunks to the end or closes them.

    `byte_range` is a `Range` header to pass on. Raises `ProviderError`.
    """
    answer = await _get(files, url, {"Range": byte_range} if byte_range else {}, kind="recording")
    return RecordingStream(
        status=answer.status,
        content_type=answer.content_type,
        content_length=answer.content_length,
        content_range=answer.headers.get("Content-Range"),
        chunks=_chunks(answer),
    )


async def stream_carrier_media(files: CarrierFiles, url: str) -> MessageFile:
    """Start to stream a file of a text message. The caller reads the chunks to the end or closes them.

    Raises `ProviderError`.
    """
    answer = await _get(files, url, {}, kind="file")
    return MessageFile(answer.content_type, _chunks(answer))


async def _get(files: CarrierFiles, url: str, headers: Mapping[str, str], *, kind: str) -> aiohttp.ClientResponse:
    carrier = files.carrier
    try:
        answer = await files.http.get(url, headers={**files.headers, **headers}, deadlines=_PATIENCE, vendor=files.api)
    except ForbiddenAddress as error:
        raise ProviderError(f"{carrier}'s address of the {kind} {error}", retryable=False) from None
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(f"{carrier} does not return the {kind}: {describe_connection_fault(error)}") from error
    if (status := answer.status) in (200, 206):
        return answer
    answer.close()
    if status == 404:
        raise ProviderError(f"{carrier} does not have the {kind}, or no longer has it", code="404", retryable=False)
    if status == 416:
        raise ProviderError(f"the {kind} has no such range", code="416", retryable=False)
    retryable = status >= 500 or status == 429
    raise ProviderError(f"{carrier} answered {status} for the {kind}", code=str(status), retryable=retryable)


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with answer:
        async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
            yield chunk
