"""Mu-law audio in frames of 20 ms, 160 bytes each."""

from typing import Final

FRAME_BYTES: Final = 160
"""20 ms."""
SILENT_FRAME: Final = b"\xff" * FRAME_BYTES
AUDIBLE_LEVEL: Final = 0x20
"""A peak of about -38 dB below full scale: above a line's noise, below anybody's voice."""
_LEVELS: Final = bytes(~code & 0x7F for code in range(256))


def is_audible(frame: bytes) -> bool:
    """Return whether anything can be heard in the frame."""
    return max(frame.translate(_LEVELS), default=0) >= AUDIBLE_LEVEL


def split_frames(audio: bytes) -> list[bytes]:
    """Cut audio into frames of 20 ms, the last one padded with silence."""
    return [audio[at : at + FRAME_BYTES].ljust(FRAME_BYTES, b"\xff") for at in range(0, len(audio), FRAME_BYTES)]
