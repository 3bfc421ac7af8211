"""The media socket's messages: JSON text frames in the style of Twilio's. See "The loopback carrier" in the plugin's README."""

from binascii import b2a_base64
from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugins import DigitPressed, Frame, MarkReached, MediaCodec, MediaEvent, MediaStarted, MediaStopped


class Payload(msgspec.Struct):
    """Mu-law audio; msgspec reads it from base64."""

    payload: bytes


class Named(msgspec.Struct):
    name: str


class Digit(msgspec.Struct):
    digit: str


class StreamStart(msgspec.Struct):
    call_id: str
    stream_id: str
    encoding: Literal["mulaw"] = "mulaw"
    sample_rate: Literal[8000] = 8000


class Start(msgspec.Struct, tag_field="event", tag="start"):
    start: StreamStart


class Media(msgspec.Struct, tag_field="event", tag="media"):
    media: Payload


class Mark(msgspec.Struct, tag_field="event", tag="mark"):
    mark: Named


class Dtmf(msgspec.Struct, tag_field="event", tag="dtmf"):
    dtmf: Digit


class Clear(msgspec.Struct, tag_field="event", tag="clear"):
    pass


class Stop(msgspec.Struct, tag_field="event", tag="stop"):
    pass


FromCarrier: TypeAlias = Media | Start | Mark | Dtmf | Stop
ToCarrier: TypeAlias = Media | Mark | Clear

_from_carrier: Final[msgspec.json.Decoder[FromCarrier]] = msgspec.json.Decoder(FromCarrier)
_to_carrier: Final[msgspec.json.Decoder[ToCarrier]] = msgspec.json.Decoder(ToCarrier)
_encoder: Final = msgspec.json.Encoder()
_CLEAR: Final = '{"event":"clear"}'


def read_command(message: Frame) -> ToCarrier:
    """What the platform sent. Raises `ValueError` for anything else."""
    return _to_carrier.decode(message)


def write(message: FromCarrier | ToCarrier) -> str:
    """A message as a text frame."""
    return _encoder.encode(message).decode()


def media(audio: bytes) -> str:
    """Audio as a text frame; written by hand because it is sent fifty times a second in every call."""
    return f'{{"event":"media","media":{{"payload":"{b2a_base64(audio, newline=False).decode()}"}}}}'


class LoopbackCodec(MediaCodec):
    """Reads and writes the media socket. It keeps nothing: a stream's messages do not name the stream."""

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        told = _from_carrier.decode(message)
        if type(told) is Media:
            return told.media.payload
        return _event(told)

    def encode(self, audio: bytes) -> Frame:
        return media(audio)

    def clear(self) -> Frame:
        return _CLEAR

    def mark(self, name: str) -> Frame:
        return write(Mark(Named(name)))


def _event(told: FromCarrier) -> MediaEvent | None:
    match told:
        case Start(start):
            return MediaStarted(start.call_id, start.stream_id, start.encoding)
        case Mark(mark):
            return MarkReached(mark.name)
        case Dtmf(dtmf):
            return DigitPressed(dtmf.digit)
        case Stop():
            return MediaStopped()
    return None
