"""What media sockets have in common that speak JSON text frames in the style of Twilio's, as most carriers' do.

The rest (how a stream starts, what audio comes in) is each carrier's own; a codec puts these structs into its union and asks `event_of`.
"""

from binascii import b2a_base64
from typing import Annotated, TypeAlias

import msgspec

from switchboard.plugin_sdk.media import DigitPressed, MarkReached, MediaStopped


class Named(msgspec.Struct):
    name: str


class Digit(msgspec.Struct):
    digit: Annotated[str, msgspec.Meta(pattern="^[0-9*#A-D]$")]


class Mark(msgspec.Struct, tag_field="event", tag="mark"):
    mark: Named


class Dtmf(msgspec.Struct, tag_field="event", tag="dtmf"):
    dtmf: Digit


class Stop(msgspec.Struct, tag_field="event", tag="stop"):
    pass


Common: TypeAlias = Mark | Dtmf | Stop


def event_of(told: Common) -> MarkReached | DigitPressed | MediaStopped:
    """What one of these messages says."""
    match told:
        case Mark(mark):
            return MarkReached(mark.name)
        case Dtmf(dtmf):
            return DigitPressed(dtmf.digit)
        case Stop():
            return MediaStopped()


class Writer:
    """Writes the messages to a carrier: by hand and prepared, because audio goes out fifty times a second in every call.

    `stream` is the JSON of a name and value that each message must bring along (`"streamSid":"MZ1"`), if there is one.
    """

    def __init__(self, stream: str = "") -> None:
        more = f",{stream}" if stream else ""
        self._before_payload = f'{{"event":"media"{more},"media":{{"payload":"'
        self._before_mark = f'{{"event":"mark"{more},"mark":{{"name":'
        self.clear = f'{{"event":"clear"{more}}}'

    def media(self, audio: bytes) -> str:
        """Audio, in base64."""
        return f'{self._before_payload}{b2a_base64(audio, newline=False).decode()}"}}}}'

    def mark(self, name: str) -> str:
        """A mark."""
        return f"{self._before_mark}{msgspec.json.encode(name).decode()}}}}}"
