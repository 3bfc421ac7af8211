"""Media Streams' messages (https://www.twilio.com/docs/voice/media-streams/websocket-messages): JSON text frames, mu-law at 8 kHz in base64."""

import hashlib
import hmac
from binascii import b2a_base64
from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugins import DigitPressed, Frame, MarkReached, MediaCodec, MediaEvent, MediaStarted, MediaStopped

TOKEN: Final = "token"  # noqa: S105  its name, not one
"""The stream's custom parameter that shows that it is the call's own."""


class MediaFormat(msgspec.Struct, rename="camel"):
    """What a bidirectional stream always has."""

    encoding: Literal["audio/x-mulaw"]
    sample_rate: Literal[8000]
    channels: Literal[1] = 1


class StreamStart(msgspec.Struct, rename="camel"):
    account_sid: str
    stream_sid: str
    call_sid: str
    media_format: MediaFormat
    custom_parameters: dict[str, str] = {}


class Chunk(msgspec.Struct):
    """20 ms of a track; msgspec reads the payload from base64."""

    payload: bytes
    track: Literal["inbound", "outbound"] = "inbound"


class Digit(msgspec.Struct):
    digit: str


class Named(msgspec.Struct):
    name: str


class Connected(msgspec.Struct, tag_field="event", tag="connected"):
    protocol: str = ""


class Start(msgspec.Struct, tag_field="event", tag="start", rename="camel"):
    start: StreamStart


class Media(msgspec.Struct, tag_field="event", tag="media"):
    media: Chunk


class Mark(msgspec.Struct, tag_field="event", tag="mark"):
    mark: Named


class Dtmf(msgspec.Struct, tag_field="event", tag="dtmf"):
    dtmf: Digit


class Stop(msgspec.Struct, tag_field="event", tag="stop"):
    pass


FromTwilio: TypeAlias = Media | Connected | Start | Mark | Dtmf | Stop

_decoder: Final[msgspec.json.Decoder[FromTwilio]] = msgspec.json.Decoder(FromTwilio)
_KEYS: Final = frozenset("0123456789*#ABCD")


def stream_token(auth_token: str, media_url: str) -> str:
    """What the stream to this address must bring along: Twilio gets it with the call's instructions, and nobody reads it in an address."""
    return hmac.new(auth_token.encode(), b"media stream " + media_url.encode(), hashlib.sha256).hexdigest()


class TwilioCodec(MediaCodec):
    """Reads and writes one call's stream."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._before_payload = self._clear = ""
        self._before_mark = ""

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        told = _decoder.decode(message)
        if type(told) is Media:
            return told.media.payload if told.media.track == "inbound" else None
        return self._event(told)

    def encode(self, audio: bytes) -> Frame:
        return f'{self._before_payload}{b2a_base64(audio, newline=False).decode()}"}}}}'

    def clear(self) -> Frame:
        return self._clear

    def mark(self, name: str) -> Frame:
        return f"{self._before_mark}{msgspec.json.encode(name).decode()}}}}}"

    def _event(self, told: FromTwilio) -> MediaEvent | None:
        match told:
            case Start(start):
                return self._started(start)
            case Mark(mark):
                return MarkReached(mark.name)
            case Dtmf(dtmf):
                if dtmf.digit not in _KEYS:
                    raise ValueError("a key that no phone has")
                return DigitPressed(dtmf.digit)
            case Stop():
                return MediaStopped()
        return None

    def _started(self, start: StreamStart) -> MediaStarted:
        if not hmac.compare_digest(start.custom_parameters.get(TOKEN, "").encode(), self._token.encode()):
            raise ValueError("the stream does not bring its call's token")
        stream = msgspec.json.encode(start.stream_sid).decode()
        # Written by hand and beforehand: audio goes out ten times a second in every call.
        self._before_payload = f'{{"event":"media","streamSid":{stream},"media":{{"payload":"'
        self._before_mark = f'{{"event":"mark","streamSid":{stream},"mark":{{"name":'
        self._clear = f'{{"event":"clear","streamSid":{stream}}}'
        return MediaStarted(start.call_sid, start.stream_sid, "mulaw")
