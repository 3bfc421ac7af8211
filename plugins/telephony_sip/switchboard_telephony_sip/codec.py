"""Messages of the media socket: JSON text frames in the style of Twilio Media Streams, and audio as binary frames.

A binary frame is G.711 mu-law at 8 kHz as it is, because 160 bytes of it every 20 ms cost less than JSON with base64.
"""

from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import Frame, MediaEvent, MediaStarted
from switchboard.plugin_sdk.json_media import CommonMessage, JsonMediaCodec, Mark, to_media_event


class MediaStreamInfo(msgspec.Struct):
    call_id: str
    stream_id: str
    encoding: Literal["mulaw"] = "mulaw"


class SipStart(msgspec.Struct, tag_field="event", tag="start"):
    start: MediaStreamInfo


class SipClear(msgspec.Struct, tag_field="event", tag="clear"):
    pass


FromGateway: TypeAlias = SipStart | CommonMessage
ToGateway: TypeAlias = Mark | SipClear

_from_gateway: Final[msgspec.json.Decoder[FromGateway]] = msgspec.json.Decoder(FromGateway)
MEDIA_COMMANDS: Final[msgspec.json.Decoder[ToGateway]] = msgspec.json.Decoder(ToGateway)
"""Reads a text frame of the platform. Raises `ValueError` for an unknown one."""


def write_media_event(message: FromGateway) -> str:
    """Write an event as a text frame for the platform."""
    return msgspec.json.encode(message).decode()


class SipCodec(JsonMediaCodec):
    """Codec of a gateway's media socket. It has no state, because messages do not name their stream."""

    announces_end = True

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        if isinstance(message, bytes):
            return message
        parsed = _from_gateway.decode(message)
        if isinstance(parsed, SipStart):
            return MediaStarted(parsed.start.call_id, parsed.start.stream_id, parsed.start.encoding)
        return to_media_event(parsed)

    def encode(self, audio: bytes) -> Frame:
        return audio
