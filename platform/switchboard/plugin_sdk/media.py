"""The media socket of capability `telephony`: what a carrier says on it, and how its messages are read and written."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

from switchboard.plugin_sdk.audio import Encoding


@dataclass(frozen=True, slots=True)
class MediaStarted:
    """The stream begins. `encoding` is that of the caller's audio (8 kHz G.711, whatever we send)."""

    carrier_call_id: str
    stream_id: str
    encoding: Encoding


@dataclass(frozen=True, slots=True)
class DigitPressed:
    """The caller pressed a key: `0`-`9`, `*`, `#`, `A`-`D`."""

    digit: str


@dataclass(frozen=True, slots=True)
class MarkReached:
    """All audio sent before this mark has been played, or was dropped by `clear`."""

    name: str


@dataclass(frozen=True, slots=True)
class MediaStopped:
    """The stream is over: the caller hung up or the call was ended."""


MediaEvent: TypeAlias = MediaStarted | DigitPressed | MarkReached | MediaStopped

Frame: TypeAlias = str | bytes


class MediaCodec(ABC):
    """One call's media socket, read and written in the carrier's messages. Called for every 20 ms of every call: keep it lean."""

    @abstractmethod
    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        """Read one message: audio as bytes in the encoding of `MediaStarted`, an event, or None for what does not matter.

        Raises `ValueError` for what the carrier would not send.
        """

    @abstractmethod
    def encode(self, audio: bytes) -> Frame:
        """Write G.711 audio (the encoding that `MediaStarted` named, any length) to be played after what was sent before."""

    @abstractmethod
    def clear(self) -> Frame:
        """Drop what has not been played yet; marks in it come back at once."""

    @abstractmethod
    def mark(self, name: str) -> Frame:
        """Ask to be told when everything sent so far has been played."""
