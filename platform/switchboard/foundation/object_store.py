"""Objects in a folder, in S3, in Google Cloud Storage, or in Azure. Every access has a deadline."""

import asyncio
import io
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import obstore
from obstore.exceptions import BaseError, PreconditionError
from obstore.store import AzureStore, GCSStore, LocalStore, S3Store, from_url

if TYPE_CHECKING:
    from obstore import ReadableFile
    from obstore.store import ObjectStore as VendorStore
    from typing_extensions import Buffer

REQUEST_SECONDS = 10.0
"""Deadline of each request but an upload's, and of each part of a large upload."""
UPLOAD_SECONDS = 600.0
RETRIES = 1
PARTS_AT_ONCE = 2
READ_AHEAD_BYTES = 256 * 1024
VENDOR_ERRORS = (BaseError, OSError, ValueError, NotImplementedError)
"""Errors that `obstore` raises; it wraps a vendor's refusal, and raises built-in errors for the others."""


class InvalidStoreUrl(ValueError):
    """The URL names no store, or the environment lacks a part of its configuration; the message is one line."""


class ObjectStoreAway(Exception):
    """The store does not respond in time, or refuses; the message is one line."""


class ObjectReplaced(ObjectStoreAway):
    """The object has been replaced since it was found."""


class ObjectNotFound(Exception):
    """The store has no object of this key."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """Size of an object in bytes, and the tag that changes with its content."""

    key: str
    size: int
    etag: str


class ObjectStore:
    """A store of objects by key, such as `folder/name`. The vendor's credentials come from the environment.

    Raises `InvalidStoreUrl`. Its methods raise `ObjectStoreAway`, and those that read `ObjectNotFound`.
    """

    def __init__(self, url: str) -> None:
        """`url`: `file:///folder` (created if missing), `s3://bucket/prefix`, `gs://bucket/prefix`, or
        `az://container/prefix`.
        """
        scheme, _, rest = url.partition("://")
        timeout = timedelta(seconds=REQUEST_SECONDS)
        try:
            if scheme != "file":
                self._store: VendorStore = from_url(
                    url,
                    # `http://` comes from an endpoint that the operator wrote, such as a MinIO beside the server.
                    client_options={"allow_http": True, "timeout": timeout, "connect_timeout": timeout / 2},
                    retry_config={"max_retries": RETRIES, "retry_timeout": timeout},
                )
                return
            if not rest.startswith("/"):
                raise ValueError("the folder must be absolute: file:///folder")
            Path(rest).mkdir(mode=0o700, parents=True, exist_ok=True)
            self._store = LocalStore(rest, automatic_cleanup=True)
        except VENDOR_ERRORS as error:
            raise InvalidStoreUrl(_first_line(error)) from None

    @property
    def signs_urls(self) -> bool:
        """True if the store itself serves an object to everybody who has its signed URL."""
        return isinstance(self._store, S3Store | GCSStore | AzureStore)

    async def put(self, key: str, content: bytes | IO[bytes], content_type: str) -> None:
        """Store an object, in place of one of the same key. A file is read in parts of 5 MiB."""
        # The local folder keeps no attributes and refuses them.
        attributes = None if isinstance(self._store, LocalStore) else {"Content-Type": content_type}
        async with _bound_request(UPLOAD_SECONDS):
            await obstore.put_async(self._store, key, content, attributes=attributes, max_concurrency=PARTS_AT_ONCE)

    async def find(self, key: str) -> ObjectInfo:
        """Return size and tag of an object."""
        async with _bound_request(REQUEST_SECONDS, absent=ObjectNotFound):
            found = await obstore.head_async(self._store, key)
        return ObjectInfo(key, found["size"], found["e_tag"] or "")

    async def read(self, found: ObjectInfo, start: int, end: int) -> bytes:
        """Return the bytes of an object from `start` to before `end`. Raises `ObjectReplaced`."""
        async with _bound_request(REQUEST_SECONDS, absent=ObjectNotFound):
            result = await obstore.get_async(
                self._store, found.key, options={"range": (start, end), "if_match": found.etag}
            )
            return bytes(await result.bytes_async())

    def open(self, key: str) -> "ObjectFile":
        """Open an object as a file, in a thread."""
        try:
            return ObjectFile(obstore.open_reader(self._store, key, buffer_size=READ_AHEAD_BYTES))
        except VENDOR_ERRORS as error:
            raise ObjectStoreAway(_first_line(error)) from None

    async def list_keys(self, prefix: str) -> list[str]:
        """Return the keys below a prefix in order: those below `a/b` begin with `a/b/`."""
        async with _bound_request(REQUEST_SECONDS):
            return sorted(found["path"] for found in await obstore.list(self._store, prefix).collect_async())

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects. A missing object is not an error."""
        for key in keys:
            with suppress(ObjectNotFound):
                async with _bound_request(REQUEST_SECONDS, absent=ObjectNotFound):
                    await obstore.delete_async(self._store, key)

    async def sign_url(self, key: str, valid: timedelta) -> str:
        """Build a URL with which everybody can read the object for a while, if the store `signs_urls`."""
        async with _bound_request(REQUEST_SECONDS):
            return await obstore.sign_async(cast("S3Store", self._store), "GET", key, valid)


class ObjectFile(io.RawIOBase):
    """An object as a seekable file. Its methods block, so they belong in a thread.

    libsndfile, which reads it through callbacks, cannot raise: `error` has the reason why a read returned nothing.
    """

    def __init__(self, reader: "ReadableFile") -> None:
        super().__init__()
        self.error: ObjectStoreAway | None = None
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target: "Buffer", /) -> int:
        """Read into a buffer, and return the number of bytes; zero after an error."""
        view = memoryview(target)
        try:
            data = bytes(self._reader.read(len(view)))
        except VENDOR_ERRORS as error:
            self.error = ObjectStoreAway(_first_line(error))
            return 0
        view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._reader.seek(offset, whence)


@asynccontextmanager
async def _bound_request(seconds: float, *, absent: type[Exception] = ObjectStoreAway) -> AsyncIterator[None]:
    """Bound a request, and translate the vendor's errors: `absent` is the one for a missing object, or bucket."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except FileNotFoundError as error:
        raise absent(_first_line(error)) from None
    except TimeoutError:
        raise ObjectStoreAway(f"no response within {seconds:.0f} seconds") from None
    except PreconditionError as error:
        raise ObjectReplaced(_first_line(error)) from None
    except VENDOR_ERRORS as error:
        raise ObjectStoreAway(_first_line(error)) from None


def _first_line(error: Exception) -> str:
    """Return an error's message without the dump of the vendor's response that follows."""
    return str(error).partition("\n")[0] or type(error).__name__
