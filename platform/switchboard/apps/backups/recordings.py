"""The recordings of an installation: the only module of the backup that knows where they are."""

import re
from dataclasses import dataclass
from io import BufferedReader
from typing import IO, BinaryIO
from uuid import UUID

from switchboard.apps.backups.archive import ArchiveError
from switchboard.foundation.object_store import ObjectNotFound, ObjectStore
from switchboard.resources.calls.recordings.file_formats import FILE_FORMATS

RECORDED_CALLS = """
select organization_id || '/' || id || '.' || recording_format from call where has_recording
"""
"""Keys of the recordings."""
KEY = re.compile(rf"[0-9a-f-]{{36}}/[0-9a-f-]{{36}}\.({'|'.join(FILE_FORMATS)})")
FILE_KEY = re.compile(r"[0-9a-f-]{36}(/\w[\w.-]*)+")
OTHER_CONTENT_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class BackupRecordings:
    """The recordings in their store. Its methods raise `ObjectStoreAway`."""

    store: ObjectStore

    async def open(self, key: str) -> tuple[BinaryIO, int] | None:
        """Open a recording, and return it with its size in bytes; None if the store does not have it."""
        try:
            found = await self.store.find(key)
        except ObjectNotFound:
            return None
        return BufferedReader(self.store.open(key)), found.size

    async def put(self, key: str, content: IO[bytes]) -> None:
        """Store a recording. Raises `ArchiveError` for a key that no recording has."""
        named = KEY.fullmatch(key)
        if named is None:
            raise ArchiveError(f"the archive has a recording by the name of {key}, which no recording has")
        await self.store.put(key, content, FILE_FORMATS[named[1]].content_type)

    async def put_file(self, organization_id: UUID, key: str, content: IO[bytes]) -> None:
        """Store a recording or another file of an organization. Raises `ArchiveError` for a key that is not one's."""
        if FILE_KEY.fullmatch(key) is None or not key.startswith(f"{organization_id}/"):
            raise ArchiveError(f"the archive has a file by the name of {key}, which is not the organization's")
        named = KEY.fullmatch(key)
        await self.store.put(key, content, FILE_FORMATS[named[1]].content_type if named else OTHER_CONTENT_TYPE)

    async def list_keys(self, organization_id: UUID) -> list[str]:
        """List the keys of all files of an organization."""
        return await self.store.list_keys(str(organization_id))

    async def delete_all(self, organization_id: UUID) -> None:
        """Delete all files of an organization."""
        await self.store.delete(await self.list_keys(organization_id))
