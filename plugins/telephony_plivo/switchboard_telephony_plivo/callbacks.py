"""Callbacks of Plivo: the verification of their signature, and their translation to the platform's events.

A signature is HMAC-SHA256 in base64, under the account's auth token.

Version 3 (https://www.plivo.com/docs/voice/concepts/signature-validation) signs the address, the form fields sorted by
name, and a nonce, as Plivo's SDKs compute it (`plivo/utils/signature_v3.py` of plivo-python 4.59). Every callback about
a call has it.

Version 2 (https://docs.plivo.com/docs/messaging/concepts/signature-validation) signs the address and a nonce
(`validate_signature` in `plivo/utils/__init__.py` of plivo-python). Plivo's pages promise it, and not version 3, for
callbacks about text messages, so it is accepted for these alone, and only where there is none of version 3: it does
not cover the fields.

Plivo gets addresses without a query string only, so one with a query string is refused. There is no timestamp: a
callback can be replayed, which changes nothing, but only at its own address.

Fields and states: - https://www.plivo.com/docs/voice/xml/request -
https://www.plivo.com/docs/voice/troubleshooting/hangup-causes -
https://www.plivo.com/docs/voice/api/call/machine-detection -
https://www.plivo.com/docs/voice-agents/audio-streaming/concepts/best-practices -
https://www.plivo.com/docs/messaging/api/message/message-status-callbacks -
https://www.plivo.com/docs/messaging/api/message/handling-incoming
"""

import hashlib
import hmac
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from switchboard.plugin_sdk import (
    ACCEPT_KEY,
    INVALID_NUMBER,
    CallAnswered,
    CallbackRequest,
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
from switchboard.plugin_sdk.callback_forms import CallbackFields, parse_callback_form
from switchboard.plugin_sdk.telephony_events import CallOutcome, OptOut, TextState

Fields = Mapping[str, str]


class _Headers(NamedTuple):
    """Headers of a version: signatures with the token of the number's own account, and with that of the main account.

    Each has several, separated by commas, while the account has several tokens.
    """

    own: str
    main: str
    nonce: str


VERSION_3: Final = _Headers("x-plivo-signature-v3", "x-plivo-signature-ma-v3", "x-plivo-signature-v3-nonce")
VERSION_2: Final = _Headers("x-plivo-signature-v2", "x-plivo-signature-ma-v2", "x-plivo-signature-v2-nonce")


def verify_plivo_signature(request: CallbackRequest, auth_token: str, *, is_text_message: bool) -> Fields:
    """Return the fields of a signed callback. Raises `InvalidCallback`."""
    if "?" in request.url:
        raise InvalidCallback("the address has a query string")
    pairs = parse_callback_form(request.body)
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidCallback("a field is repeated")
    signatures, nonce = _read_signatures(request, VERSION_3)
    signed_text = request.url + ("?" if fields else "") + "".join(name + fields[name] for name in sorted(fields)) + "."
    if not signatures and is_text_message:
        signatures, nonce = _read_signatures(request, VERSION_2)
        signed_text = request.url
    if not signatures or not nonce:
        raise InvalidCallback("the signature is missing")
    expected = b64encode(hmac.new(auth_token.encode(), f"{signed_text}{nonce}".encode(), hashlib.sha256).digest())
    if not any(hmac.compare_digest(one.encode(), expected) for one in signatures):
        raise InvalidCallback("the signature does not match")
    return fields


def _read_signatures(request: CallbackRequest, headers: _Headers) -> tuple[list[str], str]:
    """Return the signatures of a version, and their nonce."""
    given = [request.headers.get(name, "") for name in (headers.own, headers.main)]
    return [one.strip() for value in given for one in value.split(",") if one.strip()], request.headers.get(
        headers.nonce, ""
    )


CALL, RINGING, STATUS, STREAM, MACHINE = "call", "ringing", "status", "stream", "machine"
MESSAGE, TEXT, INTRODUCED, TARGET = "message", "text", "introduced", "target"
"""Paths after the platform's own callback address, besides those of `addresses`.

`message` is for inbound text messages, `text` for the statuses of outbound ones, `target` for the end of a call to a
warm transfer's target, and `introduced` for the key that it pressed.
"""
OPTED_OUT: Final = "200"
"""The recipient replied STOP to this sender."""
MAX_MEDIA: Final = 10
ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
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
_TEXT_STATES: Final[Mapping[str, TextState]] = {
    "queued": "sending",
    "sent": "sent",
    "delivered": "delivered",
    "read": "delivered",
    "undelivered": "undelivered",
    "failed": "failed",
    "rejected": "failed",
}
_OPT_OUTS: Final[Mapping[str, OptOut]] = {"optout": "stop", "optin": "start", "help": "help"}


_FAILURES: Final[Mapping[str, str]] = {
    "10": "the recipient's network found the text message invalid",
    "20": "the recipient's network failed",
    "30": "the text message was filtered as unwanted",
    "40": "the sender's number is not valid, or cannot send text messages",
    "50": "the recipient's number is not valid, or cannot receive text messages",
    "60": "the text message went round in a circle",
    "70": "the recipient's phone cannot be reached any more",
    "80": "the recipient's phone cannot be reached at the moment",
    "90": "Plivo has no route to the recipient's network",
    "100": "the recipient's network does not take the text message",
    "110": "the text message is too long",
    "200": "the recipient has opted out of text messages from this number",
    "201": "toll-free numbers of the United States cannot send text messages to Canada",
    "300": "Plivo failed to pass the text message on",
    "420": "the text message expired before it could be sent",
    "450": "text messages to that country are not enabled in the Plivo account",
    "900": "the Plivo account has no balance",
    "910": "the Plivo account is disabled",
    "1000": "the recipient's network gave no reason",
}
"""Explanations of codes that come without one (https://www.plivo.com/docs/messaging/troubleshooting/error-codes and
https://www.plivo.com/docs/voice/troubleshooting/hangup-causes, read in November 2026).
"""


class _PlivoFields(CallbackFields):
    def uuid(self, name: str) -> str:
        """Return one of Plivo's ids. Raises `InvalidCallback`."""
        return self.require(name, ID, "an id of Plivo's")

    def amount(self, name: str) -> float | None:
        """Return an amount in US dollars; None if Plivo omits it."""
        try:
            return float(self.get(name))
        except ValueError:
            return None

    def phone_number(self, name: str) -> str:
        """Return a phone number in E.164, which Plivo writes without the plus; any other caller as Plivo writes it."""
        digits = self.get(name).removeprefix("+")
        return f"+{digits}" if digits.isdecimal() else digits or "anonymous"


def translate_plivo_callback(path: str, fields: Fields) -> CarrierEvent | None:
    """Translate a verified callback; None if it says nothing new. Raises `InvalidCallback` for an unknown path."""
    kind = _KINDS.get(path)
    if kind is None:
        raise InvalidCallback("unknown callback address")
    return kind(_PlivoFields(fields))


def translate_answer(fields: Fields) -> CallAnswered:
    """Translate the request for the instructions of an outbound call, which Plivo sends when somebody answers.

    Raises `InvalidCallback`.
    """
    return CallAnswered(_PlivoFields(fields).uuid("CallUUID"))


def _read_outcome(fields: _PlivoFields) -> CallOutcome:
    outcome, code = _OUTCOMES.get(fields.get("CallStatus"), "failed"), fields.get("HangupCauseCode")
    # Causes from 7000 on: Plivo could not fetch or understand the instructions, and counts the call as completed.
    if outcome == "completed":
        return "failed" if code.startswith(("7", "8")) else outcome
    return _CAUSES.get(code, outcome)


def _read_end(fields: _PlivoFields) -> CallEnded:
    call_id, outcome, cost = fields.uuid("CallUUID"), _read_outcome(fields), fields.amount("TotalCost")
    duration, code = fields.integer("Duration"), fields.get("HangupCauseCode")
    if outcome != "failed":
        return CallEnded(call_id, outcome, duration, cost=cost)
    return CallEnded(
        call_id,
        outcome,
        duration,
        _describe_call_failure(code, fields.get("HangupCauseName") or fields.get("HangupCause")),
        INVALID_NUMBER if code in _NO_SUCH_NUMBER else code or None,
        cost,
    )


def _read_stream(fields: _PlivoFields) -> CallEnded | None:
    """Translate a stream's status. A call without audio has failed for the platform; Plivo counts it as completed."""
    if fields.get("Event") not in _FAILED_STREAMS:
        return None
    reason = fields.get("StatusReason") or "no reason"
    return CallEnded(
        fields.uuid("CallUUID"), "failed", error_message=f"Plivo could not stream the call's audio: {reason}"
    )


def _read_detection(fields: _PlivoFields) -> CarrierEvent:
    call_id = fields.uuid("CallUUID")
    return MachineDetected(call_id) if fields.get("Machine").lower() == "true" else CallAnswered(call_id, "human")


def _read_key(fields: _PlivoFields) -> TransferTargetReady | None:
    """Translate the key that a transfer's target pressed. The end of a target who pressed another key follows."""
    target = fields.uuid("CallUUID")
    return TransferTargetReady(target) if fields.get("Digits") == ACCEPT_KEY else None


def translate_plivo_text_status(
    text_id: str, status: str, code: str, *, segments: int | None, cost: float | None
) -> TextMessageStatus | None:
    """Translate a message's status that Plivo reports or returns; None for one that says nothing new."""
    state = _TEXT_STATES.get(status)
    if state is None:
        return None
    if state not in ("undelivered", "failed"):
        return TextMessageStatus(text_id, state, segments=segments, cost=cost)
    message = _describe_text_failure(code, status)
    return TextMessageStatus(
        text_id, state, message, code or None, segments=segments, cost=cost, opted_out=code == OPTED_OUT
    )


def _read_message(fields: _PlivoFields) -> TextMessageReceived:
    # Plivo's pages count files from 0 or from 1, and name the text of a message with files `Body`.
    media = tuple(url for index in range(MAX_MEDIA + 1) if (url := fields.get(f"Media{index}")))
    return TextMessageReceived(
        fields.uuid("MessageUUID"),
        fields.phone_number("From"),
        fields.phone_number("To"),
        fields.get("Text") or fields.get("Body"),
        media,
        _OPT_OUTS.get(fields.get("MessageIntent").lower()),
    )


def _describe_call_failure(code: str, name: str) -> str:
    """Return the reason why a call failed, by the name and code of Plivo's hang-up cause."""
    if not name:
        return f"Plivo ended the call with cause {code}" if code else "Plivo did not say why the call failed"
    return f"Plivo: {name} (cause {code})" if code else f"Plivo: {name}"


def _describe_text_failure(code: str, status: str) -> str:
    """Return the reason why a text message was not delivered, by Plivo's error code."""
    if not code:
        return f"Plivo did not say why the text message is {status}"
    return f"{_FAILURES[code]} (error {code})" if code in _FAILURES else f"Plivo error {code}"


_KINDS: Final[Mapping[str, Callable[[_PlivoFields], CarrierEvent | None]]] = {
    CALL: lambda fields: IncomingCall(fields.uuid("CallUUID"), fields.phone_number("From"), fields.phone_number("To")),
    RINGING: lambda fields: CalleeRinging(fields.uuid("CallUUID")),
    STATUS: _read_end,
    STREAM: _read_stream,
    MACHINE: _read_detection,
    INTRODUCED: _read_key,
    TARGET: lambda fields: TransferTargetGone(fields.uuid("CallUUID"), _read_outcome(fields)),
    TEXT: lambda fields: translate_plivo_text_status(
        fields.uuid("MessageUUID"),
        fields.get("Status"),
        fields.get("ErrorCode"),
        segments=fields.integer("Units"),
        cost=fields.amount("TotalAmount"),
    ),
    MESSAGE: _read_message,
}
