"""Streaming of a carrier's recordings and files. Only the platform sees the carrier's credential."""

from collections.abc import AsyncIterator, Mapping
from typing import Final

import aiohttp

from switchboard.plugin_sdk.provider import ProviderError
from switchboard.plugin_sdk.telephony import MessageFile, RecordingStream

CHUNK_BYTES: Final = 65_536
# A recording may be long, so only gaps in the stream are bounded, not its duration.
_PATIENCE: Final = aiohttp.ClientTimeout(total=None, sock_connect=4.0, sock_read=20.0)


async def stream_carrier_recording(
    session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], byte_range: str | None, *, carrier: str
) -> RecordingStream:
    """Start to stream a recording. The caller reads the chunks to the end or closes them.

    `byte_range` is a `Range` header to pass on; `carrier` is the name for error messages. Raises `ProviderError`.
    """
    request_headers = {**headers, **({"Range": byte_range} if byte_range else {})}
    answer = await _get(session, url, request_headers, kind="recording", carrier=carrier)
    return RecordingStream(
        status=answer.status,
        content_type=answer.content_type,
        content_length=answer.content_length,
        content_range=answer.headers.get("Content-Range"),
        chunks=_chunks(answer),
    )


async def stream_carrier_media(
    session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], *, carrier: str
) -> MessageFile:
    """Start to stream a file of a text message. The caller reads the chunks to the end or closes them.

    `carrier` is the name for error messages. Raises `ProviderError`.
    """
    answer = await _get(session, url, headers, kind="file", carrier=carrier)
    return MessageFile(answer.content_type, _chunks(answer))


async def _get(
    session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], *, kind: str, carrier: str
) -> aiohttp.ClientResponse:
    try:
        # Carriers redirect to the stored file; aiohttp does not send a credential on to another host.
        answer = await session.get(url, headers=headers, timeout=_PATIENCE, max_redirects=3)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(f"{carrier} does not return the {kind}: {str(error) or type(error).__name__}") from error
    if answer.status not in (200, 206):
        answer.close()
        raise _refusal(answer.status, kind, carrier)
    return answer


def _refusal(status: int, kind: str, carrier: str) -> ProviderError:
    if status == 404:
        return ProviderError(f"{carrier} does not have the {kind}, or no longer has it", code="404", retryable=False)
    if status == 416:
        return ProviderError(f"the {kind} has no such range", code="416", retryable=False)
    return ProviderError(
        f"{carrier} answered {status} for the {kind}", code=str(status), retryable=status >= 500 or status == 429
    )


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with answer:
        async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
            yield chunk
