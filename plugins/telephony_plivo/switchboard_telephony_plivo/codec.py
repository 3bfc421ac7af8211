"""Messages of Audio Streaming: JSON text frames with mu-law at 8 kHz in base64.

https://www.plivo.com/docs/voice-agents/audio-streaming/concepts/audio-streaming-reference
"""

import hmac
import re
from binascii import b2a_base64
from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import Frame, MarkReached, MediaCodec, MediaEvent, MediaStarted, UnsupportedAudio
from switchboard.plugin_sdk.json_media import Dtmf, Stop, to_media_event

ENCODING: Final = "audio/x-mulaw"
SAMPLE_RATE: Final = 8000
_TOKEN: Final = re.compile(rb"[0-9a-f]{64}")
_BEFORE_PAYLOAD: Final = (
    f'{{"event":"playAudio","media":{{"contentType":"{ENCODING}","sampleRate":{SAMPLE_RATE},"payload":"'
)


class PlivoMediaFormat(msgspec.Struct, rename="camel"):
    encoding: str
    sample_rate: int


class PlivoStream(msgspec.Struct, rename="camel"):
    call_id: str
    stream_id: str
    media_format: PlivoMediaFormat


class PlivoPayload(msgspec.Struct):
    """20 ms of a track. msgspec decodes the payload from base64."""

    payload: bytes
    track: Literal["inbound", "outbound"] = "inbound"


class PlivoStart(msgspec.Struct, tag_field="event", tag="start"):
    start: PlivoStream
    extra_headers: msgspec.Raw = msgspec.Raw()


class PlivoMedia(msgspec.Struct, tag_field="event", tag="media"):
    media: PlivoPayload


class PlayedStream(msgspec.Struct, tag_field="event", tag="playedStream"):
    name: str


class ClearedAudio(msgspec.Struct, tag_field="event", tag="clearedAudio"):
    """The audio was dropped, and its checkpoints with it: they do not come back."""


FromPlivo: TypeAlias = PlivoMedia | PlivoStart | PlayedStream | ClearedAudio | Dtmf | Stop

_decoder: Final[msgspec.json.Decoder[FromPlivo]] = msgspec.json.Decoder(FromPlivo)


class PlivoCodec(MediaCodec):
    """Codec of one call's stream."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._stream = ""

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        parsed = _decoder.decode(message)
        match parsed:
            case PlivoMedia(media):
                return media.payload if media.track == "inbound" else None
            case PlivoStart():
                return self._translate_start(parsed)
            case PlayedStream(name):
                return MarkReached(name)
            case ClearedAudio():
                return None
            case _:
                return to_media_event(parsed)

    def encode(self, audio: bytes) -> Frame:
        return f'{_BEFORE_PAYLOAD}{b2a_base64(audio, newline=False).decode()}"}}}}'

    def clear(self) -> Frame:
        return f'{{"event":"clearAudio",{self._stream}}}'

    def mark(self, name: str) -> Frame:
        return f'{{"event":"checkpoint",{self._stream},"name":{msgspec.json.encode(name).decode()}}}'

    def _translate_start(self, message: PlivoStart) -> MediaStarted:
        # Plivo's pages disagree on how it writes the pairs of `extraHeaders`, so the token is found by its form.
        given = _TOKEN.findall(bytes(message.extra_headers))
        if not any(hmac.compare_digest(one, self._token.encode()) for one in given):
            raise ValueError("the stream's start does not contain its call's token")
        stream, media_format = message.start, message.start.media_format
        if (media_format.encoding, media_format.sample_rate) != (ENCODING, SAMPLE_RATE):
            raise UnsupportedAudio(f"Plivo streams {media_format.encoding} at {media_format.sample_rate} Hz")
        self._stream = f'"streamId":{msgspec.json.encode(stream.stream_id).decode()}'
        return MediaStarted(stream.call_id, stream.stream_id, "mulaw")
