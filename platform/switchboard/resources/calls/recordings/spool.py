"""The spool: recordings on the disk of the process that has their call, until the store has them.

A recording is locked while its call writes it, and while it is uploaded. The kernel unlocks the files of a dead
process, so whoever gets the lock has a finished recording.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from switchboard.engine.conversation.media.recording import HEADER
from switchboard.foundation.settings import Settings
from switchboard.resources.calls.recordings.file_formats import BLOCK_FRAMES, FRAME_BYTES, Frames, parse_frames
from switchboard.resources.stored_files import get_spool_folder


@dataclass(frozen=True, slots=True)
class SpooledRecording:
    organization_id: UUID
    call_id: UUID
    path: Path


def build_spool_path(settings: Settings, organization_id: UUID, call_id: UUID) -> Path:
    return get_spool_folder(settings) / f"{organization_id}.{call_id}.wav"


def list_spooled(settings: Settings) -> list[SpooledRecording]:
    """List the recordings in the spool, those of live calls too, the oldest call first."""
    found = []
    for path in get_spool_folder(settings).glob("*.*.wav"):
        organization_id, _, call_id = path.stem.partition(".")
        with suppress(ValueError):  # another program's file
            found.append(SpooledRecording(UUID(organization_id), UUID(call_id), path))
    return sorted(found, key=lambda recording: recording.call_id)


def measure_spool(settings: Settings) -> int:
    """Return the size of the recordings in the spool in bytes."""
    size = 0
    for path in get_spool_folder(settings).glob("*.*.wav"):
        with suppress(FileNotFoundError):  # it has just been uploaded
            size += path.stat().st_size
    return size


@contextmanager
def lock_spooled(path: Path) -> Iterator[BinaryIO | None]:
    """Open a recording for this process alone. None if another process has it, or had it and has uploaded it."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        yield None
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield file if os.fstat(file.fileno()).st_nlink else None


def read_blocks(file: BinaryIO, *, first: int = 0) -> Iterator[Frames]:
    """Yield the frames of a spooled recording from `first` on, in blocks."""
    # The header is not read: a killed process may have left an old length in it.
    file.seek(HEADER.size + first * FRAME_BYTES)
    while len(frames := parse_frames(file.read(BLOCK_FRAMES * FRAME_BYTES))):
        yield frames
