"""The media socket's messages: JSON text frames in the manner of Twilio's media streams.

From the carrier: `start` (`call_id`, `stream_id`, `encoding`), `media` (`payload`: base64 of 20 ms of 8 kHz mu-law), `dtmf` (`digit`),
`mark` (`name`), `stop`. To the carrier: `media` (any length), `mark`, `clear`.
"""

import binascii
import json
from typing import Literal

import msgspec
from switchboard.plugins import DigitPressed, Frame, MarkReached, MediaCodec, MediaEvent, MediaStarted, MediaStopped

DIGITS = frozenset("0123456789*#ABCD")


class _Media(msgspec.Struct):
    payload: bytes


class _Start(msgspec.Struct):
    call_id: str
    stream_id: str
    encoding: Literal["mulaw", "alaw"]


class _Dtmf(msgspec.Struct):
    digit: str


class _Mark(msgspec.Struct):
    name: str


class Message(msgspec.Struct):
    """Any message, in either direction; `event` says which part it has."""

    event: Literal["start", "media", "dtmf", "mark", "stop", "clear"]
    media: _Media | None = None
    start: _Start | None = None
    dtmf: _Dtmf | None = None
    mark: _Mark | None = None


_decoder = msgspec.json.Decoder(Message)


def parse(message: Frame) -> Message:
    """Read a message. Raises `ValueError`."""
    try:
        return _decoder.decode(message)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a media message: {error}") from None


def media(audio: bytes) -> str:
    """A `media` message."""
    return f'{{"event":"media","media":{{"payload":"{binascii.b2a_base64(audio, newline=False).decode()}"}}}}'


def mark(name: str) -> str:
    """A `mark` message."""
    return json.dumps({"event": "mark", "mark": {"name": name}})


class LoopbackCodec(MediaCodec):
    """The platform's side."""

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        parsed = parse(message)
        if parsed.media is not None:
            return parsed.media.payload
        if parsed.mark is not None:
            return MarkReached(parsed.mark.name)
        if parsed.start is not None:
            return MediaStarted(parsed.start.call_id, parsed.start.stream_id, parsed.start.encoding)
        if parsed.dtmf is not None:
            if parsed.dtmf.digit not in DIGITS:
                raise ValueError("not a key of a phone")
            return DigitPressed(parsed.dtmf.digit)
        return MediaStopped() if parsed.event == "stop" else None

    def encode(self, audio: bytes) -> Frame:
        return media(audio)

    def clear(self) -> Frame:
        return '{"event":"clear"}'

    def mark(self, name: str) -> Frame:
        return mark(name)
