"""Callbacks of Twilio: the verification of their signature, and their translation to the platform's events.

`X-Twilio-Signature` (https://www.twilio.com/docs/usage/security#validating-requests) is HMAC-SHA1 of the address and
the sorted form fields under the account's auth token. A JSON body is covered by its SHA-256 in the address. There is no
timestamp: a callback can be replayed, which changes nothing, but only at its own address.

Fields and states: - https://www.twilio.com/docs/voice/api/call-resource#statuscallback -
https://www.twilio.com/docs/voice/answering-machine-detection -
https://www.twilio.com/docs/voice/twiml/stream#statuscallback -
https://www.twilio.com/docs/voice/api/recording#recordingstatuscallback -
https://www.twilio.com/docs/messaging/guides/track-outbound-message-status
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Final, get_args
from urllib.parse import parse_qsl, urlsplit

import msgspec
from multidict import MultiDict
from switchboard.plugin_sdk import (
    ACCEPT_KEY,
    INVALID_NUMBER,
    BrowserCall,
    CallAccepted,
    CallAnswered,
    CallbackRequest,
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
    describe_sip_failure,
    read_verstat,
)
from switchboard.plugin_sdk.callback_forms import CallbackFields, parse_callback_form
from switchboard.plugin_sdk.telephony_events import AnsweredBy, CallOutcome, OptOut, TextState
from twilio.request_validator import RequestValidator
from twilio.twiml.messaging_response import MessagingResponse

from switchboard_telephony_twilio.errors import NO_SUCH_NUMBER, OPTED_OUT
from switchboard_telephony_twilio.markup import end_call, join_conference, reply_with

HEADER: Final = "x-twilio-signature"
BODY_HASH: Final = "bodySHA256"

Fields = Mapping[str, str]
"""Fields by name; of a repeated one, its first value."""


def verify_twilio_signature(request: CallbackRequest, auth_token: str) -> Fields:
    """Return the fields of a signed callback, from its form or, without one, from its query string.

    Raises `InvalidCallback`.
    """
    signature = request.headers.get(HEADER)
    if not signature:
        raise InvalidCallback("the signature is missing")
    if not signature.isascii():
        raise InvalidCallback("the signature is garbled")
    query = MultiDict(parse_qsl(urlsplit(request.url).query, keep_blank_values=True))
    # The SDK's validator takes repeated fields from `getall`.
    covered = MultiDict[str]()
    if BODY_HASH in query:
        if not hmac.compare_digest(hashlib.sha256(request.body).hexdigest(), query[BODY_HASH].lower()):
            raise InvalidCallback("the body is not the one that was signed")
    else:
        covered = MultiDict(parse_callback_form(request.body))
    if not RequestValidator(auth_token).validate(request.url, covered, signature):
        raise InvalidCallback("the signature does not match")
    return (_parse_json(request.body) if BODY_HASH in query else covered) or query


def _parse_json(body: bytes) -> Fields:
    """Return the strings and integers of a JSON object. Raises `InvalidCallback`."""
    try:
        values = msgspec.json.decode(body, type=dict[str, object])
    except ValueError:
        raise InvalidCallback("the body is not a JSON object") from None
    return {name: str(value) for name, value in values.items() if isinstance(value, str | int)}


CALL, BROWSER, STATUS, STREAM, MACHINE = "call", "browser", "status", "stream", "machine"
RECORDING, TEXT, INTRODUCED, TARGET = "recording", "text", "introduced", "target"
"""Paths after the platform's own callback address.

`text` is for inbound text messages and the statuses of outbound ones, `target` for the status of a warm transfer's
target, and `introduced` for the key that it pressed.
"""

_SID: Final = re.compile(r"[A-Z]{2}[0-9a-fA-F]{32}")
_CLIENT: Final = "client:"
# Twilio's values for a withheld number: ANONYMOUS, RESTRICTED, BLOCKED, UNKNOWN, and UNAVAILABLE typed on a keypad.
_WITHHELD: Final = frozenset(("", "+266696687", "+7378742833", "+2562533", "+8656696", "+86282452253"))
_OUTCOMES: Final[Mapping[str, CallOutcome]] = {outcome: outcome for outcome in get_args(CallOutcome)}
"""States of ended calls, for which Twilio has the platform's names."""
_MACHINES: Final = ("machine", "machine_start", "machine_end_beep", "machine_end_silence", "machine_end_other", "fax")
_ANSWERED_BY: Final[Mapping[str, AnsweredBy]] = {"human": "human", **dict.fromkeys(_MACHINES, "machine")}
# `scheduled`, `receiving`, and `received` are not states of messages that the platform sends; `read` and
# `partially_delivered` are of other channels.
_TEXT_STATES: Final[Mapping[str, TextState]] = {
    **dict.fromkeys(("accepted", "queued", "sending"), "sending"),
    "sent": "sent",
    **dict.fromkeys(("delivered", "read", "partially_delivered"), "delivered"),
    "undelivered": "undelivered",
    **dict.fromkeys(("failed", "canceled"), "failed"),
}
_OPT_OUTS: Final[Mapping[str, OptOut]] = {"STOP": "stop", "START": "start", "HELP": "help"}
# Keywords that Twilio handles on numbers without Advanced Opt-Out, without an OptOutType
# (https://help.twilio.com/articles/223134027).
_KEYWORDS: Final[Mapping[str, OptOut]] = {
    **dict.fromkeys(("STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"), "stop"),
    **dict.fromkeys(("START", "YES", "UNSTOP"), "start"),
    **dict.fromkeys(("HELP", "INFO"), "help"),
}


_FAILURES: Final[Mapping[str, str]] = {
    "21211": "the recipient's number is not valid",
    "21408": "text messages to that country are not enabled in the Twilio account",
    "21610": "the recipient has opted out of text messages from this number",
    "21611": "too many text messages are queued for this number",
    "21612": "Twilio cannot send text messages between these two numbers",
    "21614": "the recipient's number is not a mobile number",
    "21617": "the text message is too long",
    "30001": "too many text messages are queued for this number",
    "30002": "the Twilio account is suspended",
    "30003": "the recipient's phone cannot be reached",
    "30004": "the recipient does not accept text messages from this number",
    "30005": "the recipient's number is unknown",
    "30006": "the recipient's number is a landline, or its network cannot be reached",
    "30007": "the text message was filtered as unwanted",
    "30008": "the recipient's network gave no reason",
    "30009": "a segment of the text message was lost",
    "30010": "the text message would exceed the maximum price",
    "30011": "the recipient's network does not support media",
    "30012": "the validity period of the text message is too short",
    "30013": "the validity period of the text message is too long",
    "30014": "the recipient's number is not valid",
    "30015": "the recipient is on a channel that Twilio does not serve",
    "30016": "sender and recipient are on different channels",
    "30017": "the recipient's network is congested",
    "30018": "the recipient's network accepts registered senders only",
    "30019": "the text message is larger than the recipient's network allows",
    "30020": "Twilio failed to schedule the text message",
    "30021": "Twilio failed to choose a sender",
    "30022": "the sender has exceeded its registered rate",
    "30023": "the sender has reached its daily limit",
    "30024": "the sender's number is not set up at the recipient's network",
    "30027": "the sender has reached the daily limit of the recipient's network",
    "30032": "the toll-free sender has not been verified",
    "30033": "the sender's campaign is suspended",
    "30034": "the sender's number is not registered for text messages to the United States (A2P 10DLC)",
    "30035": "the sender's number is still being registered",
    "30041": "the sender's number is not registered for text messages to the United Kingdom",
    "30410": "the recipient's network did not answer in time",
    "30450": "the text message was blocked",
}
"""Explanations of Twilio's error codes, for callbacks that contain only the code
(https://www.twilio.com/docs/api/errors).
"""


class _TwilioFields(CallbackFields):
    def sid(self, name: str) -> str:
        """Return a Twilio id. Raises `InvalidCallback`."""
        return self.require(name, _SID, "a Twilio id")


def translate_callback(path: str, fields: Fields) -> ReceivedCallback:
    """Translate a verified callback. Raises `InvalidCallback` for an unknown path."""
    kind = _KINDS.get(path)
    if kind is None:
        raise InvalidCallback("unknown callback address")
    event = kind(_TwilioFields(fields))
    events = () if event is None else (event,)
    if isinstance(event, TransferTargetReady):
        return ReceivedCallback(events, reply_with(join_conference(event.target_call_id)))
    if isinstance(event, TextMessageReceived):
        return ReceivedCallback(events, reply_with(MessagingResponse()))  # without a reply to its sender
    return ReceivedCallback(events, reply_with(end_call())) if path == INTRODUCED else ReceivedCallback(events)


def _read_call(fields: _TwilioFields) -> IncomingCall:
    caller = fields.get("From")
    from_number, verdict = "anonymous" if caller in _WITHHELD else caller, read_verstat(fields.get("StirVerstat"))
    return IncomingCall(fields.sid("CallSid"), from_number, fields.get("To"), metadata=verdict)


def _read_browser_call(fields: _TwilioFields) -> BrowserCall:
    """Translate a browser's call. `To` and `CallerId` are the page's parameters of `connect`; `From` is the token's
    identity.
    """
    caller = fields.get("From")
    if not caller.startswith(_CLIENT):
        raise InvalidCallback("a call to the application that does not come from a browser")
    return BrowserCall(
        fields.sid("CallSid"), fields.get("CallerId"), fields.get("To"), identity=caller.removeprefix(_CLIENT)
    )


def _read_call_status(fields: _TwilioFields) -> CarrierEvent | None:
    call_id, status = fields.sid("CallSid"), fields.get("CallStatus")
    outcome = _OUTCOMES.get(status)
    if outcome == "failed":
        code, sip_code = fields.get("ErrorCode"), fields.get("SipResponseCode")
        message = fields.get("ErrorMessage") or _describe_call_failure(code, sip_code)
        error_code = INVALID_NUMBER if code in NO_SUCH_NUMBER else code or sip_code or None
        return CallEnded(call_id, outcome, error_message=message, error_code=error_code)
    if outcome is not None:
        return CallEnded(call_id, outcome, fields.integer("CallDuration"))
    if status in ("queued", "initiated"):
        return CallAccepted(call_id)
    if status == "ringing":
        return CalleeRinging(call_id)
    return CallAnswered(call_id, _find_answerer(fields)) if status == "in-progress" else None


def _find_answerer(fields: _TwilioFields) -> AnsweredBy:
    return _ANSWERED_BY.get(fields.get("AnsweredBy"), "unknown")


def _read_key(fields: _TwilioFields) -> TransferTargetReady | None:
    """Translate the key that a transfer's target pressed. The status of a target who pressed another key follows."""
    target = fields.sid("CallSid")
    return TransferTargetReady(target) if fields.get("Digits") == ACCEPT_KEY else None


def _read_target(fields: _TwilioFields) -> TransferTargetGone | None:
    outcome = _OUTCOMES.get(fields.get("CallStatus"))
    return TransferTargetGone(fields.sid("CallSid"), outcome) if outcome is not None else None


def _read_stream(fields: _TwilioFields) -> CallEnded | None:
    """Translate a stream's status. A call without audio has failed for the platform; Twilio counts it as completed."""
    if fields.get("StreamEvent") != "stream-error":
        return None
    reason = fields.get("StreamError") or "no reason"
    return CallEnded(
        fields.sid("CallSid"), "failed", error_message=f"Twilio could not stream the call's audio: {reason}"
    )


def _read_detection(fields: _TwilioFields) -> CarrierEvent | None:
    call_id, answered_by = fields.sid("CallSid"), _find_answerer(fields)
    if answered_by == "machine":
        return MachineDetected(call_id, beep=fields.get("AnsweredBy").startswith("machine_end"))
    return CallAnswered(call_id, answered_by)


def _read_recording(fields: _TwilioFields) -> RecordingReady | None:
    if fields.get("RecordingStatus") != "completed":
        return None
    return RecordingReady(fields.sid("CallSid"), fields.sid("RecordingSid"))


def _read_text(fields: _TwilioFields) -> CarrierEvent | None:
    text_id, status = fields.sid("MessageSid"), fields.get("MessageStatus")
    if status:
        return translate_twilio_text_status(text_id, status, fields.get("ErrorCode"), fields.get("ErrorMessage"))
    body = fields.get("Body")
    media = tuple(url for index in range(fields.integer("NumMedia") or 0) if (url := fields.get(f"MediaUrl{index}")))
    opt_out = _OPT_OUTS.get(fields.get("OptOutType")) or _KEYWORDS.get(body.strip().upper())
    return TextMessageReceived(text_id, fields.get("From"), fields.get("To"), body, media, opt_out)


def translate_twilio_text_status(text_id: str, status: str, code: str, message: str) -> TextMessageStatus | None:
    """Translate a message's status that Twilio reports or returns; None for one that says nothing new."""
    state = _TEXT_STATES.get(status)
    if state is None:
        return None
    reason = (message or _describe_text_failure(code, status)) if state in ("undelivered", "failed") else None
    return TextMessageStatus(text_id, state, reason, code or None, opted_out=code == OPTED_OUT)


def _describe_call_failure(error_code: str, sip_code: str) -> str:
    """Return the reason why a call failed, by Twilio's error code, else by its SIP response code."""
    if error_code:
        return _link_to_documentation(error_code)
    if not sip_code:
        return "Twilio did not say why the call failed"
    return describe_sip_failure(sip_code)


def _describe_text_failure(error_code: str, status: str) -> str:
    """Return the reason why a text message was not delivered, by Twilio's error code."""
    if not error_code:
        return f"Twilio did not say why the text message is {status}"
    return (
        f"{_FAILURES[error_code]} (error {error_code})"
        if error_code in _FAILURES
        else _link_to_documentation(error_code)
    )


def _link_to_documentation(code: str) -> str:
    return f"Twilio error {code}, see https://www.twilio.com/docs/errors/{code}"


_KINDS: Final[Mapping[str, Callable[[_TwilioFields], CarrierEvent | None]]] = {
    CALL: _read_call,
    BROWSER: _read_browser_call,
    STATUS: _read_call_status,
    STREAM: _read_stream,
    INTRODUCED: _read_key,
    TARGET: _read_target,
    MACHINE: _read_detection,
    RECORDING: _read_recording,
    TEXT: _read_text,
}
