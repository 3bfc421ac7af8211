"""Messages of a gateway's callbacks: events to the platform, and the instructions with which it replies.

They are those of the SDK, each as JSON under the name of its class.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar, get_args

import msgspec
from switchboard.plugin_sdk import (
    CallAnswered,
    CalleeRinging,
    CallEnded,
    IncomingCall,
    Instruction,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetGone,
    TransferTargetReady,
)

GatewayEvent: TypeAlias = (
    IncomingCall
    | CalleeRinging
    | CallAnswered
    | CallEnded
    | TransferTargetReady
    | TransferTargetGone
    | TextMessageReceived
    | TextMessageStatus
)
Message = TypeVar("Message")
_EVENTS: Final[Mapping[str, type[GatewayEvent]]] = {kind.__name__: kind for kind in get_args(GatewayEvent)}
_INSTRUCTIONS: Final[Mapping[str, type[Instruction]]] = {kind.__name__: kind for kind in get_args(Instruction)}


class _Named(msgspec.Struct):
    type: str
    value: msgspec.Raw


def get_event_path(event: GatewayEvent) -> str:
    """Return the path of an event after the callback address."""
    if isinstance(event, IncomingCall | TextMessageReceived):
        return "call" if isinstance(event, IncomingCall) else "text"
    return "status"


def write_callback(message: GatewayEvent | Instruction) -> bytes:
    """Write an event, or the reply to it."""
    return msgspec.json.encode({"type": type(message).__name__, "value": message})


def read_gateway_event(body: bytes) -> GatewayEvent:
    """Read an event. Raises `ValueError`."""
    return _read(body, _EVENTS)


def read_instruction(body: bytes) -> Instruction:
    """Read the platform's decision about an incoming call. Raises `ValueError`."""
    return _read(body, _INSTRUCTIONS)


def _read(body: bytes, kinds: Mapping[str, type[Message]]) -> Message:
    named = msgspec.json.decode(body, type=_Named)
    if named.type not in kinds:
        raise ValueError(f"{named.type} is not among {', '.join(kinds)}")
    return msgspec.json.decode(named.value, type=kinds[named.type])
