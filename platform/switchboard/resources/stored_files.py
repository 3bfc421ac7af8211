"""Files of organizations in the object store: recordings, files of text messages, exports. They are encrypted if the
organization's policy says so.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeVar
from uuid import UUID

from switchboard.foundation.database import Database
from switchboard.foundation.encryption.organization_keys import (
    find_organization_key_by_id,
    get_or_create_organization_key,
)
from switchboard.foundation.encryption.sealed_objects import HEADER, SealedObject, open_sealed, parse_key_id, seal
from switchboard.foundation.keyring import DataKey, SecretError
from switchboard.foundation.object_store import InvalidStoreUrl, ObjectInfo, ObjectNotFound, ObjectReplaced, ObjectStore
from switchboard.foundation.settings import PREFIX, Settings, SettingsError
from switchboard.resources.identity.service import get_policy

KEY_PURPOSE = "recordings"
"""Purpose of the organization's key that encrypts recordings."""
ENCRYPTED_CONTENT_TYPE = "application/octet-stream"
THREADS = ThreadPoolExecutor(16, thread_name_prefix="recordings")
"""Threads of their own: those that wait for a store must not delay the recordings that calls write."""

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


class FileDamaged(Exception):
    """A file cannot be written or read: it was altered, or its key cannot be used. The message is one line."""


def get_spool_folder(settings: Settings) -> Path:
    return settings.data_dir / "spool"


async def run_in_thread(function: Callable[P, ResultT], *args: P.args, **kwargs: P.kwargs) -> ResultT:
    """Run a blocking function in one of the threads of recordings. A cancellation waits for its end."""
    running = asyncio.get_running_loop().run_in_executor(THREADS, partial(function, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})  # it uses files that the caller closes now
        raise


def open_recording_store(settings: Settings) -> ObjectStore:
    """Open the store of recordings. Raises `SettingsError`."""
    try:
        return ObjectStore(settings.recordings_url or f"file://{settings.data_dir.resolve() / 'recordings'}")
    except InvalidStoreUrl as error:
        raise SettingsError(f"{PREFIX}RECORDINGS_URL: {error}") from None


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object in the store. `data_key` and `sealed` decrypt an encrypted one."""

    file: ObjectInfo
    data_key: DataKey | None
    sealed: SealedObject | None

    @property
    def size(self) -> int:
        """The size of its content in bytes."""
        return self.file.size if self.sealed is None else self.sealed.size


@dataclass(frozen=True, slots=True)
class FileArchive:
    """Stores, finds, and deletes files of organizations. Its methods raise `ObjectStoreAway`."""

    settings: Settings
    database: Database
    recordings: ObjectStore

    async def read(self, stored: StoredObject, start: int, end: int) -> bytes:
        """Return the bytes of an object's content from `start` to before `end`.

        Raises `ObjectNotFound`, and `FileDamaged` if they were altered.
        """
        if stored.sealed is None:
            return await self.recordings.read(stored.file, start, end)
        data = await self.recordings.read(stored.file, *stored.sealed.locate(start, end))
        try:
            return stored.sealed.decrypt(data, start, end)
        except SecretError as error:
            raise FileDamaged(str(error)) from None

    async def iterate(self, stored: StoredObject, part_bytes: int) -> AsyncIterator[bytes]:
        """Yield an object's content in parts. Raises what `read` raises."""
        for start in range(0, stored.size, part_bytes):
            yield await self.read(stored, start, min(start + part_bytes, stored.size))

    async def put_file(self, organization_id: UUID, key: str, content: BinaryIO, content_type: str) -> None:
        """Store an object, encrypted if the organization's policy says so."""
        async with self.database.write(organization_id) as session:
            is_encrypted = (await get_policy(session, organization_id)).encryption.recordings
            data_key = await get_or_create_organization_key(session, KEY_PURPOSE) if is_encrypted else None
        if data_key is None:
            await self.recordings.put(key, content, content_type)
            return
        with tempfile.TemporaryFile(dir=get_spool_folder(self.settings)) as sealed:
            await run_in_thread(seal, content, sealed, data_key, key)
            await self.recordings.put(key, sealed, ENCRYPTED_CONTENT_TYPE)

    async def delete_file(self, key: str) -> None:
        """Delete an object. A missing object is not an error."""
        await self.recordings.delete([key])

    async def find_file(self, organization_id: UUID, key: str) -> StoredObject:
        """Find an object and its key. Raises `FileDamaged`, and `ObjectNotFound` also for a destroyed key."""
        found, header = await self._find_header(key)
        key_id = parse_key_id(header)
        if key_id is None:
            return StoredObject(found, None, None)
        async with self.database.read(organization_id) as session:
            try:
                data_key = await find_organization_key_by_id(session, key_id)
            except SecretError as error:
                raise FileDamaged(f"the key of the recording cannot be used: {error}") from None
        if data_key is None:
            raise ObjectNotFound("the key of the recording was destroyed")
        return StoredObject(found, data_key, open_sealed(header, found.size, data_key, key))

    async def _find_header(self, key: str) -> tuple[ObjectInfo, bytes]:
        """Find an object and read its first bytes; again if it is replaced meanwhile."""
        while True:
            found = await self.recordings.find(key)
            with suppress(ObjectReplaced):
                return found, await self.recordings.read(found, 0, min(found.size, HEADER.size))
