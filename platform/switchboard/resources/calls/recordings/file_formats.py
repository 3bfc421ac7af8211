"""Audio formats of stored recordings, over libsndfile. Everything here blocks, so it runs in a thread."""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final, TypeAlias

import numpy as np
import soundfile

from switchboard.engine.conversation.media.recording import RATE
from switchboard.resources.stored_files import FileDamaged

Frames: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.int16]]"
"""Stereo frames at 8 kHz, one row each: caller, agent."""

FRAME_BYTES: Final = 4
BLOCK_FRAMES: Final = 8 * RATE


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format: its media type, and libsndfile's names of its container and its encoding."""

    content_type: str
    container: str
    encoding: str


FILE_FORMATS: Final[dict[str, FileFormat]] = {
    "wav": FileFormat("audio/wav", "WAV", "PCM_16"),
    "flac": FileFormat("audio/flac", "FLAC", "PCM_16"),
    "opus": FileFormat("audio/ogg", "OGG", "OPUS"),
}


class RecordingWriter:
    """Encoder into a file, for blocks of frames. The end of its context completes the file, and rewinds it.

    Raises `FileDamaged` if the file cannot be written, for instance because the disk is full.
    """

    def __init__(self, file: IO[bytes], audio_format: str) -> None:
        target = FILE_FORMATS[audio_format]
        self.frames = 0
        self._target = file
        with _translate_errors("encoded"):
            self._file = soundfile.SoundFile(
                _get_descriptor(file),
                "w",
                samplerate=RATE,
                channels=2,
                format=target.container,
                subtype=target.encoding,
                closefd=False,
            )

    def __enter__(self) -> "RecordingWriter":
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        with _translate_errors("encoded"):
            self._file.close()
        if failed is None:
            # libsndfile does not report what it could not write at the end.
            self._target.seek(0)
            if self.frames and RecordingReader(self._target).frames != self.frames:
                raise FileDamaged("the recording cannot be encoded: the file is incomplete")
            self._target.seek(0)

    def write(self, frames: Frames) -> None:
        with _translate_errors("encoded"):
            self._file.write(frames)
        self.frames += len(frames)


class RecordingReader:
    """Decoder of a file: `frames` is its length. Raises `FileDamaged` for a file without readable audio."""

    def __init__(self, file: IO[bytes] | io.RawIOBase) -> None:
        with _translate_errors("decoded"):
            self._file = soundfile.SoundFile(file)
        self.frames: int = self._file.frames
        self._position = 0

    def read(self, first: int, count: int) -> Frames:
        """Return the `count` frames from `first` on, or those up to the end. Raises `FileDamaged`."""
        with _translate_errors("decoded"):
            if first != self._position:
                self._file.seek(first)
            found: Frames = self._file.read(count, dtype="int16", always_2d=True)
        if len(found) < min(count, self.frames - first):
            raise FileDamaged("the recording is shorter than it says")
        self._position = first + len(found)
        return found


def encode(blocks: Iterable[Frames], file: IO[bytes], audio_format: str) -> int:
    """Encode blocks of frames into a file, rewind it, and return their number. Raises `FileDamaged`."""
    with RecordingWriter(file, audio_format) as writer:
        for frames in blocks:
            writer.write(frames)
    return writer.frames


def parse_frames(data: bytes) -> Frames:
    """Convert the samples of the spool to frames, without an incomplete one at the end."""
    whole = len(data) // FRAME_BYTES * FRAME_BYTES
    return np.frombuffer(data[:whole], dtype="<i2").reshape(-1, 2)


def _get_descriptor(file: IO[bytes]) -> IO[bytes] | int:
    """Return the descriptor of a file on the disk: libsndfile writes it without calling back into Python."""
    try:
        return file.fileno()
    except OSError:  # a file in memory has none
        return file


@contextmanager
def _translate_errors(action: str) -> Iterator[None]:
    try:
        yield
    except (soundfile.SoundFileError, AssertionError) as error:  # it asserts that all frames were written
        raise FileDamaged(f"the recording cannot be {action}: {error or 'the disk may be full'}") from error
