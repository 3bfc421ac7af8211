"""Acme's media socket: JSON messages with μ-law audio in base64, in the style of many carriers."""

from binascii import a2b_base64
from typing import Final

import msgspec
from switchboard.plugin_sdk import Frame, MediaEvent, MediaStarted
from switchboard.plugin_sdk.json_media import Dtmf, JsonMediaCodec, Mark, Stop, to_media_event


class _Call(msgspec.Struct):
    call_id: str
    stream_id: str


class _Audio(msgspec.Struct):
    payload: str


class _Start(msgspec.Struct, tag_field="event", tag="start"):
    start: _Call


class _Media(msgspec.Struct, tag_field="event", tag="media"):
    media: _Audio


_DECODER: Final = msgspec.json.Decoder(_Start | _Media | Mark | Dtmf | Stop)


class AcmeCodec(JsonMediaCodec):
    """Codec of one call."""

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        """Decode a message. A message that Acme would not send raises a `ValueError`, as msgspec's and binascii's
        errors are.
        """
        event = _DECODER.decode(message)
        if isinstance(event, _Media):
            return a2b_base64(event.media.payload, strict_mode=True)
        if isinstance(event, _Start):
            return MediaStarted(event.start.call_id, event.start.stream_id, "mulaw")
        return to_media_event(event)
