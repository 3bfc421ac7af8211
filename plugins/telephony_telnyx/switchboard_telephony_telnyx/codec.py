"""Media streaming's messages: JSON text frames, mu-law at 8 kHz in base64.

https://developers.telnyx.com/api-reference/websockets/stream-call-media-over-websocket
"""

from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import Frame, MediaCodec, MediaEvent, MediaStarted
from switchboard.plugin_sdk.json_media import Common, Writer, event_of

from switchboard_telephony_telnyx.state import media_digest, read_state

LATE_FRAMES: Final = 3
"""How many frames are waited for one that is missing: 60 ms. Telnyx does not promise their order."""


class MediaFormat(msgspec.Struct):
    """What calls are asked to be streamed in."""

    encoding: Literal["PCMU"]
    sample_rate: Literal[8000]
    channels: Literal[1] = 1


class StreamStart(msgspec.Struct):
    call_control_id: str
    media_format: MediaFormat
    client_state: str | None = None


class Chunk(msgspec.Struct):
    """20 ms of a track; msgspec reads the payload from base64. `chunk` counts from 1."""

    payload: bytes
    track: Literal["inbound", "outbound"] = "inbound"
    chunk: str = ""


class Fault(msgspec.Struct):
    code: int | str = ""
    title: str = ""


class Connected(msgspec.Struct, tag_field="event", tag="connected"):
    version: str = ""


class Start(msgspec.Struct, tag_field="event", tag="start"):
    start: StreamStart
    stream_id: str


class Media(msgspec.Struct, tag_field="event", tag="media"):
    media: Chunk


class Error(msgspec.Struct, tag_field="event", tag="error"):
    """One of our messages was refused; the stream goes on."""

    payload: Fault


FromTelnyx: TypeAlias = Media | Connected | Start | Error | Common

_decoder: Final[msgspec.json.Decoder[FromTelnyx]] = msgspec.json.Decoder(FromTelnyx)


class Order:
    """Puts frames into their order, without waiting long."""

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, bytes] = {}

    def put(self, number: int, payload: bytes) -> bytes | None:
        """Take a frame; answers what can be heard now."""
        if self._next == 0:
            self._next = number
        if number < self._next:
            return None
        self._early[number] = payload
        if number > self._next:
            if len(self._early) <= LATE_FRAMES:
                return None
            self._next = min(self._early)
        heard = b""
        while self._next in self._early:
            heard += self._early.pop(self._next)
            self._next += 1
        return heard


class TelnyxCodec(MediaCodec):
    """Reads and writes one call's stream. The start must bring along the state that Telnyx was given with the socket's address."""

    def __init__(self, api_key: str, media_url: str) -> None:
        self._api_key = api_key
        self._media = media_digest(media_url)
        self._order = Order()
        self._write = Writer()

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        told = _decoder.decode(message)
        if isinstance(told, Media):
            chunk = told.media
            if chunk.track != "inbound":
                return None
            return self._order.put(int(chunk.chunk), chunk.payload) if chunk.chunk else chunk.payload
        if isinstance(told, Start):
            return self._started(told.start, told.stream_id)
        return None if isinstance(told, Connected | Error) else event_of(told)

    def encode(self, audio: bytes) -> Frame:
        return self._write.media(audio)

    def clear(self) -> Frame:
        return self._write.clear

    def mark(self, name: str) -> Frame:
        return self._write.mark(name)

    def _started(self, start: StreamStart, stream_id: str) -> MediaStarted:
        if read_state(self._api_key, start.client_state).media != self._media:
            raise ValueError("the stream does not bring its call's state")
        return MediaStarted(start.call_control_id, stream_id, "mulaw")
