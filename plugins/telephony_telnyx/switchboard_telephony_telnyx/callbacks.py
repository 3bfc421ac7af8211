"""Webhooks of Telnyx: the verification of their signature, and their translation to the platform's events.

`Telnyx-Signature-Ed25519` (https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks) is Ed25519 over
`timestamp|body` with the account's key, valid for five minutes. It does not cover the address. A replayed webhook
changes nothing, and one sent to another call's address is recognized by the state that the call was placed with.

Events and fields: https://developers.telnyx.com/docs/voice/programmable-voice/receiving-webhooks and
https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks. Telnyx does not report ringing, so a call that
it dials counts as ringing.
"""

import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from switchboard.plugin_sdk import (
    ACCEPT_KEY,
    BrowserCall,
    CallAnswered,
    CallbackRequest,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    IncomingCall,
    InvalidCallback,
    MachineDetected,
    RecordingReady,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetGone,
    TransferTargetReady,
    describe_sip_failure,
)
from switchboard.plugin_sdk.telephony_events import AnsweredBy, CallOutcome, OptOut, TextState

from switchboard_telephony_telnyx.errors import is_opt_out
from switchboard_telephony_telnyx.settings import TelnyxSettings
from switchboard_telephony_telnyx.state import CallState, read_state

HEADER: Final = "telnyx-signature-ed25519"
TIMESTAMP: Final = "telnyx-timestamp"
TOLERANCE_SECONDS: Final = 300


def verify_telnyx_signature(request: CallbackRequest, public_key: str) -> bytes:
    """Return the body of a webhook with a valid, recent signature. Raises `InvalidCallback`."""
    signature, timestamp = request.headers.get(HEADER), request.headers.get(TIMESTAMP)
    if not signature or not timestamp:
        raise InvalidCallback("the signature is missing")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        raise InvalidCallback("the time of the signature is garbled")
    try:
        Ed25519PublicKey.from_public_bytes(b64decode(public_key)).verify(
            b64decode(signature, validate=True), timestamp.encode() + b"|" + request.body
        )
    except InvalidSignature:
        raise InvalidCallback("the signature does not match") from None
    except ValueError:
        raise InvalidCallback("the signature is garbled") from None
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        raise InvalidCallback("the signature is too old or from the future")
    return request.body


DIALED_HEADER: Final = "x-switchboard-to"
_OUTCOMES: Final[Mapping[str, CallOutcome]] = {
    "normal_clearing": "completed",
    "time_limit": "completed",
    "originator_cancel": "canceled",
    "timeout": "no-answer",
    "no_answer": "no-answer",
    "user_busy": "busy",
    "call_rejected": "failed",
    "not_found": "failed",
    "unspecified": "failed",
}
_FAILURES: Final[Mapping[str, str]] = {
    "call_rejected": "the destination rejected the call",
    "not_found": "the number is not in service",
    "unspecified": "Telnyx did not say why the call failed",
}
"""Explanations of causes that come without one (https://developers.telnyx.com/docs/messaging/messages/error-codes)."""
_BUSY_CODES: Final = ("486", "600")
_FOUND: Final[Mapping[str, AnsweredBy]] = {
    "human": "human",
    "human_residence": "human",
    "human_business": "human",
    "machine": "machine",
    "fax_detected": "machine",
    "silence": "unknown",
    "not_sure": "unknown",
}
_TEXT_STATES: Final[Mapping[str, TextState]] = {
    "queued": "sending",
    "sending": "sending",
    "sent": "sent",
    "delivery_unconfirmed": "sent",
    "delivered": "delivered",
    "read": "delivered",
    "delivery_failed": "undelivered",
    "expired": "undelivered",
    "sending_failed": "failed",
}
_OPT_OUTS: Final[Mapping[str, OptOut]] = {"STOP": "stop", "START": "start", "HELP": "help"}


class TelnyxProblem(msgspec.Struct):
    """Reason why a text message failed."""

    code: str = ""
    title: str = ""
    detail: str = ""


class TelnyxAddress(msgspec.Struct):
    phone_number: str = ""
    status: str = ""


class TelnyxAttachment(msgspec.Struct):
    url: str = ""


class TelnyxCost(msgspec.Struct):
    """Cost of a text message. Telnyx's schema has a string amount, its examples a number."""

    amount: str | float = ""
    currency: str = ""


class TelnyxHeader(msgspec.Struct):
    """SIP header that a web page added to its call."""

    name: str = ""
    value: str = ""


class CallPayload(msgspec.Struct, rename={"from_number": "from"}):
    """Payload of call events, as far as the plugin uses it."""

    call_control_id: str = ""
    call_leg_id: str = ""
    connection_id: str = ""
    client_state: str = ""
    from_number: str = ""
    to: str = ""
    direction: str = ""
    state: str = ""
    caller_id_name: str = ""
    hangup_cause: str = ""
    sip_hangup_cause: str = ""
    custom_headers: list[TelnyxHeader] = []
    result: str = ""
    digits: str = ""
    failure_reason: str = ""
    shaken_stir_attestation: str = ""
    shaken_stir_validated: bool = False


class TextPayload(msgspec.Struct, rename={"sender": "from"}):
    """Payload of messaging events, as far as the plugin uses it."""

    id: str = ""
    sender: TelnyxAddress = msgspec.field(default_factory=TelnyxAddress)
    to: list[TelnyxAddress] = []
    text: str = ""
    media: list[TelnyxAttachment] = []
    errors: list[TelnyxProblem] = []
    parts: int | None = None
    cost: TelnyxCost | None = None
    webhook_url: str | None = None
    autoresponse_type: str = ""


class _Event(msgspec.Struct):
    event_type: str
    payload: dict[str, object]


class _Webhook(msgspec.Struct):
    data: _Event


_webhook: Final[msgspec.json.Decoder[_Webhook]] = msgspec.json.Decoder(_Webhook)


@dataclass(frozen=True, slots=True)
class HangUpCall:
    """Command to end a call in which nothing else happens."""

    call_id: str


@dataclass(frozen=True, slots=True)
class ForwardAnsweredCall:
    """Command to connect an answered inbound call to another number."""

    call_id: str
    to_number: str
    caller_id: str


@dataclass(frozen=True, slots=True)
class AskTarget:
    """Command to ask the target of a warm transfer, who has answered, for a key."""

    call_id: str
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class WebhookResult:
    """Event of a webhook, and the command that Telnyx needs in response."""

    event: CarrierEvent | None = None
    command: HangUpCall | ForwardAnsweredCall | AskTarget | None = None


def translate_webhook(settings: TelnyxSettings, body: bytes, url: str) -> WebhookResult:
    """Translate a verified webhook that arrived at this address. Raises `InvalidCallback`."""
    try:
        event = _webhook.decode(body).data
        if event.event_type in _CALL_EVENTS:
            call = msgspec.convert(_drop_nulls(event.payload), CallPayload)
            return _about_call(settings, event.event_type, call, url)
        if event.event_type in _TEXT_EVENTS:
            text = msgspec.convert(_drop_nulls(event.payload), TextPayload)
            return WebhookResult(_about_text(event.event_type, text, url))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise InvalidCallback("the webhook is not one of Telnyx's") from None
    return WebhookResult()


def _about_call(settings: TelnyxSettings, name: str, call: CallPayload, url: str) -> WebhookResult:
    state = read_state(settings.api_key.get_secret_value(), call.client_state)
    if not call.call_control_id and name != "call.recording.saved":
        raise InvalidCallback("the webhook names no call")
    if state.leg_of:
        return WebhookResult(command=HangUpCall(state.leg_of) if name == "call.hangup" else None)
    if state.introduction:
        return _about_target(name, call, state)
    if state.reference and state.reference not in url:
        raise InvalidCallback("the webhook is about another call")
    if name == "call.initiated" and call.connection_id == settings.credential_connection_id:
        # A call from a browser, which is outgoing to Telnyx, waits there. Any other one is the leg that rings a client.
        waits = call.state == "parked" and call.direction != "incoming"
        return WebhookResult(_translate_browser_call(call) if waits else None)
    return _CALL_EVENTS[name](call, state)


def _drop_nulls(value: object) -> object:
    """Remove nulls. Telnyx omits unknown fields or sends them as null."""
    if isinstance(value, dict):
        return {name: _drop_nulls(part) for name, part in value.items() if part is not None}
    return [_drop_nulls(part) for part in value if part is not None] if isinstance(value, list) else value


def _translate_browser_call(call: CallPayload) -> BrowserCall:
    # Telnyx itself takes only phone numbers and SIP addresses, so any other value arrives in a header of ours.
    dialed = next((header.value for header in call.custom_headers if header.name.lower() == DIALED_HEADER), call.to)
    identity = call.caller_id_name or call.from_number
    return BrowserCall(call.call_control_id, call.from_number, dialed, identity=identity)


def _about_target(name: str, call: CallPayload, state: CallState) -> WebhookResult:
    if name == "call.answered":
        return WebhookResult(command=AskTarget(call.call_control_id, state.introduction, state.language))
    if name == "call.gather.ended":
        if call.digits == ACCEPT_KEY:
            return WebhookResult(TransferTargetReady(call.call_control_id))
        # If the target hung up meanwhile, this is harmless. In each case `call.hangup` follows.
        return WebhookResult(command=HangUpCall(call.call_control_id))
    gone = TransferTargetGone(call.call_control_id, _OUTCOMES.get(call.hangup_cause, "failed"))
    return WebhookResult(gone if name == "call.hangup" else None)


def _translate_start(call: CallPayload, state: CallState) -> WebhookResult:
    if state.reference:
        return WebhookResult(CalleeRinging(call.call_control_id))
    signed = call.shaken_stir_attestation if call.shaken_stir_validated else "failed"
    verdict = {"stir_shaken": signed} if call.shaken_stir_attestation else {}
    announced = IncomingCall(call.call_control_id, call.from_number, call.to, metadata=verdict)
    return WebhookResult(announced if call.direction == "incoming" else None)


def _translate_answer(call: CallPayload, state: CallState) -> WebhookResult:
    if state.forward_to:
        return WebhookResult(command=ForwardAnsweredCall(call.call_control_id, state.forward_to, state.caller_id))
    return WebhookResult(CallAnswered(call.call_control_id) if state.reference else None)


def _translate_end(call: CallPayload, _: CallState) -> WebhookResult:
    cause, sip_code = call.hangup_cause, call.sip_hangup_cause
    outcome = _OUTCOMES.get(cause, "failed")
    if outcome == "failed" and sip_code in _BUSY_CODES:
        outcome = "busy"
    if outcome != "failed":
        return WebhookResult(CallEnded(call.call_control_id, outcome))
    # `not_found` is also sent for calls of a blocked account, so it does not mean that the number does not exist.
    code, message = cause, _FAILURES.get(cause, f"Telnyx ended the call: {cause or 'no cause'}")
    if sip_code.isdecimal():
        code, message = sip_code, describe_sip_failure(sip_code)
    return WebhookResult(CallEnded(call.call_control_id, "failed", error_message=message, error_code=code or None))


def _translate_detection(call: CallPayload, _: CallState) -> WebhookResult:
    answered_by = _FOUND.get(call.result, "unknown")
    if answered_by == "machine":
        return WebhookResult(MachineDetected(call.call_control_id))
    return WebhookResult(CallAnswered(call.call_control_id, answered_by))


def _translate_greeting(call: CallPayload, _: CallState) -> WebhookResult:
    """Translate the end of a machine's greeting. An end that is not certain adds nothing to earlier events."""
    is_over = call.result in ("beep_detected", "ended", "no_beep_detected")
    return WebhookResult(MachineDetected(call.call_control_id, beep=True) if is_over else None)


def _translate_recording(call: CallPayload, state: CallState) -> WebhookResult:
    """Translate a saved recording. Telnyx names the leg, not the call; the webhook's address or the call's state names
    the call.
    """
    if not call.call_leg_id:
        raise InvalidCallback("the webhook names no call")
    return WebhookResult(RecordingReady(call.call_control_id or state.call_id or call.call_leg_id, call.call_leg_id))


def _stream_failed(call: CallPayload, state: CallState) -> WebhookResult:
    """Translate a failed stream. The call is ended, because it would go on in silence."""
    if state.transferred:
        return WebhookResult()
    code = call.failure_reason
    reason = "it could not connect to the platform" if code == "connection_failed" else code or "no reason"
    message = f"Telnyx could not stream the call's audio: {reason}"
    failed = CallEnded(call.call_control_id, "failed", error_message=message, error_code=code or None)
    return WebhookResult(failed, command=HangUpCall(call.call_control_id))


def _about_text(name: str, text: TextPayload, url: str) -> CarrierEvent | None:
    if not text.id or not text.to:
        raise InvalidCallback("the webhook names no text")
    if name == "message.received":
        opt_out = _OPT_OUTS.get(text.autoresponse_type.upper())
        media = tuple(item.url for item in text.media if item.url)
        sender, receiver = text.sender.phone_number, text.to[0].phone_number
        return TextMessageReceived(text.id, sender, receiver, text.text, media, opt_out)
    if text.webhook_url is not None and text.webhook_url != url:
        raise InvalidCallback("the webhook is about another text")
    return translate_telnyx_text_status(text)


def translate_telnyx_text_status(text: TextPayload) -> TextMessageStatus | None:
    """Translate an outbound message that Telnyx reports or returns; None for a status that says nothing new."""
    status = _TEXT_STATES.get(text.to[0].status if text.to else "")
    if status is None:
        return None
    cost = float(text.cost.amount) if text.cost and text.cost.amount and text.cost.currency == "USD" else None
    if status not in ("undelivered", "failed"):
        return TextMessageStatus(text.id, status, segments=text.parts, cost=cost)
    problem = text.errors[0] if text.errors else TelnyxProblem(title="Telnyx did not say why")
    message = f"{problem.title}: {problem.detail}" if problem.detail else problem.title
    opted_out = is_opt_out(problem.code, message)
    return TextMessageStatus(
        text.id, status, message, problem.code or None, segments=text.parts, cost=cost, opted_out=opted_out
    )


_CALL_EVENTS: Final[Mapping[str, Callable[[CallPayload, CallState], WebhookResult]]] = {
    "call.initiated": _translate_start,
    "call.answered": _translate_answer,
    "call.hangup": _translate_end,
    "call.gather.ended": lambda _call, _state: WebhookResult(),
    "call.machine.detection.ended": _translate_detection,
    "call.machine.premium.detection.ended": _translate_detection,
    "call.machine.greeting.ended": _translate_greeting,
    "call.machine.premium.greeting.ended": _translate_greeting,
    "call.recording.saved": _translate_recording,
    "streaming.failed": _stream_failed,
}
_TEXT_EVENTS: Final = ("message.received", "message.sent", "message.finalized", "message.read")
