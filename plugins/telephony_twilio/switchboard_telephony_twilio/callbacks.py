"""Translation of Twilio's callbacks to the platform's events.

Fields and states: - https://www.twilio.com/docs/voice/api/call-resource#statuscallback -
https://www.twilio.com/docs/voice/answering-machine-detection -
https://www.twilio.com/docs/voice/twiml/stream#statuscallback -
https://www.twilio.com/docs/voice/api/recording#recordingstatuscallback -
https://www.twilio.com/docs/messaging/guides/track-outbound-message-status
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

from switchboard.plugin_sdk import (
    ACCEPT_KEY,
    INVALID_NUMBER,
    BrowserCall,
    CallAccepted,
    CallAnswered,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    IncomingCall,
    InvalidCallback,
    MachineDetected,
    ReceivedCallback,
    RecordingReady,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetGone,
    TransferTargetReady,
)
from switchboard.plugin_sdk.telephony_events import AnsweredBy, CallOutcome

from switchboard_telephony_twilio.errors import NO_SUCH_NUMBER, OPTED_OUT
from switchboard_telephony_twilio.markup import end_call, join_conference, reply_with, reply_without_message
from switchboard_telephony_twilio.signatures import Fields
from switchboard_telephony_twilio.wording import describe_text_failure, describe_twilio_call_failure

CALL, BROWSER, STATUS, STREAM, MACHINE, RECORDING, TEXT = (
    "call",
    "browser",
    "status",
    "stream",
    "machine",
    "recording",
    "text",
)
INTRODUCED, TARGET = "introduced", "target"
"""Paths after the platform's own callback address.

`text` is for inbound text messages and the statuses of outbound ones, `target` for the status of a warm transfer's
target, and `introduced` for the key that it pressed.
"""

_SID: Final = re.compile(r"[A-Z]{2}[0-9a-fA-F]{32}")
_CLIENT: Final = "client:"
# Twilio's values for a withheld number: ANONYMOUS, RESTRICTED, BLOCKED, UNKNOWN, and UNAVAILABLE typed on a keypad.
_WITHHELD: Final = frozenset(("", "+266696687", "+7378742833", "+2562533", "+8656696", "+86282452253"))
_OUTCOMES: Final[Mapping[str, CallOutcome]] = {
    "completed": "completed",
    "busy": "busy",
    "no-answer": "no-answer",
    "failed": "failed",
    "canceled": "canceled",
}
_ANSWERED_BY: Final[Mapping[str, AnsweredBy]] = {
    "human": "human",
    "machine": "machine",
    "machine_start": "machine",
    "machine_end_beep": "machine",
    "machine_end_silence": "machine",
    "machine_end_other": "machine",
    "fax": "machine",
    "unknown": "unknown",
}
_TextState = Literal["sending", "sent", "delivered", "undelivered", "failed"]
# `scheduled`, `receiving`, and `received` are not states of messages that the platform sends; `read` and
# `partially_delivered` are of other channels.
_TEXT_STATES: Final[Mapping[str, _TextState]] = {
    "accepted": "sending",
    "queued": "sending",
    "sending": "sending",
    "sent": "sent",
    "delivered": "delivered",
    "read": "delivered",
    "partially_delivered": "delivered",
    "undelivered": "undelivered",
    "failed": "failed",
    "canceled": "failed",
}
_OPT_OUTS: Final[Mapping[str, Literal["stop", "start", "help"]]] = {"STOP": "stop", "START": "start", "HELP": "help"}
# Keywords that Twilio handles on numbers without Advanced Opt-Out, without an OptOutType
# (https://help.twilio.com/articles/223134027).
_KEYWORDS: Final[Mapping[str, Literal["stop", "start", "help"]]] = {
    **dict.fromkeys(("STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"), "stop"),
    **dict.fromkeys(("START", "YES", "UNSTOP"), "start"),
    **dict.fromkeys(("HELP", "INFO"), "help"),
}


class _CallbackFields:
    """Fields of a callback, validated as they are read."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def get(self, name: str) -> str:
        """Return a field; empty if Twilio omits it."""
        return self._fields[name][0] if name in self._fields else ""

    def sid(self, name: str) -> str:
        """Return a Twilio id. Raises `InvalidCallback`."""
        value = self.get(name)
        if not _SID.fullmatch(value):
            raise InvalidCallback(f"{name} is not a Twilio id")
        return value

    def number(self, name: str) -> int | None:
        value = self.get(name)
        return int(value) if value.isdecimal() and len(value) < 10 else None


def translate_callback(path: str, fields: Fields) -> ReceivedCallback:
    """Translate a verified callback. Raises `InvalidCallback` for an unknown path."""
    kind = _KINDS.get(path)
    if kind is None:
        raise InvalidCallback("unknown callback address")
    values = _CallbackFields(fields)
    event = kind(values)
    events = () if event is None else (event,)
    if isinstance(event, TransferTargetReady):
        return ReceivedCallback(events, reply_with(join_conference(event.target_call_id)))
    if path == INTRODUCED:
        return ReceivedCallback(events, reply_with(end_call()))
    return (
        ReceivedCallback(events, reply_without_message())
        if isinstance(event, TextMessageReceived)
        else ReceivedCallback(events)
    )


def _incoming(fields: _CallbackFields) -> IncomingCall:
    caller = fields.get("From")
    return IncomingCall(fields.sid("CallSid"), "anonymous" if caller in _WITHHELD else caller, fields.get("To"))


def _from_browser(fields: _CallbackFields) -> BrowserCall:
    """Translate a browser's call. `To` and `CallerId` are the page's parameters of `connect`; `From` is the token's
    identity.
    """
    caller = fields.get("From")
    if not caller.startswith(_CLIENT):
        raise InvalidCallback("a call to the application that does not come from a browser")
    return BrowserCall(
        fields.sid("CallSid"), fields.get("CallerId"), fields.get("To"), identity=caller.removeprefix(_CLIENT)
    )


def _call_status(fields: _CallbackFields) -> CarrierEvent | None:
    call_id, status = fields.sid("CallSid"), fields.get("CallStatus")
    if status in _OUTCOMES:
        return _translate_end(fields, call_id, _OUTCOMES[status])
    if status in ("queued", "initiated"):
        return CallAccepted(call_id)
    if status == "ringing":
        return CalleeRinging(call_id)
    if status == "in-progress":
        return CallAnswered(call_id, _ANSWERED_BY.get(fields.get("AnsweredBy"), "unknown"))
    return None


def _translate_end(fields: _CallbackFields, call_id: str, outcome: CallOutcome) -> CallEnded:
    if outcome != "failed":
        return CallEnded(call_id, outcome, fields.number("CallDuration"))
    code, sip_code = fields.get("ErrorCode"), fields.get("SipResponseCode")
    message = fields.get("ErrorMessage") or describe_twilio_call_failure(code, sip_code)
    return CallEnded(
        call_id,
        outcome,
        error_message=message,
        error_code=INVALID_NUMBER if code in NO_SUCH_NUMBER else code or sip_code or None,
    )


def _translate_key(fields: _CallbackFields) -> TransferTargetReady | None:
    """Translate the key that a transfer's target pressed. The status of a target who pressed another key follows."""
    target = fields.sid("CallSid")
    return TransferTargetReady(target) if fields.get("Digits") == ACCEPT_KEY else None


def _target(fields: _CallbackFields) -> TransferTargetGone | None:
    outcome = _OUTCOMES.get(fields.get("CallStatus"))
    return TransferTargetGone(fields.sid("CallSid"), outcome) if outcome is not None else None


def _stream(fields: _CallbackFields) -> CallEnded | None:
    """Translate a stream's status. A call without audio has failed for the platform; Twilio counts it as completed."""
    if fields.get("StreamEvent") != "stream-error":
        return None
    reason = fields.get("StreamError") or "no reason"
    return CallEnded(
        fields.sid("CallSid"), "failed", error_message=f"Twilio could not stream the call's audio: {reason}"
    )


def _machine(fields: _CallbackFields) -> CarrierEvent | None:
    call_id, found = fields.sid("CallSid"), fields.get("AnsweredBy")
    answered_by = _ANSWERED_BY.get(found, "unknown")
    if answered_by == "machine":
        return MachineDetected(call_id, beep=found.startswith("machine_end"))
    return CallAnswered(call_id, answered_by)


def _recording(fields: _CallbackFields) -> RecordingReady | None:
    if fields.get("RecordingStatus") != "completed":
        return None
    return RecordingReady(fields.sid("CallSid"), fields.sid("RecordingSid"))


def _text(fields: _CallbackFields) -> CarrierEvent | None:
    text_id, status = fields.sid("MessageSid"), fields.get("MessageStatus")
    if not status:
        return _text_received(fields, text_id)
    return translate_twilio_text_status(text_id, status, fields.get("ErrorCode"), fields.get("ErrorMessage"))


def translate_twilio_text_status(text_id: str, status: str, code: str, message: str) -> TextMessageStatus | None:
    """Translate a message's status that Twilio reports or returns; None for one that says nothing new."""
    state = _TEXT_STATES.get(status)
    if state is None:
        return None
    reason = (message or describe_text_failure(code, status)) if state in ("undelivered", "failed") else None
    return TextMessageStatus(text_id, state, reason, code or None, opted_out=code == OPTED_OUT)


def _text_received(fields: _CallbackFields, text_id: str) -> TextMessageReceived:
    body = fields.get("Body")
    media = tuple(url for index in range(fields.number("NumMedia") or 0) if (url := fields.get(f"MediaUrl{index}")))
    opt_out = _OPT_OUTS.get(fields.get("OptOutType")) or _KEYWORDS.get(body.strip().upper())
    return TextMessageReceived(text_id, fields.get("From"), fields.get("To"), body, media, opt_out)


_KINDS: Final[Mapping[str, Callable[[_CallbackFields], CarrierEvent | None]]] = {
    CALL: _incoming,
    BROWSER: _from_browser,
    STATUS: _call_status,
    STREAM: _stream,
    INTRODUCED: _translate_key,
    TARGET: _target,
    MACHINE: _machine,
    RECORDING: _recording,
    TEXT: _text,
}
