"""Media streaming's messages: JSON text frames, mu-law at 8 kHz in base64.

https://developers.telnyx.com/api-reference/websockets/stream-call-media-over-websocket
"""

from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import Frame, MediaCodec, MediaEvent, MediaStarted
from switchboard.plugin_sdk.json_media import CommonMessage, MediaMessageWriter, to_media_event

from switchboard_telephony_telnyx.state import digest_media_url, read_state

LATE_FRAMES: Final = 3
"""How many frames are waited for one that is missing: 60 ms. Telnyx does not promise their order."""


class TelnyxMediaFormat(msgspec.Struct):
    """What calls are asked to be streamed in."""

    encoding: Literal["PCMU"]
    sample_rate: Literal[8000]
    channels: Literal[1] = 1


class TelnyxStream(msgspec.Struct):
    call_control_id: str
    media_format: TelnyxMediaFormat
    client_state: str | None = None


class TelnyxPayload(msgspec.Struct):
    """20 ms of a track; msgspec reads the payload from base64. `chunk` counts from 1."""

    payload: bytes
    track: Literal["inbound", "outbound"] = "inbound"
    chunk: str = ""


class TelnyxFault(msgspec.Struct):
    code: int | str = ""
    title: str = ""


class TelnyxConnected(msgspec.Struct, tag_field="event", tag="connected"):
    version: str = ""


class TelnyxStart(msgspec.Struct, tag_field="event", tag="start"):
    start: TelnyxStream
    stream_id: str


class TelnyxMedia(msgspec.Struct, tag_field="event", tag="media"):
    media: TelnyxPayload


class TelnyxError(msgspec.Struct, tag_field="event", tag="error"):
    """One of our messages was refused; the stream goes on."""

    payload: TelnyxFault


FromTelnyx: TypeAlias = TelnyxMedia | TelnyxConnected | TelnyxStart | TelnyxError | CommonMessage

_decoder: Final[msgspec.json.Decoder[FromTelnyx]] = msgspec.json.Decoder(FromTelnyx)


class FrameSequencer:
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
        self._media = digest_media_url(media_url)
        self._order = FrameSequencer()
        self._writer = MediaMessageWriter()

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        told = _decoder.decode(message)
        if isinstance(told, TelnyxMedia):
            chunk = told.media
            if chunk.track != "inbound":
                return None
            return self._order.put(int(chunk.chunk), chunk.payload) if chunk.chunk else chunk.payload
        if isinstance(told, TelnyxStart):
            return self._started(told.start, told.stream_id)
        return None if isinstance(told, TelnyxConnected | TelnyxError) else to_media_event(told)

    def encode(self, audio: bytes) -> Frame:
        return self._writer.write_media(audio)

    def clear(self) -> Frame:
        return self._writer.clear_message

    def mark(self, name: str) -> Frame:
        return self._writer.write_mark(name)

    def _started(self, start: TelnyxStream, stream_id: str) -> MediaStarted:
        if read_state(self._api_key, start.client_state).media != self._media:
            raise ValueError("the stream does not bring its call's state")
        return MediaStarted(start.call_control_id, stream_id, "mulaw")
