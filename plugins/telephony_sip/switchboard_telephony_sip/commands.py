"""Commands that the platform gives a gateway over its control API, and the gateway's results."""

from typing import Final, TypeAlias

import msgspec

COMMANDS_PATH: Final = "/commands"


class PlaceCommand(msgspec.Struct, frozen=True, tag_field="command", tag="place"):
    """Place a call, unless one with this reference was placed. `headers` are those of the INVITE."""

    reference: str
    from_number: str
    to_number: str
    media_url: str
    events_url: str
    ring_seconds: int
    max_seconds: int
    headers: dict[str, str] = {}


class FindCommand(msgspec.Struct, frozen=True, tag_field="command", tag="find"):
    """Return the id of the call with this reference."""

    reference: str


class SipHangUpCommand(msgspec.Struct, frozen=True, tag_field="command", tag="hang_up"):
    call_id: str


class TransferCommand(msgspec.Struct, frozen=True, tag_field="command", tag="transfer"):
    call_id: str
    to_number: str
    caller_id: str


class IntroduceCommand(msgspec.Struct, frozen=True, tag_field="command", tag="introduce"):
    """Call the target of a warm transfer, and play `speech`, mu-law, until it presses a key."""

    call_id: str
    to_number: str
    caller_id: str
    ring_seconds: int
    speech: bytes
    events_url: str


class SipConnectCommand(msgspec.Struct, frozen=True, tag_field="command", tag="connect"):
    """Connect a call to a target who has accepted it."""

    call_id: str
    target_call_id: str


class DigitsCommand(msgspec.Struct, frozen=True, tag_field="command", tag="digits"):
    call_id: str
    digits: str


class TextCommand(msgspec.Struct, frozen=True, tag_field="command", tag="text"):
    """Send a SIP MESSAGE over the first trunk that takes them."""

    from_number: str
    to_number: str
    body: str
    events_url: str


class CheckCommand(msgspec.Struct, frozen=True, tag_field="command", tag="check"):
    """Ask each trunk for its options, and report the registrations."""


CallCommand: TypeAlias = TransferCommand | IntroduceCommand | SipConnectCommand | DigitsCommand
"""Commands for a live call."""
Command: TypeAlias = PlaceCommand | FindCommand | SipHangUpCommand | CallCommand | TextCommand | CheckCommand


class CommandResult(msgspec.Struct, frozen=True):
    """Result of a command. `call_id` is that of the call, target, or text message; `faults` are those of a check."""

    call_id: str | None = None
    faults: list[str] = []


class CommandRefusal(msgspec.Struct, frozen=True):
    """Refusal of a command (status 409), or no such call (404)."""

    message: str
    code: str | None = None
    retryable: bool = False


class CommandRefused(Exception):
    """A command is not carried out."""

    def __init__(self, message: str, code: str | None = None, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.refusal = CommandRefusal(message, code, retryable)


_commands: Final[msgspec.json.Decoder[Command]] = msgspec.json.Decoder(Command)


def read_gateway_command(body: bytes) -> Command:
    """Parse a command. Raises `ValueError`."""
    return _commands.decode(body)
