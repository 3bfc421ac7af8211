"""Recordings, streamed through: nothing is kept here, and nobody but us sees the credential."""

from collections.abc import AsyncIterator
from typing import Final

import aiohttp
from switchboard.plugins import ProviderError, RecordingStream

from switchboard_telephony_twilio.errors import NOT_FOUND
from switchboard_telephony_twilio.transport import Http

CHUNK_BYTES: Final = 65_536
# A recording may be long; what counts is that it goes on.
_PATIENCE: Final = aiohttp.ClientTimeout(total=None, sock_connect=4.0, sock_read=20.0)


async def stream(http: Http, url: str, authorization: str, byte_range: str | None) -> RecordingStream:
    """Begin a recording; the chunks must be read to their end or closed. Raises `ProviderError`."""
    headers = {"Authorization": authorization, **({"Range": byte_range} if byte_range else {})}
    try:
        # Twilio redirects to where the file is kept; aiohttp takes the credential along to no other host.
        answer = await http.session.get(http.address(url), headers=headers, timeout=_PATIENCE, max_redirects=3)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(f"Twilio does not give the recording: {error or type(error).__name__}") from error
    if answer.status not in (200, 206):
        answer.close()
        raise _refusal(answer.status)
    return RecordingStream(
        status=answer.status,
        content_type=answer.content_type,
        content_length=answer.content_length,
        content_range=answer.headers.get("Content-Range"),
        chunks=_chunks(answer),
    )


def _refusal(status: int) -> ProviderError:
    if status == 404:
        return ProviderError("Twilio does not have the recording (any more)", code=NOT_FOUND, retryable=False)
    if status == 416:
        return ProviderError("the recording has no such range", code="416", retryable=False)
    return ProviderError(f"Twilio answered {status} for the recording", code=str(status), retryable=status >= 500 or status == 429)


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with answer:
        async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
            yield chunk
