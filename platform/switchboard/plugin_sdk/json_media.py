"""Messages that many carriers' media sockets share: JSON text frames in the style of Twilio Media Streams.

The start message and inbound audio differ by carrier. A codec adds these structs to its own union and passes them to
`to_media_event`.
"""

import hashlib
import hmac
from binascii import b2a_base64
from typing import Annotated, TypeAlias

import msgspec

from switchboard.plugin_sdk.media import DigitPressed, Frame, MarkReached, MediaCodec, MediaStopped


class MarkName(msgspec.Struct):
    name: str


class DtmfDigit(msgspec.Struct):
    digit: Annotated[str, msgspec.Meta(pattern="^[0-9*#A-D]$")]


class Mark(msgspec.Struct, tag_field="event", tag="mark"):
    mark: MarkName


class Dtmf(msgspec.Struct, tag_field="event", tag="dtmf"):
    dtmf: DtmfDigit


class Stop(msgspec.Struct, tag_field="event", tag="stop"):
    pass


CommonMessage: TypeAlias = Mark | Dtmf | Stop


def to_media_event(message: CommonMessage) -> MarkReached | DigitPressed | MediaStopped:
    """Translate one of these messages to an event."""
    match message:
        case Mark(mark):
            return MarkReached(mark.name)
        case Dtmf(dtmf):
            return DigitPressed(dtmf.digit)
        case Stop():
            return MediaStopped()


class MediaMessageWriter:
    """Writer of the messages to a carrier, from prepared strings because audio is sent 50 times a second in each call.

    `stream` is the JSON of a name and value that each message must contain (`"streamSid":"MZ1"`), if any.
    """

    def __init__(self, stream: str = "") -> None:
        more = f",{stream}" if stream else ""
        self._before_payload = f'{{"event":"media"{more},"media":{{"payload":"'
        self._before_mark = f'{{"event":"mark"{more},"mark":{{"name":'
        self.clear_message = f'{{"event":"clear"{more}}}'

    def write_media(self, audio: bytes) -> str:
        """Write audio, in base64."""
        return f'{self._before_payload}{b2a_base64(audio, newline=False).decode()}"}}}}'

    def write_mark(self, name: str) -> str:
        """Write a mark."""
        return f"{self._before_mark}{msgspec.json.encode(name).decode()}}}}}"


class JsonMediaCodec(MediaCodec):
    """A codec that writes these messages. A subclass decodes its carrier's, and may set a `writer` for its stream."""

    writer: MediaMessageWriter = MediaMessageWriter()

    def encode(self, audio: bytes) -> Frame:
        return self.writer.write_media(audio)

    def clear(self) -> Frame:
        return self.writer.clear_message

    def mark(self, name: str) -> Frame:
        return self.writer.write_mark(name)


def derive_stream_token(secret: str, media_url: str) -> str:
    """Return the token that a stream to this address must bring along, 64 hexadecimal digits.

    A carrier that passes data from a call's instructions on to the stream gets it with them, so the token is in no
    address that could be logged. `secret` is one of the account at the carrier.
    """
    return hmac.new(secret.encode(), b"media stream " + media_url.encode(), hashlib.sha256).hexdigest()
