"""Events and codec of a carrier's media socket, part of capability `telephony`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

from switchboard.plugin_sdk.audio import Encoding


@dataclass(frozen=True, slots=True)
class MediaStarted:
    """The stream begins. `encoding` is the encoding of the audio in both directions, at 8 kHz."""

    carrier_call_id: str
    stream_id: str
    encoding: Encoding


@dataclass(frozen=True, slots=True)
class DigitPressed:
    """The caller pressed a key: `0`-`9`, `*`, `#`, or `A`-`D`."""

    digit: str


@dataclass(frozen=True, slots=True)
class MarkReached:
    """All audio sent before this mark was played, or dropped by `clear`."""

    name: str


@dataclass(frozen=True, slots=True)
class MediaStopped:
    """The stream is over: the caller hung up, perhaps before `MediaStarted`, or the call was ended."""


MediaEvent: TypeAlias = MediaStarted | DigitPressed | MarkReached | MediaStopped

Frame: TypeAlias = str | bytes


class UnsupportedAudio(ValueError):
    """The carrier starts a call's audio in an encoding that its codec cannot decode. The call is ended at once."""


class MediaCodec(ABC):
    """Encoder and decoder of one media socket's messages. Called for every 20 ms of every call, so keep it fast.

    `announces_end`: the carrier sends `MediaStopped` at the end of each call, so a socket that closes without it is
    that of a call which the carrier has lost, and which has failed.
    """

    announces_end: bool = False

    @abstractmethod
    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        """Decode one message: audio bytes in the encoding of `MediaStarted`, an event, or None for an irrelevant
        message.

        Raises `ValueError` for a message that the carrier would not send, and `UnsupportedAudio` instead of
        `MediaStarted` for audio that cannot be decoded.
        """

    @abstractmethod
    def encode(self, audio: bytes) -> Frame:
        """Encode audio of any length, in the encoding of `MediaStarted`, to be played after the audio sent before."""

    @abstractmethod
    def clear(self) -> Frame:
        """Encode the command to drop audio that is not played yet. Marks in it come back at once."""

    @abstractmethod
    def mark(self, name: str) -> Frame:
        """Encode a mark, which comes back when all audio sent before it was played."""
