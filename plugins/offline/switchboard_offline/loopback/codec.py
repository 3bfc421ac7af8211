"""Messages of the media socket: JSON text frames in the style of Twilio Media Streams (see the plugin's README)."""

from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import Frame, MediaEvent, MediaStarted
from switchboard.plugin_sdk.json_media import CommonMessage, JsonMediaCodec, Mark, to_media_event


class LoopbackPayload(msgspec.Struct):
    """Mu-law audio; msgspec decodes it from base64."""

    payload: bytes


class LoopbackStream(msgspec.Struct):
    call_id: str
    stream_id: str
    encoding: Literal["mulaw"] = "mulaw"
    sample_rate: Literal[8000] = 8000


class LoopbackStart(msgspec.Struct, tag_field="event", tag="start"):
    start: LoopbackStream


class LoopbackMedia(msgspec.Struct, tag_field="event", tag="media"):
    media: LoopbackPayload


class LoopbackClear(msgspec.Struct, tag_field="event", tag="clear"):
    pass


FromCarrier: TypeAlias = LoopbackMedia | LoopbackStart | CommonMessage
ToCarrier: TypeAlias = LoopbackMedia | Mark | LoopbackClear

_from_carrier: Final[msgspec.json.Decoder[FromCarrier]] = msgspec.json.Decoder(FromCarrier)
_to_carrier: Final[msgspec.json.Decoder[ToCarrier]] = msgspec.json.Decoder(ToCarrier)
_encoder: Final = msgspec.json.Encoder()


def read_command(message: Frame) -> ToCarrier:
    """Parse a message of the platform. Raises `ValueError` for an unknown one."""
    return _to_carrier.decode(message)


def write_message(message: FromCarrier | ToCarrier) -> str:
    """Write a message as a text frame."""
    return _encoder.encode(message).decode()


class LoopbackCodec(JsonMediaCodec):
    """Codec of the media socket. It has no state, because messages do not name their stream."""

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        parsed = _from_carrier.decode(message)
        if isinstance(parsed, LoopbackMedia):
            return parsed.media.payload
        if isinstance(parsed, LoopbackStart):
            return MediaStarted(parsed.start.call_id, parsed.start.stream_id, parsed.start.encoding)
        return to_media_event(parsed)
