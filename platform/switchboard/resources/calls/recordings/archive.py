"""Recordings in the store: `<organization>/<call>.<format>`, and while the call goes on, segments of it in FLAC,
`<organization>/<call>/<number>.flac`.
"""

import io
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from switchboard.engine.conversation.media.recording import RATE
from switchboard.foundation.encryption.sealed_objects import open_sealed_file
from switchboard.foundation.keyring import DataKey
from switchboard.foundation.object_store import ObjectNotFound, ObjectStore
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.file_formats import (
    BLOCK_FRAMES,
    FILE_FORMATS,
    Frames,
    RecordingReader,
    RecordingWriter,
    encode,
)
from switchboard.resources.calls.recordings.spool import read_blocks
from switchboard.resources.stored_files import FileArchive, FileDamaged, StoredObject, get_spool_folder, run_in_thread

SEGMENT_FORMAT = "flac"
"""Format of segments: lossless, because the recording that is assembled from them is encoded again."""
MAX_SEGMENT_FRAMES = 5 * 60 * RATE
"""Longest segment, in frames: after an outage of the store a segment fits into memory."""


class StoredAudio:
    """Decoder of a recording in the store; its methods block. Raises `ObjectStoreAway` and `FileDamaged`."""

    def __init__(self, recordings: ObjectStore, key: str, data_key: DataKey | None) -> None:
        self._recordings = recordings
        self._key = key
        self._data_key = data_key
        self._open()
        self.frames = self._reader.frames

    def read(self, first: int, count: int) -> Frames:
        """Return the `count` frames from `first` on, or those up to the end."""
        count = min(count, self.frames - first)
        try:
            return self._read(first, count)
        except FileDamaged:
            # A server that is back has replaced what was assembled from segments; the whole recording begins the same.
            self._open()
            return self._read(first, count)

    def _open(self) -> None:
        self._file = self._recordings.open(self._key)
        with self._blame_store():
            self._reader = RecordingReader(
                self._file if self._data_key is None else open_sealed_file(self._file, self._data_key, self._key)
            )

    def _read(self, first: int, count: int) -> Frames:
        with self._blame_store():
            frames = self._reader.read(first, count)
        if len(frames) < count:
            raise FileDamaged("the recording has become shorter")
        return frames

    @contextmanager
    def _blame_store(self) -> Iterator[None]:
        """Raise the store's error in place of the decoder's, which got no data."""
        try:
            yield
        except FileDamaged:
            if self._file.error is not None:
                raise self._file.error from None
            raise


@dataclass(frozen=True, slots=True)
class RecordingArchive(FileArchive):
    """Stores, finds, and deletes recordings. Its methods raise `ObjectStoreAway`."""

    async def store_spooled(self, organization_id: UUID, call_id: UUID, file: BinaryIO) -> str | None:
        """Store a whole recording from the spool and return its format; None if it has no audio.

        Raises `FileDamaged` and `OSError`, also if the encoded file does not fit on the disk.
        """
        blocks = read_blocks(file)
        async with self._store_whole(organization_id, call_id) as writer:
            while await run_in_thread(_append_blocks, writer, blocks):
                pass
        return self.settings.recordings_format if writer.frames else None

    async def store_segment(
        self,
        organization_id: UUID,
        call_id: UUID,
        number: int,
        spooled: Path,
        *,
        first: int,
        most_frames: int = MAX_SEGMENT_FRAMES,
    ) -> int:
        """Store the frames that a live call has written from `first` on, and return their number. Raises `OSError`."""
        content = io.BytesIO()
        count = await run_in_thread(_encode_segment, spooled, first, most_frames, content)
        if count:
            key = f"{build_segment_prefix(organization_id, call_id)}/{number:06d}.{SEGMENT_FORMAT}"
            await self.put_file(organization_id, key, content, FILE_FORMATS[SEGMENT_FORMAT].content_type)
        return count

    async def assemble(self, organization_id: UUID, call_id: UUID) -> str | None:
        """Store the whole recording that a call's segments make, and return its format.

        Without segments, return the format of a recording that is stored already, or None. Raises `FileDamaged`
        and `OSError`.
        """
        segments = await self.recordings.list_keys(build_segment_prefix(organization_id, call_id))
        if not segments:
            for audio_format in FILE_FORMATS:
                with suppress(ObjectNotFound):
                    await self.recordings.find(build_key(organization_id, call_id, audio_format))
                    return audio_format
            return None
        async with self._store_whole(organization_id, call_id) as writer:
            for key in segments:
                segment = await self.find_file(organization_id, key)
                await run_in_thread(_append_segment, writer, await self.read(segment, 0, segment.size))
        return self.settings.recordings_format

    @asynccontextmanager
    async def _store_whole(self, organization_id: UUID, call_id: UUID) -> AsyncIterator[RecordingWriter]:
        """Store the whole recording that is written within the block, if it has audio."""
        audio_format = self.settings.recordings_format
        folder = get_spool_folder(self.settings)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as encoded:
            with RecordingWriter(encoded, audio_format) as writer:
                yield writer
            if writer.frames:
                key = build_key(organization_id, call_id, audio_format)
                await self.put_file(organization_id, key, encoded, FILE_FORMATS[audio_format].content_type)

    async def find(self, call: Call) -> StoredObject | None:
        """Return a call's recording; None if the store does not have it, or its key was destroyed.

        Raises `FileDamaged` if its key cannot be decrypted.
        """
        if not call.has_recording:
            return None
        key = build_key(call.organization_id, call.id, call.recording_format)
        with suppress(ObjectNotFound):
            return await self.find_file(call.organization_id, key)
        return None

    def open_audio(self, stored: StoredObject) -> StoredAudio:
        """Open a stored recording for decoding, in a thread. Raises `FileDamaged` too."""
        return StoredAudio(self.recordings, stored.file.key, stored.data_key)

    async def delete_segments(self, organization_id: UUID, call_id: UUID) -> None:
        await self.recordings.delete(await self.recordings.list_keys(build_segment_prefix(organization_id, call_id)))

    async def delete_recording(self, organization_id: UUID, call_id: UUID) -> None:
        """Delete everything that the store has of a call."""
        await self.recordings.delete([build_key(organization_id, call_id, name) for name in FILE_FORMATS])
        await self.delete_segments(organization_id, call_id)


def build_key(organization_id: UUID, call_id: UUID, audio_format: str) -> str:
    """Build the key of a whole recording."""
    return f"{organization_id}/{call_id}.{audio_format}"


def build_segment_prefix(organization_id: UUID, call_id: UUID) -> str:
    """Build the prefix of the keys of a call's segments."""
    return f"{organization_id}/{call_id}"


def _encode_segment(spooled: Path, first: int, most_frames: int, content: BinaryIO) -> int:
    try:
        file = spooled.open("rb")
    except FileNotFoundError:  # nothing is final yet, or the recording was dropped
        return 0
    with file:
        blocks = islice(read_blocks(file, first=first), most_frames // BLOCK_FRAMES)
        return encode(blocks, content, SEGMENT_FORMAT)


def _append_blocks(writer: RecordingWriter, blocks: Iterator[Frames]) -> bool:
    """Encode the next minute and return whether there was one: a minute of Opus takes most of a second."""
    before = writer.frames
    for frames in islice(blocks, 60 * RATE // BLOCK_FRAMES):
        writer.write(frames)
    return writer.frames > before


def _append_segment(writer: RecordingWriter, content: bytes) -> None:
    segment = RecordingReader(io.BytesIO(content))
    first = 0
    while len(frames := segment.read(first, BLOCK_FRAMES)):
        writer.write(frames)
        first += len(frames)
