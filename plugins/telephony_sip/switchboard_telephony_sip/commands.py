"""Commands that the platform gives a gateway over its control API, and the gateway's results."""

from typing import Final, Literal, TypeAlias

import msgspec
from switchboard.plugin_sdk import CheckedPart

COMMANDS_PATH: Final = "/commands"
OPERATOR_PURPOSE: Final = "operator of SIP gateways"
"""Purpose for which the secret of operators' commands is derived."""
NOT_SERVED: Final = "not_served"
"""Code of the refusal of a gateway that does not serve the account, or does not have its latest settings."""


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
    """Ask each trunk for its options, and report the registrations, once the gateway has settings with this digest."""

    settings_digest: str


class TraceCommand(msgspec.Struct, frozen=True, tag_field="command", tag="trace"):
    """Return the SIP messages of a call, live or lately ended."""

    call_id: str


class MeasureCommand(msgspec.Struct, frozen=True, tag_field="command", tag="measure"):
    """Place a test call, and return its id at once."""

    from_number: str
    to_number: str


class MeasurementCommand(msgspec.Struct, frozen=True, tag_field="command", tag="measurement"):
    """Return the result of a test call, or none after a few seconds in which it went on."""

    call_id: str


class BansCommand(msgspec.Struct, frozen=True, tag_field="command", tag="bans"):
    """List the addresses that the gateway ignores."""


class LiftCommand(msgspec.Struct, frozen=True, tag_field="command", tag="lift"):
    """Read an address again."""

    address: str


DiagnosticCommand: TypeAlias = CheckCommand | TraceCommand | MeasureCommand | MeasurementCommand
CallCommand: TypeAlias = TransferCommand | IntroduceCommand | SipConnectCommand | DigitsCommand
"""Commands for a live call."""
AccountCommand: TypeAlias = (
    PlaceCommand | FindCommand | SipHangUpCommand | CallCommand | TextCommand | DiagnosticCommand
)
"""Commands for the calls and trunks of the account that signs them."""
OperatorCommand: TypeAlias = BansCommand | LiftCommand
"""Commands for the whole gateway, signed with the installation's secret, which no account has."""
Command: TypeAlias = AccountCommand | OperatorCommand


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


class TrunkRefusal(msgspec.Struct, frozen=True):
    """A trunk that did not connect a test call, with the SIP status: 408 for a trunk that does not answer."""

    trunk: str
    status: int
    message: str


class Measurement(msgspec.Struct, frozen=True):
    """Result of a test call.

    `trunk` is the one whose call was answered; None without one. `audio_host` is the address to which it was told to
    send audio. The shares are losses from 0 to 1: `loss_share` of the audio from the trunk, and `remote_loss_share` of
    the audio to it, None if it reports nothing. `has_echo`: our tone came back.
    """

    refusals: list[TrunkRefusal]
    trunk: str | None = None
    audio_host: str = ""
    packets_received: int = 0
    loss_share: float = 0.0
    jitter_ms: float = 0.0
    has_sound: bool = False
    has_echo: bool = False
    remote_loss_share: float | None = None


class CommandResult(msgspec.Struct, frozen=True):
    """Result of a command. `call_id` is that of the call, target, or text message.

    `trunks` are the checked trunks by name, each with a sentence for each of its hosts and registrars. `bans` are the
    ignored addresses, each with the seconds that are left; after `lift`, the one that was ignored.
    """

    call_id: str | None = None
    trunks: list[CheckedPart] = []
    trace: TraceResult | None = None
    measurement: Measurement | None = None
    bans: dict[str, float] = {}


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


class NoSuchCall(Exception):
    """The gateway does not have the call."""


COMMANDS: Final[msgspec.json.Decoder[Command]] = msgspec.json.Decoder(Command)
"""Reads a command. Raises `ValueError`."""
