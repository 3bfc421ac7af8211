"""What Twilio tells by callback, in the platform's words.

Fields and states: https://www.twilio.com/docs/voice/api/call-resource#statuscallback, https://www.twilio.com/docs/voice/answering-machine-detection,
https://www.twilio.com/docs/voice/twiml/stream#statuscallback,
https://www.twilio.com/docs/voice/api/recording#recordingstatuscallback and https://www.twilio.com/docs/messaging/guides/track-outbound-message-status.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

from switchboard.plugin_sdk import (
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
from switchboard.plugin_sdk.telephony import AnsweredBy, CallOutcome

from switchboard_telephony_twilio.errors import NO_SUCH_NUMBER, OPTED_OUT
from switchboard_telephony_twilio.markup import join_conference, reply_with, reply_without_message
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
"""What follows the platform's own callback address; `text` is a text that comes in, and how one that went out gets on; `target` is how somebody
gets on who is called for a warm transfer, `introduced` asks what follows what they were told."""

_SID: Final = re.compile(r"[A-Z]{2}[0-9a-fA-F]{32}")
_CLIENT: Final = "client:"
# ANONYMOUS, RESTRICTED, BLOCKED, UNKNOWN and UNAVAILABLE as they are typed on a telephone: what Twilio has for a number that is withheld.
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
# `scheduled`, `receiving` and `received` are not states of a text that we send; `read` and `partially_delivered` are other channels'.
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
# What Twilio answers by itself on numbers without Advanced Opt-Out, which name no OptOutType (https://help.twilio.com/articles/223134027).
_KEYWORDS: Final[Mapping[str, Literal["stop", "start", "help"]]] = {
    **dict.fromkeys(("STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"), "stop"),
    **dict.fromkeys(("START", "YES", "UNSTOP"), "start"),
    **dict.fromkeys(("HELP", "INFO"), "help"),
}


class _Told:
    """A callback's fields, each read once it is known to be there."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def get(self, name: str) -> str:
        """A field, empty where Twilio leaves it out."""
        return self._fields[name][0] if name in self._fields else ""

    def sid(self, name: str) -> str:
        """A Twilio id. Raises `InvalidCallback`."""
        value = self.get(name)
        if not _SID.fullmatch(value):
            raise InvalidCallback(f"{name} is no id of Twilio's")
        return value

    def number(self, name: str) -> int | None:
        value = self.get(name)
        return int(value) if value.isdecimal() and len(value) < 10 else None


def translate_callback(path: str, fields: Fields) -> ReceivedCallback:
    """A verified callback. Raises `InvalidCallback` for an address that Twilio was never given."""
    kind = _KINDS.get(path)
    if kind is None:
        raise InvalidCallback("Twilio was never given this address")
    told = _Told(fields)
    event = kind(told)
    events = () if event is None else (event,)
    if isinstance(event, TransferTargetReady):
        return ReceivedCallback(events, reply_with(join_conference(event.target_call_id)))
    return (
        ReceivedCallback(events, reply_without_message())
        if isinstance(event, TextMessageReceived)
        else ReceivedCallback(events)
    )


def _incoming(told: _Told) -> IncomingCall:
    caller = told.get("From")
    return IncomingCall(told.sid("CallSid"), "anonymous" if caller in _WITHHELD else caller, told.get("To"))


def _from_browser(told: _Told) -> BrowserCall:
    """`To` and `CallerId` are what the page gave to the SDK's `connect`; `From` is the identity in the token."""
    caller = told.get("From")
    if not caller.startswith(_CLIENT):
        raise InvalidCallback("a call to the application that comes from no browser")
    return BrowserCall(told.sid("CallSid"), told.get("CallerId"), told.get("To"), identity=caller.removeprefix(_CLIENT))


def _call_status(told: _Told) -> CarrierEvent | None:
    call_id, status = told.sid("CallSid"), told.get("CallStatus")
    if status in _OUTCOMES:
        return _ended(told, call_id, _OUTCOMES[status])
    if status in ("queued", "initiated"):
        return CallAccepted(call_id)
    if status == "ringing":
        return CalleeRinging(call_id)
    if status == "in-progress":
        return CallAnswered(call_id, _ANSWERED_BY.get(told.get("AnsweredBy"), "unknown"))
    return None


def _ended(told: _Told, call_id: str, outcome: CallOutcome) -> CallEnded:
    if outcome != "failed":
        return CallEnded(call_id, outcome, told.number("CallDuration"))
    code, sip_code = told.get("ErrorCode"), told.get("SipResponseCode")
    message = told.get("ErrorMessage") or describe_twilio_call_failure(code, sip_code)
    return CallEnded(
        call_id,
        outcome,
        error_message=message,
        error_code=INVALID_NUMBER if code in NO_SUCH_NUMBER else code or sip_code or None,
    )


def _introduced(told: _Told) -> TransferTargetReady:
    return TransferTargetReady(told.sid("CallSid"))


def _target(told: _Told) -> TransferTargetGone | None:
    outcome = _OUTCOMES.get(told.get("CallStatus"))
    return TransferTargetGone(told.sid("CallSid"), outcome) if outcome is not None else None


def _stream(told: _Told) -> CallEnded | None:
    """A call whose audio could not be connected is over for us; Twilio itself counts it as completed."""
    if told.get("StreamEvent") != "stream-error":
        return None
    reason = told.get("StreamError") or "no reason"
    return CallEnded(told.sid("CallSid"), "failed", error_message=f"Twilio could not stream the call's audio: {reason}")


def _machine(told: _Told) -> CarrierEvent | None:
    call_id, found = told.sid("CallSid"), told.get("AnsweredBy")
    answered_by = _ANSWERED_BY.get(found, "unknown")
    if answered_by == "machine":
        return MachineDetected(call_id, beep=found == "machine_end_beep")
    return CallAnswered(call_id, answered_by)


def _recording(told: _Told) -> RecordingReady | None:
    if told.get("RecordingStatus") != "completed":
        return None
    return RecordingReady(told.sid("CallSid"), told.sid("RecordingSid"))


def _text(told: _Told) -> CarrierEvent | None:
    text_id, status = told.sid("MessageSid"), told.get("MessageStatus")
    if not status:
        return _text_received(told, text_id)
    if status not in _TEXT_STATES:
        return None
    code = told.get("ErrorCode")
    failed = _TEXT_STATES[status] in ("undelivered", "failed")
    message = (told.get("ErrorMessage") or describe_text_failure(code, status)) if failed else None
    return TextMessageStatus(text_id, _TEXT_STATES[status], message, code or None, opted_out=code == OPTED_OUT)


def _text_received(told: _Told, text_id: str) -> TextMessageReceived:
    body = told.get("Body")
    media = tuple(url for index in range(told.number("NumMedia") or 0) if (url := told.get(f"MediaUrl{index}")))
    opt_out = _OPT_OUTS.get(told.get("OptOutType")) or _KEYWORDS.get(body.strip().upper())
    return TextMessageReceived(text_id, told.get("From"), told.get("To"), body, media, opt_out)


_KINDS: Final[Mapping[str, Callable[[_Told], CarrierEvent | None]]] = {
    CALL: _incoming,
    BROWSER: _from_browser,
    STATUS: _call_status,
    STREAM: _stream,
    INTRODUCED: _introduced,
    TARGET: _target,
    MACHINE: _machine,
    RECORDING: _recording,
    TEXT: _text,
}
