"""What media sockets have in common that speak JSON text frames in the style of Twilio's, as most carriers' do.

The rest (how a stream starts, what audio comes in) is each carrier's own; a codec puts these structs into its union and asks `event_of`.
"""

from binascii import b2a_base64
from typing import Annotated, TypeAlias

import msgspec

from switchboard.plugin_sdk.media import DigitPressed, MarkReached, MediaStopped


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


def to_media_event(told: CommonMessage) -> MarkReached | DigitPressed | MediaStopped:
    """What one of these messages says."""
    match told:
        case Mark(mark):
            return MarkReached(mark.name)
        case Dtmf(dtmf):
            return DigitPressed(dtmf.digit)
        case Stop():
            return MediaStopped()


class MediaMessageWriter:
    """Writes the messages to a carrier: by hand and prepared, because audio goes out fifty times a second in every call.

    `stream` is the JSON of a name and value that each message must bring along (`"streamSid":"MZ1"`), if there is one.
    """

    def __init__(self, stream: str = "") -> None:
        more = f",{stream}" if stream else ""
        self._before_payload = f'{{"event":"media"{more},"media":{{"payload":"'
        self._before_mark = f'{{"event":"mark"{more},"mark":{{"name":'
        self.clear_message = f'{{"event":"clear"{more}}}'

    def write_media(self, audio: bytes) -> str:
        """Audio, in base64."""
        return f'{self._before_payload}{b2a_base64(audio, newline=False).decode()}"}}}}'

    def write_mark(self, name: str) -> str:
        """A mark."""
        return f"{self._before_mark}{msgspec.json.encode(name).decode()}}}}}"
