"""Messages of Media Streams: JSON text frames with mu-law at 8 kHz in base64.

https://www.twilio.com/docs/voice/media-streams/websocket-messages
"""

import hmac
from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import Frame, MediaEvent, MediaStarted
from switchboard.plugin_sdk.json_media import CommonMessage, JsonMediaCodec, MediaMessageWriter, to_media_event

TOKEN: Final = "token"  # noqa: S105  a name, not a token
"""Custom parameter that proves that a stream belongs to its call."""


class TwilioMediaFormat(msgspec.Struct, rename="camel"):
    """The only format of bidirectional streams."""

    encoding: Literal["audio/x-mulaw"]
    sample_rate: Literal[8000]
    channels: Literal[1] = 1


class TwilioStream(msgspec.Struct, rename="camel"):
    account_sid: str
    stream_sid: str
    call_sid: str
    media_format: TwilioMediaFormat
    custom_parameters: dict[str, str] = {}


class TwilioPayload(msgspec.Struct):
    """20 ms of a track. msgspec decodes the payload from base64."""

    payload: bytes
    track: Literal["inbound", "outbound"] = "inbound"


class TwilioConnected(msgspec.Struct, tag_field="event", tag="connected"):
    protocol: str = ""


class TwilioStart(msgspec.Struct, tag_field="event", tag="start", rename="camel"):
    start: TwilioStream


class TwilioMedia(msgspec.Struct, tag_field="event", tag="media"):
    media: TwilioPayload


FromTwilio: TypeAlias = TwilioMedia | TwilioConnected | TwilioStart | CommonMessage

_decoder: Final[msgspec.json.Decoder[FromTwilio]] = msgspec.json.Decoder(FromTwilio)


class TwilioCodec(JsonMediaCodec):
    """Codec of one call's stream."""

    def __init__(self, token: str) -> None:
        self._token = token

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        parsed = _decoder.decode(message)
        if isinstance(parsed, TwilioMedia):
            return parsed.media.payload if parsed.media.track == "inbound" else None
        if isinstance(parsed, TwilioStart):
            start = parsed.start
            if not hmac.compare_digest(start.custom_parameters.get(TOKEN, "").encode(), self._token.encode()):
                raise ValueError("the stream's start does not contain its call's token")
            self.writer = MediaMessageWriter(f'"streamSid":{msgspec.json.encode(start.stream_sid).decode()}')
            return MediaStarted(start.call_sid, start.stream_sid, "mulaw")
        return None if isinstance(parsed, TwilioConnected) else to_media_event(parsed)
