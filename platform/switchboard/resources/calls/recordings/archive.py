"""Recordings in the store: `<organization>/<call>.<format>`, and while the call goes on, segments of it in FLAC,
`<organization>/<call>/<number>.flac`.
"""

import asyncio
import io
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeVar
from uuid import UUID

from switchboard.engine.conversation.media.stereo_mixer import RATE
from switchboard.foundation.database import Database
from switchboard.foundation.encryption import (
    DataKey,
    find_organization_key_by_id,
    get_or_create_organization_key,
)
from switchboard.foundation.encryption.sealed_objects import (
    HEADER,
    SealedObject,
    open_sealed,
    open_sealed_file,
    parse_key_id,
    seal,
)
from switchboard.foundation.keyring import SecretError
from switchboard.foundation.object_store import InvalidStoreUrl, ObjectInfo, ObjectNotFound, ObjectReplaced, ObjectStore
from switchboard.foundation.settings import PREFIX, Settings, SettingsError
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.file_formats import (
    BLOCK_FRAMES,
    FILE_FORMATS,
    Frames,
    RecordingDamaged,
    RecordingFormat,
    RecordingReader,
    RecordingWriter,
    encode,
)
from switchboard.resources.calls.recordings.spool import get_spool_folder, read_blocks
from switchboard.resources.identity.service import get_policy

SEGMENT_FORMAT: RecordingFormat = "flac"
"""Format of segments: lossless, because the recording that is assembled from them is encoded again."""
KEY_PURPOSE = "recordings"
"""Purpose of the organization's key that encrypts recordings."""
ENCRYPTED_CONTENT_TYPE = "application/octet-stream"
MAX_SEGMENT_FRAMES = 5 * 60 * RATE
"""Longest segment, in frames: after an outage of the store a segment fits into memory."""
THREADS = ThreadPoolExecutor(16, thread_name_prefix="recordings")
"""Threads of their own: those that wait for a store must not delay the recordings that calls write."""

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


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
class StoredRecording(StoredObject):
    """A recording in the store."""

    audio_format: RecordingFormat


class StoredAudio:
    """Decoder of a recording in the store; its methods block. Raises `ObjectStoreAway` and `RecordingDamaged`."""

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
        except RecordingDamaged:
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
            raise RecordingDamaged("the recording has become shorter")
        return frames

    @contextmanager
    def _blame_store(self) -> Iterator[None]:
        """Raise the store's error in place of the decoder's, which got no data."""
        try:
            yield
        except RecordingDamaged:
            if self._file.error is not None:
                raise self._file.error from None
            raise


@dataclass(frozen=True, slots=True)
class RecordingArchive:
    """Stores, finds, and deletes recordings. Its methods raise `ObjectStoreAway`."""

    settings: Settings
    database: Database
    recordings: ObjectStore

    async def store_spooled(self, organization_id: UUID, call_id: UUID, file: BinaryIO) -> RecordingFormat | None:
        """Store a whole recording from the spool and return its format; None if it has no audio.

        Raises `RecordingDamaged` and `OSError`, also if the encoded file does not fit on the disk.
        """
        audio_format = self.settings.recordings_format
        blocks = read_blocks(file)
        with tempfile.TemporaryFile(dir=get_spool_folder(self.settings)) as encoded:
            with RecordingWriter(encoded, audio_format) as writer:
                while await run_in_thread(_append_blocks, writer, blocks):
                    pass
            if not writer.frames:
                return None
            await self.put_file(
                organization_id,
                build_key(organization_id, call_id, audio_format),
                encoded,
                FILE_FORMATS[audio_format].content_type,
            )
        return audio_format

    async def store_segment(
        self, organization_id: UUID, call_id: UUID, number: int, spooled: Path, *, first: int
    ) -> int:
        """Store the frames that a live call has written from `first` on, and return their number. Raises `OSError`."""
        content = io.BytesIO()
        count = await run_in_thread(_encode_segment, spooled, first, content)
        if count:
            key = f"{build_segment_prefix(organization_id, call_id)}/{number:06d}.{SEGMENT_FORMAT}"
            await self.put_file(organization_id, key, content, FILE_FORMATS[SEGMENT_FORMAT].content_type)
        return count

    async def assemble(self, organization_id: UUID, call_id: UUID) -> RecordingFormat | None:
        """Store the whole recording that a call's segments make, and return its format.

        Without segments, return the format of a recording that is stored already, or None. Raises `RecordingDamaged`
        and `OSError`.
        """
        segments = await self.recordings.list_keys(build_segment_prefix(organization_id, call_id))
        if not segments:
            return await self._find_format(organization_id, call_id)
        audio_format = self.settings.recordings_format
        folder = get_spool_folder(self.settings)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as encoded:
            with RecordingWriter(encoded, audio_format) as writer:
                for key in segments:
                    segment = await self.find_file(organization_id, key)
                    await run_in_thread(_append_segment, writer, await self.read(segment, 0, segment.size))
            await self.put_file(
                organization_id,
                build_key(organization_id, call_id, audio_format),
                encoded,
                FILE_FORMATS[audio_format].content_type,
            )
        return audio_format

    async def find(self, call: Call) -> StoredRecording | None:
        """Return a call's recording; None if the store does not have it, or its key was destroyed.

        Raises `RecordingDamaged` if its key cannot be decrypted.
        """
        if not call.has_recording:
            return None
        audio_format = next(name for name in FILE_FORMATS if name == call.recording_format)
        try:
            found = await self.find_file(call.organization_id, build_key(call.organization_id, call.id, audio_format))
        except ObjectNotFound:
            return None
        return StoredRecording(found.file, found.data_key, found.sealed, audio_format)

    async def read(self, stored: StoredObject, start: int, end: int) -> bytes:
        """Return the bytes of an object's content from `start` to before `end`.

        Raises `ObjectNotFound`, and `RecordingDamaged` if they were altered.
        """
        if stored.sealed is None:
            return await self.recordings.read(stored.file, start, end)
        data = await self.recordings.read(stored.file, *stored.sealed.locate(start, end))
        try:
            return stored.sealed.decrypt(data, start, end)
        except SecretError as error:
            raise RecordingDamaged(str(error)) from None

    def open_audio(self, stored: StoredObject) -> StoredAudio:
        """Open a stored recording for decoding, in a thread. Raises `RecordingDamaged` too."""
        return StoredAudio(self.recordings, stored.file.key, stored.data_key)

    async def delete_segments(self, organization_id: UUID, call_id: UUID) -> None:
        """Delete a call's segments."""
        await self.recordings.delete(await self.recordings.list_keys(build_segment_prefix(organization_id, call_id)))

    async def delete_recording(self, organization_id: UUID, call_id: UUID) -> None:
        """Delete everything that the store has of a call."""
        await self.recordings.delete([build_key(organization_id, call_id, name) for name in FILE_FORMATS])
        await self.delete_segments(organization_id, call_id)

    async def put_file(self, organization_id: UUID, key: str, content: BinaryIO, content_type: str) -> None:
        """Store an object, encrypted if the organization's policy says so."""
        async with self.database.tenant(organization_id) as session:
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
        """Find an object and its key. Raises `RecordingDamaged`, and `ObjectNotFound` also for a destroyed key."""
        found, header = await self._find_header(key)
        key_id = parse_key_id(header)
        if key_id is None:
            return StoredObject(found, None, None)
        async with self.database.tenant(organization_id) as session:
            try:
                data_key = await find_organization_key_by_id(session, key_id)
            except SecretError as error:
                raise RecordingDamaged(f"the key of the recording cannot be used: {error}") from None
        if data_key is None:
            raise ObjectNotFound("the key of the recording was destroyed")
        return StoredObject(found, data_key, open_sealed(header, found.size, data_key, key))

    async def _find_header(self, key: str) -> tuple[ObjectInfo, bytes]:
        """Find an object and read its first bytes; again if it is replaced meanwhile."""
        while True:
            found = await self.recordings.find(key)
            with suppress(ObjectReplaced):
                return found, await self.recordings.read(found, 0, min(found.size, HEADER.size))

    async def _find_format(self, organization_id: UUID, call_id: UUID) -> RecordingFormat | None:
        for audio_format in FILE_FORMATS:
            try:
                await self.recordings.find(build_key(organization_id, call_id, audio_format))
            except ObjectNotFound:
                continue
            return audio_format
        return None


def build_key(organization_id: UUID, call_id: UUID, audio_format: RecordingFormat) -> str:
    """Build the key of a whole recording."""
    return f"{organization_id}/{call_id}.{audio_format}"


def build_segment_prefix(organization_id: UUID, call_id: UUID) -> str:
    """Build the prefix of the keys of a call's segments."""
    return f"{organization_id}/{call_id}"


def _encode_segment(spooled: Path, first: int, content: BinaryIO) -> int:
    try:
        file = spooled.open("rb")
    except FileNotFoundError:  # nothing is final yet, or the recording was dropped
        return 0
    with file:
        blocks = islice(read_blocks(file, first=first), MAX_SEGMENT_FRAMES // BLOCK_FRAMES)
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
