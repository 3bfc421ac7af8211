"""Files that are streamed from a carrier."""

from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordingStream:
    """A recording streamed from the carrier. `status` is 200 or, for a range, 206 with `content_range`."""

    status: int
    content_type: str
    content_length: int | None
    content_range: str | None
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A file of a text message, streamed from the carrier. `content_type` has no parameters (`image/jpeg`)."""

    content_type: str
    chunks: AsyncIterator[bytes]
