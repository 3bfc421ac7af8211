"""Compressed responses: text as gzip, for clients that accept it (docs/decisions/0081-api-documentation.md).

Every response gets a file name of random length in its gzip header, so that its length tells nothing about a secret
beside text that a request chose (BREACH; the defense is "Heal the BREACH", which Django's middleware has too).
"""

import asyncio
import gzip
import io
import secrets

from quart import Quart, Response, request
from quart.wrappers.response import DataBody, FileBody

MIN_BYTES = 1024
"""A smaller response fits into one packet as it is."""
MIN_JSON_BYTES = 32 * 1024
"""The least for JSON. Less arrives within two round trips, and a list of 50 contacts (19 kB) would take 5 % more of
the processor."""
THREAD_BYTES = 128 * 1024
"""A longer one is compressed in a thread, because the event loop carries audio."""
MAX_BYTES = 8 * 1024 * 1024
LEVEL = 1
"""A page of 20 kB takes 0.1 ms and becomes 3 kB; level 6 takes twice as long and saves 400 bytes."""
MAX_NAME = 100
JSON = "application/json"
KINDS = (JSON, "image/svg+xml", "text/")


def install_compression(app: Quart) -> None:
    """Compress the responses of an application."""

    @app.after_request
    async def compress(response: Response) -> Response:
        if not _is_compressible(response):
            return response
        response.vary.add("Accept-Encoding")
        if request.accept_encodings.best_match(["gzip"]) != "gzip":
            return response
        plain = await response.get_data(as_text=False)
        long = len(plain) > THREAD_BYTES
        response.set_data(await asyncio.to_thread(compress_text, plain) if long else compress_text(plain))
        response.headers["Content-Encoding"] = "gzip"
        entity_tag, _ = response.get_etag()
        if entity_tag:  # a strong one promises the same bytes
            response.set_etag(entity_tag, weak=True)
        return response


def _is_compressible(response: Response) -> bool:
    """Return whether a response is whole, long, and text. Streams and parts of files are not."""
    length, kind = response.content_length, response.mimetype or ""
    return (
        response.status_code not in (204, 206, 304)
        and isinstance(response.response, DataBody | FileBody)
        and length is not None
        and (MIN_JSON_BYTES if kind == JSON else MIN_BYTES) <= length <= MAX_BYTES
        and "Content-Encoding" not in response.headers
        and kind.startswith(KINDS)
    )


def compress_text(plain: bytes) -> bytes:
    """Return text in gzip's format, with a file name of random length."""
    packed = io.BytesIO()
    name = "a" * secrets.randbelow(MAX_NAME)
    with gzip.GzipFile(filename=name, fileobj=packed, mode="wb", compresslevel=LEVEL, mtime=0) as file:
        file.write(plain)
    return packed.getvalue()
