"""Translation of Plivo's callbacks to the platform's events.

Fields and states: - https://www.plivo.com/docs/voice/xml/request -
https://www.plivo.com/docs/voice/troubleshooting/hangup-causes -
https://www.plivo.com/docs/voice/api/call/machine-detection -
https://www.plivo.com/docs/voice-agents/audio-streaming/concepts/best-practices -
https://www.plivo.com/docs/messaging/api/message/message-status-callbacks -
https://www.plivo.com/docs/messaging/api/message/handling-incoming
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

from switchboard.plugin_sdk import (
    ACCEPT_KEY,
    INVALID_NUMBER,
    CallAnswered,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    IncomingCall,
    InvalidCallback,
    MachineDetected,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetGone,
    TransferTargetReady,
)
from switchboard.plugin_sdk.telephony_events import CallOutcome

from switchboard_telephony_plivo.signatures import Fields
from switchboard_telephony_plivo.wording import describe_plivo_call_failure, describe_plivo_text_failure

CALL, RINGING, STATUS, STREAM, MACHINE, MESSAGE, TEXT = (
    "call",
    "ringing",
    "status",
    "stream",
    "machine",
    "message",
    "text",
)
INTRODUCED, TARGET = "introduced", "target"
"""Paths after the platform's own callback address, besides those of `addresses`.

`message` is for inbound text messages, `text` for the statuses of outbound ones, `target` for the end of a call to a
warm transfer's target, and `introduced` for the key that it pressed.
"""
OPTED_OUT: Final = "200"
"""The recipient replied STOP to this sender."""
MAX_MEDIA: Final = 10
ID_PATTERN: Final = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
"""Ids of calls and text messages."""

_OUTCOMES: Final[Mapping[str, CallOutcome]] = {
    "completed": "completed",
    "busy": "busy",
    "no-answer": "no-answer",
    "timeout": "no-answer",
    "cancel": "canceled",
    "canceled": "canceled",
    "failed": "failed",
}
# Causes of calls that nobody answered, whose status may be `failed` only.
_CAUSES: Final[Mapping[str, CallOutcome]] = {
    "1000": "canceled",
    "3000": "no-answer",
    "3010": "busy",
    "3100": "busy",
    "6010": "no-answer",
}
_NO_SUCH_NUMBER: Final = frozenset(("2000", "3050", "3120"))
_FAILED_STREAMS: Final = frozenset(("DroppedStream", "failed"))
"""Names of the same event on two of Plivo's pages."""
_TextState = Literal["sending", "sent", "delivered", "undelivered", "failed"]
_TEXT_STATES: Final[Mapping[str, _TextState]] = {
    "queued": "sending",
    "sent": "sent",
    "delivered": "delivered",
    "read": "delivered",
    "undelivered": "undelivered",
    "failed": "failed",
    "rejected": "failed",
}
_OPT_OUTS: Final[Mapping[str, Literal["stop", "start", "help"]]] = {"optout": "stop", "optin": "start", "help": "help"}


class _CallbackFields:
    """Fields of a callback, validated as they are read."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def get(self, name: str) -> str:
        """Return a field; empty if Plivo omits it."""
        return self._fields.get(name, "")

    def uuid(self, name: str) -> str:
        """Return one of Plivo's ids. Raises `InvalidCallback`."""
        value = self.get(name)
        if not re.fullmatch(ID_PATTERN, value):
            raise InvalidCallback(f"{name} is not an id of Plivo's")
        return value

    def integer(self, name: str) -> int | None:
        value = self.get(name)
        return int(value) if value.isdecimal() and len(value) < 10 else None

    def amount(self, name: str) -> float | None:
        """Return an amount in US dollars; None if Plivo omits it."""
        try:
            return float(self.get(name))
        except ValueError:
            return None

    def number(self, name: str) -> str:
        """Return a phone number in E.164, which Plivo writes without the plus; any other caller as Plivo writes it."""
        digits = self.get(name).removeprefix("+")
        return f"+{digits}" if digits.isdecimal() else digits or "anonymous"


def translate_plivo_callback(path: str, fields: Fields) -> CarrierEvent | None:
    """Translate a verified callback; None if it says nothing new. Raises `InvalidCallback` for an unknown path."""
    kind = _KINDS.get(path)
    if kind is None:
        raise InvalidCallback("unknown callback address")
    return kind(_CallbackFields(fields))


def translate_answer(fields: Fields) -> CallAnswered:
    """Translate the request for the instructions of an outbound call, which Plivo sends when somebody answers.

    Raises `InvalidCallback`.
    """
    return CallAnswered(_CallbackFields(fields).uuid("CallUUID"))


def _incoming(fields: _CallbackFields) -> IncomingCall:
    return IncomingCall(fields.uuid("CallUUID"), fields.number("From"), fields.number("To"))


def _ringing(fields: _CallbackFields) -> CalleeRinging:
    return CalleeRinging(fields.uuid("CallUUID"))


def _read_outcome(fields: _CallbackFields) -> CallOutcome:
    outcome, code = _OUTCOMES.get(fields.get("CallStatus"), "failed"), fields.get("HangupCauseCode")
    # Causes from 7000 on: Plivo could not fetch or understand the instructions, and counts the call as completed.
    if outcome == "completed":
        return "failed" if code.startswith(("7", "8")) else outcome
    return _CAUSES.get(code, outcome)


def _translate_end(fields: _CallbackFields) -> CallEnded:
    call_id, outcome, cost = fields.uuid("CallUUID"), _read_outcome(fields), fields.amount("TotalCost")
    duration, code = fields.integer("Duration"), fields.get("HangupCauseCode")
    if outcome != "failed":
        return CallEnded(call_id, outcome, duration, cost=cost)
    return CallEnded(
        call_id,
        outcome,
        duration,
        describe_plivo_call_failure(code, fields.get("HangupCauseName") or fields.get("HangupCause")),
        INVALID_NUMBER if code in _NO_SUCH_NUMBER else code or None,
        cost,
    )


def _stream(fields: _CallbackFields) -> CallEnded | None:
    """Translate a stream's status. A call without audio has failed for the platform; Plivo counts it as completed."""
    if fields.get("Event") not in _FAILED_STREAMS:
        return None
    reason = fields.get("StatusReason") or "no reason"
    return CallEnded(
        fields.uuid("CallUUID"), "failed", error_message=f"Plivo could not stream the call's audio: {reason}"
    )


def _machine(fields: _CallbackFields) -> CarrierEvent:
    call_id = fields.uuid("CallUUID")
    return MachineDetected(call_id) if fields.get("Machine").lower() == "true" else CallAnswered(call_id, "human")


def _key(fields: _CallbackFields) -> TransferTargetReady | None:
    """Translate the key that a transfer's target pressed. The end of a target who pressed another key follows."""
    target = fields.uuid("CallUUID")
    return TransferTargetReady(target) if fields.get("Digits") == ACCEPT_KEY else None


def _target(fields: _CallbackFields) -> TransferTargetGone:
    return TransferTargetGone(fields.uuid("CallUUID"), _read_outcome(fields))


def _text_status(fields: _CallbackFields) -> TextMessageStatus | None:
    return translate_plivo_text_status(
        fields.uuid("MessageUUID"),
        fields.get("Status"),
        fields.get("ErrorCode"),
        segments=fields.integer("Units"),
        cost=fields.amount("TotalAmount"),
    )


def translate_plivo_text_status(
    text_id: str, status: str, code: str, *, segments: int | None, cost: float | None
) -> TextMessageStatus | None:
    """Translate a message's status that Plivo reports or returns; None for one that says nothing new."""
    state = _TEXT_STATES.get(status)
    if state is None:
        return None
    if state not in ("undelivered", "failed"):
        return TextMessageStatus(text_id, state, segments=segments, cost=cost)
    message = describe_plivo_text_failure(code, status)
    return TextMessageStatus(
        text_id, state, message, code or None, segments=segments, cost=cost, opted_out=code == OPTED_OUT
    )


def _message(fields: _CallbackFields) -> TextMessageReceived:
    # Plivo's pages count files from 0 or from 1, and name the text of a message with files `Body`.
    media = tuple(url for index in range(MAX_MEDIA + 1) if (url := fields.get(f"Media{index}")))
    return TextMessageReceived(
        fields.uuid("MessageUUID"),
        fields.number("From"),
        fields.number("To"),
        fields.get("Text") or fields.get("Body"),
        media,
        _OPT_OUTS.get(fields.get("MessageIntent").lower()),
    )


_KINDS: Final[Mapping[str, Callable[[_CallbackFields], CarrierEvent | None]]] = {
    CALL: _incoming,
    RINGING: _ringing,
    STATUS: _translate_end,
    STREAM: _stream,
    MACHINE: _machine,
    INTRODUCED: _key,
    TARGET: _target,
    TEXT: _text_status,
    MESSAGE: _message,
}
