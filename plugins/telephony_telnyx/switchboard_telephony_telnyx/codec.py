"""Media streaming's messages: JSON text frames, mu-law at 8 kHz in base64.

https://developers.telnyx.com/api-reference/websockets/stream-call-media-over-websocket
"""

from binascii import b2a_base64
from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugins import DigitPressed, Frame, MarkReached, MediaCodec, MediaEvent, MediaStarted, MediaStopped

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


class Digit(msgspec.Struct):
    digit: str


class Named(msgspec.Struct):
    name: str


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


class Mark(msgspec.Struct, tag_field="event", tag="mark"):
    mark: Named


class Dtmf(msgspec.Struct, tag_field="event", tag="dtmf"):
    dtmf: Digit


class Error(msgspec.Struct, tag_field="event", tag="error"):
    """One of our messages was refused; the stream goes on."""

    payload: Fault


class Stop(msgspec.Struct, tag_field="event", tag="stop"):
    pass


FromTelnyx: TypeAlias = Media | Connected | Start | Mark | Dtmf | Error | Stop

_decoder: Final[msgspec.json.Decoder[FromTelnyx]] = msgspec.json.Decoder(FromTelnyx)
_KEYS: Final = frozenset("0123456789*#ABCD")


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

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        told = _decoder.decode(message)
        if type(told) is Media:
            chunk = told.media
            if chunk.track != "inbound":
                return None
            return self._order.put(int(chunk.chunk), chunk.payload) if chunk.chunk else chunk.payload
        return self._event(told)

    def encode(self, audio: bytes) -> Frame:
        return f'{{"event":"media","media":{{"payload":"{b2a_base64(audio, newline=False).decode()}"}}}}'

    def clear(self) -> Frame:
        return '{"event":"clear"}'

    def mark(self, name: str) -> Frame:
        return f'{{"event":"mark","mark":{{"name":{msgspec.json.encode(name).decode()}}}}}'

    def _event(self, told: FromTelnyx) -> MediaEvent | None:
        match told:
            case Start(start, stream_id):
                return self._started(start, stream_id)
            case Mark(mark):
                return MarkReached(mark.name)
            case Dtmf(dtmf):
                if dtmf.digit not in _KEYS:
                    raise ValueError("a key that no phone has")
                return DigitPressed(dtmf.digit)
            case Stop():
                return MediaStopped()
        return None

    def _started(self, start: StreamStart, stream_id: str) -> MediaStarted:
        if read_state(self._api_key, start.client_state).media != self._media:
            raise ValueError("the stream does not bring its call's state")
        return MediaStarted(start.call_control_id, stream_id, "mulaw")
