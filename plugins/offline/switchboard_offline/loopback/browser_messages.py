"""Messages of a browser's socket. Audio is binary: 16-bit PCM of 8 kHz in both directions."""

from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import BrowserSocket


class DialMessage(msgspec.Struct, frozen=True, tag_field="event", tag="dial"):
    """First message of a browser that calls."""

    token: str
    to_number: str
    from_number: str = ""


class RegisterMessage(msgspec.Struct, frozen=True, tag_field="event", tag="register"):
    """First message of a client that waits for calls."""

    token: str


class AnswerMessage(msgspec.Struct, frozen=True, tag_field="event", tag="answer"):
    """The client answers the call that rings."""


class DeclineMessage(msgspec.Struct, frozen=True, tag_field="event", tag="decline"):
    """The client declines the call that rings."""


class DigitMessage(msgspec.Struct, frozen=True, tag_field="event", tag="digit"):
    """A pressed key."""

    digit: Literal["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "*", "#"]


class HangUpMessage(msgspec.Struct, frozen=True, tag_field="event", tag="hang_up"):
    """The browser ends the call."""


class RegisteredMessage(msgspec.Struct, frozen=True, tag_field="event", tag="registered"):
    """The client waits for calls. Repeated while it does, so that proxies keep the socket open."""


class RingingMessage(msgspec.Struct, frozen=True, tag_field="event", tag="ringing"):
    """A call rings, from the number that it shows."""

    from_number: str


class CanceledMessage(msgspec.Struct, frozen=True, tag_field="event", tag="canceled"):
    """The call no longer rings: another client has answered it, none has in time, or the caller has hung up."""


class ConnectedMessage(msgspec.Struct, frozen=True, tag_field="event", tag="connected"):
    """The call was answered. `call_id` is the carrier's id."""

    call_id: str


class EndedMessage(msgspec.Struct, frozen=True, tag_field="event", tag="ended"):
    """Last message, with the reason if the call was not answered or broke, or the client no longer waits."""

    message: str | None = None


FromBrowser: TypeAlias = DialMessage | RegisterMessage | AnswerMessage | DeclineMessage | DigitMessage | HangUpMessage
ToBrowser: TypeAlias = RegisteredMessage | RingingMessage | CanceledMessage | ConnectedMessage | EndedMessage
_decoder: Final[msgspec.json.Decoder[FromBrowser]] = msgspec.json.Decoder(FromBrowser)


def read_message(message: str | bytes | None) -> FromBrowser | None:
    """Return a browser's message; None for audio, the end, and anything that is not understood."""
    if not isinstance(message, str):
        return None
    try:
        return _decoder.decode(message)
    except (msgspec.MsgspecError, UnicodeError):
        return None


async def send_to_browser(socket: BrowserSocket, message: ToBrowser) -> None:
    """Send a message; no effect on a closed socket."""
    try:
        await socket.send(msgspec.json.encode(message).decode())
    except ConnectionError:
        return
