"""Commands that the platform gives a gateway over its control API, and the gateway's results."""

from typing import Final, Literal, TypeAlias

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


class TraceCommand(msgspec.Struct, frozen=True, tag_field="command", tag="trace"):
    """Return the SIP messages of a call, live or lately ended."""

    call_id: str


Command: TypeAlias = (
    PlaceCommand
    | FindCommand
    | SipHangUpCommand
    | TransferCommand
    | DigitsCommand
    | TextCommand
    | CheckCommand
    | TraceCommand
)


class TraceEntry(msgspec.Struct, frozen=True):
    """One SIP message of a call, masked. `at` is in seconds since 1970, addresses are `host:port`.

    `summary` is the method, or status and reason. `text` is the message, shortened if it is long.
    """

    at: float
    direction: Literal["in", "out"]
    local: str
    remote: str
    transport: str
    summary: str
    text: str


class TraceResult(msgspec.Struct, frozen=True):
    """Messages of a call, and how many between the first and the last ones were left out."""

    messages: list[TraceEntry]
    omitted: int = 0


class CommandResult(msgspec.Struct, frozen=True):
    """Result of a command. `call_id` is that of the call or text message; `faults` are those of a check."""

    call_id: str | None = None
    faults: list[str] = []
    trace: TraceResult | None = None


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
