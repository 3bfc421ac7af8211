"""Messages of media streaming: JSON text frames with audio in base64. Calls ask for mu-law at 8 kHz; where a caller's
own codec comes nevertheless, A-law and G.722 are decoded.

https://developers.telnyx.com/api-reference/websockets/stream-call-media-over-websocket
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np
from G722 import G722
from switchboard.plugin_sdk import Frame, MediaEvent, MediaStarted, UnsupportedAudio
from switchboard.plugin_sdk.audio import encode_audio, transcode_audio
from switchboard.plugin_sdk.json_media import CommonMessage, JsonMediaCodec, to_media_event

from switchboard_telephony_telnyx.state import digest_media_url, read_state

LATE_FRAMES: Final = 3
"""Frames to wait for a missing one: 60 ms. Telnyx does not guarantee their order."""
RESTART_FRAMES: Final = 50
"""A frame that is this far behind, one second, is not late: the stream has restarted, and so has its count."""


class TelnyxMediaFormat(msgspec.Struct):
    """Format of a stream. The clock of G.722 is 8000 or 16000, as RTP or as its audio has it."""

    encoding: str
    sample_rate: int = 8000
    channels: int = 1


class TelnyxStream(msgspec.Struct):
    call_control_id: str
    media_format: TelnyxMediaFormat
    client_state: str | None = None


class TelnyxPayload(msgspec.Struct):
    """20 ms of a track. msgspec decodes the payload from base64. `chunk` counts from 1, as a text or a number."""

    payload: bytes
    track: Literal["inbound", "outbound"] = "inbound"
    chunk: str | int = ""


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
    """One of the platform's messages was refused; the stream continues."""

    payload: TelnyxFault


FromTelnyx: TypeAlias = TelnyxMedia | TelnyxConnected | TelnyxStart | TelnyxError | CommonMessage

_decoder: Final[msgspec.json.Decoder[FromTelnyx]] = msgspec.json.Decoder(FromTelnyx)


class FrameSequencer:
    """Restores the order of frames with a short wait."""

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, bytes] = {}

    def put(self, number: int, payload: bytes) -> bytes | None:
        """Add a frame and return the audio that is now in order; None if there is none."""
        if self._next == 0 or number <= self._next - RESTART_FRAMES:
            self._next, self._early = number, {}
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


class TelnyxCodec(JsonMediaCodec):
    """Codec of one call's stream.

    The start message must contain the state that Telnyx was given together with the socket's address.
    """

    def __init__(self, api_key: str, media_url: str) -> None:
        self._api_key = api_key
        self._media = digest_media_url(media_url)
        self._order = FrameSequencer()
        self._to_mulaw: Callable[[bytes], bytes] | None = None

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        parsed = _decoder.decode(message)
        if isinstance(parsed, TelnyxMedia):
            chunk = parsed.media
            if chunk.track != "inbound":
                return None
            audio = self._order.put(int(chunk.chunk), chunk.payload) if chunk.chunk != "" else chunk.payload
            return self._to_mulaw(audio) if self._to_mulaw is not None and audio else audio
        if isinstance(parsed, TelnyxStart):
            start = parsed.start
            if read_state(self._api_key, start.client_state).media != self._media:
                raise ValueError("the stream's start does not contain its call's state")
            self._to_mulaw = choose_decoder(start.media_format)
            self._order = FrameSequencer()
            return MediaStarted(start.call_control_id, parsed.stream_id, "mulaw")
        return None if isinstance(parsed, TelnyxConnected | TelnyxError) else to_media_event(parsed)


def choose_decoder(media: TelnyxMediaFormat) -> Callable[[bytes], bytes] | None:
    """Return what turns a stream's audio into mu-law at 8 kHz, None for mu-law. Raises `UnsupportedAudio`."""
    match (media.encoding, media.sample_rate, media.channels):
        case ("PCMU", 8000, 1):
            return None
        case ("PCMA", 8000, 1):
            return partial(transcode_audio, source="alaw", target="mulaw")
        case ("G722", 8000 | 16000, 1):
            return partial(_transcode_g722, G722(8000, 64000))
    audio = f"{media.encoding} at {media.sample_rate} Hz in {media.channels} channels"
    raise UnsupportedAudio(f"Telnyx streams {audio}, which cannot be decoded.")


def _transcode_g722(decoder: G722, audio: bytes) -> bytes:
    """Decode G.722 at 64 kbit/s (ITU-T G.722), whose state spans the whole stream, to the telephone's band."""
    return encode_audio(np.asarray(decoder.decode(audio), dtype=np.int16), "mulaw")
