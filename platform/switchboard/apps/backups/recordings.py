"""The recordings of an installation: the only module of the backup that knows where they are."""

import os
from dataclasses import dataclass
from shutil import copyfileobj
from typing import IO
from uuid import UUID

from switchboard.apps.backups.archive import ArchiveError
from switchboard.foundation.settings import Settings

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class OpenRecording:
    """A recording to read, with its size in bytes. Whoever opened it closes the file."""

    key: str
    file: IO[bytes]
    size: int


class RecordingFiles:
    """The recordings in the data directory. A key is `<organization>/<call>.wav`."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.data_dir / "recordings"

    def open(self, organization_id: UUID, call_id: UUID) -> OpenRecording | None:
        """Open a call's recording; None if it is not here."""
        key = f"{organization_id}/{call_id}.wav"
        try:
            file = (self._folder / key).open("rb")
        except FileNotFoundError:
            return None
        return OpenRecording(key, file, os.fstat(file.fileno()).st_size)

    def put(self, key: str, content: IO[bytes]) -> None:
        """Store a recording. Raises `ArchiveError` for a key that leads out of the folder."""
        path = (self._folder / key).resolve()
        if not path.is_relative_to(self._folder.resolve()):
            raise ArchiveError(f"the archive has a recording outside of the folder of recordings: {key}")
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}")
        with beside.open("wb") as file:
            copyfileobj(content, file, CHUNK_BYTES)
        beside.rename(path)
