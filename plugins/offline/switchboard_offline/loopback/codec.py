"""The media socket's messages: JSON text frames in the style of Twilio's. See "The loopback carrier" in the plugin's README."""

from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import Frame, MediaCodec, MediaEvent, MediaStarted
from switchboard.plugin_sdk.json_media import Common, Mark, Writer, event_of


class Payload(msgspec.Struct):
    """Mu-law audio; msgspec reads it from base64."""

    payload: bytes


class StreamStart(msgspec.Struct):
    call_id: str
    stream_id: str
    encoding: Literal["mulaw"] = "mulaw"
    sample_rate: Literal[8000] = 8000


class Start(msgspec.Struct, tag_field="event", tag="start"):
    start: StreamStart


class Media(msgspec.Struct, tag_field="event", tag="media"):
    media: Payload


class Clear(msgspec.Struct, tag_field="event", tag="clear"):
    pass


FromCarrier: TypeAlias = Media | Start | Common
ToCarrier: TypeAlias = Media | Mark | Clear

_from_carrier: Final[msgspec.json.Decoder[FromCarrier]] = msgspec.json.Decoder(FromCarrier)
_to_carrier: Final[msgspec.json.Decoder[ToCarrier]] = msgspec.json.Decoder(ToCarrier)
_encoder: Final = msgspec.json.Encoder()
_write: Final = Writer()


def read_command(message: Frame) -> ToCarrier:
    """What the platform sent. Raises `ValueError` for anything else."""
    return _to_carrier.decode(message)


def media(audio: bytes) -> str:
    """Audio as a text frame."""
    return _write.media(audio)


def write(message: FromCarrier | ToCarrier) -> str:
    """A message as a text frame."""
    return _encoder.encode(message).decode()


class LoopbackCodec(MediaCodec):
    """Reads and writes the media socket. It keeps nothing: a stream's messages do not name the stream."""

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        told = _from_carrier.decode(message)
        if isinstance(told, Media):
            return told.media.payload
        if isinstance(told, Start):
            return MediaStarted(told.start.call_id, told.start.stream_id, told.start.encoding)
        return event_of(told)

    def encode(self, audio: bytes) -> Frame:
        return media(audio)

    def clear(self) -> Frame:
        return _write.clear

    def mark(self, name: str) -> Frame:
        return _write.mark(name)
