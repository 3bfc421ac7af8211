"""What Telnyx tells by webhook, in the platform's words.

Events and fields: https://developers.telnyx.com/docs/voice/programmable-voice/receiving-webhooks and
https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks. Telnyx does not tell that a call rings: one that it dials counts as ringing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import msgspec
from switchboard.plugin_sdk import (
    BrowserCall,
    CallAnswered,
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
)
from switchboard.plugin_sdk.telephony import AnsweredBy, CallOutcome

from switchboard_telephony_telnyx.errors import is_opt_out
from switchboard_telephony_telnyx.state import CallState, read_state
from switchboard_telephony_telnyx.wording import describe_stream_failure, describe_telnyx_call_failure

DIALLED: Final = "x-switchboard-to"
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
_TextState = Literal["sending", "sent", "delivered", "undelivered", "failed"]
_TEXT_STATES: Final[Mapping[str, _TextState]] = {
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
_OPT_OUTS: Final[Mapping[str, Literal["stop", "start", "help"]]] = {"STOP": "stop", "START": "start", "HELP": "help"}


class TelnyxProblem(msgspec.Struct):
    """Why a text failed."""

    code: str = ""
    title: str = ""
    detail: str = ""


class TelnyxAddress(msgspec.Struct):
    phone_number: str = ""
    status: str = ""


class TelnyxAttachment(msgspec.Struct):
    url: str = ""


class TelnyxCost(msgspec.Struct):
    """What a text costs; Telnyx's schema says that the amount is a text, its examples have a number."""

    amount: str | float = ""
    currency: str = ""


class TelnyxHeader(msgspec.Struct):
    """One that a page gave its call along."""

    name: str = ""
    value: str = ""


class CallPayload(msgspec.Struct, rename={"from_number": "from"}):
    """What events about calls say, as far as it matters here."""

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
    status: str = ""
    failure_reason: str = ""


class TextPayload(msgspec.Struct, rename={"sender": "from"}):
    """What events about texts say, as far as it matters here."""

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
    """A call that is to be ended, because nothing follows in it."""

    call_id: str


@dataclass(frozen=True, slots=True)
class ForwardAnsweredCall:
    """An incoming call that is answered, and now to be connected to another number."""

    call_id: str
    to_number: str
    caller_id: str


@dataclass(frozen=True, slots=True)
class SpeakToTarget:
    """The target of a warm transfer has answered, and is to hear why."""

    call_id: str
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class WebhookResult:
    """What a webhook says, and what Telnyx is to be told on it."""

    event: CarrierEvent | None = None
    then: HangUpCall | ForwardAnsweredCall | SpeakToTarget | None = None


@dataclass(frozen=True, slots=True)
class WebhookReader:
    """Reads the webhooks of one account. Calls on `browser_connection` come from browsers."""

    api_key: str
    browser_connection: str | None

    def read(self, body: bytes, url: str) -> WebhookResult:
        """A verified webhook that came to this address. Raises `InvalidCallback`."""
        try:
            event = _webhook.decode(body).data
            if event.event_type in _CALL_EVENTS:
                return self._about_call(event.event_type, msgspec.convert(_known(event.payload), CallPayload), url)
            if event.event_type in _TEXT_EVENTS:
                return WebhookResult(
                    _about_text(event.event_type, msgspec.convert(_known(event.payload), TextPayload), url)
                )
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise InvalidCallback("the webhook is not one of Telnyx's") from None
        return WebhookResult()

    def _about_call(self, name: str, call: CallPayload, url: str) -> WebhookResult:
        state = read_state(self.api_key, call.client_state)
        if not call.call_control_id and name != "call.recording.saved":
            raise InvalidCallback("the webhook names no call")
        if state.leg_of:
            return WebhookResult(then=HangUpCall(state.leg_of) if name == "call.hangup" else None)
        if state.introduction:
            return _about_target(name, call, state)
        if state.reference and state.reference not in url:
            raise InvalidCallback("the webhook is about another call")
        if name == "call.initiated" and self._is_browsers(call):
            identity = call.caller_id_name or call.from_number
            return WebhookResult(BrowserCall(call.call_control_id, call.from_number, _dialled(call), identity=identity))
        return _CALL_EVENTS[name](call, state)

    def _is_browsers(self, call: CallPayload) -> bool:
        """Whether a call waits on the connection that browsers call by; it is outgoing, as Telnyx sees it."""
        return (
            self.browser_connection is not None
            and call.connection_id == self.browser_connection
            and call.state == "parked"
        )


def _known(told: object) -> object:
    """Without nulls: what it does not know, Telnyx leaves out or tells as null."""
    if isinstance(told, dict):
        return {name: _known(value) for name, value in told.items() if value is not None}
    return [_known(value) for value in told if value is not None] if isinstance(told, list) else told


def _dialled(call: CallPayload) -> str:
    """What a page dials: Telnyx itself takes numbers and SIP addresses only, so anything else comes in a header of ours."""
    return next((header.value for header in call.custom_headers if header.name.lower() == DIALLED), call.to)


def _about_target(name: str, call: CallPayload, state: CallState) -> WebhookResult:
    if name == "call.answered":
        return WebhookResult(then=SpeakToTarget(call.call_control_id, state.introduction, state.language))
    if name == "call.speak.ended":
        # Ended by their hanging up, it is followed by that.
        return WebhookResult(TransferTargetReady(call.call_control_id) if call.status in ("", "completed") else None)
    return WebhookResult(
        TransferTargetGone(call.call_control_id, _OUTCOMES.get(call.hangup_cause, "failed"))
        if name == "call.hangup"
        else None
    )


def _nothing(_: CallPayload, __: CallState) -> WebhookResult:
    """Known of, and of no matter here."""
    return WebhookResult()


def _initiated(call: CallPayload, state: CallState) -> WebhookResult:
    if state.reference:
        return WebhookResult(CalleeRinging(call.call_control_id))
    return WebhookResult(
        IncomingCall(call.call_control_id, call.from_number, call.to) if call.direction == "incoming" else None
    )


def _answered(call: CallPayload, state: CallState) -> WebhookResult:
    if state.forward_to:
        return WebhookResult(then=ForwardAnsweredCall(call.call_control_id, state.forward_to, state.caller_id))
    return WebhookResult(CallAnswered(call.call_control_id) if state.reference else None)


def _ended(call: CallPayload, _: CallState) -> WebhookResult:
    cause, sip_code = call.hangup_cause, call.sip_hangup_cause
    outcome = _OUTCOMES.get(cause, "failed")
    if outcome != "failed":
        return WebhookResult(CallEnded(call.call_control_id, outcome))
    if sip_code in _BUSY_CODES:
        return WebhookResult(CallEnded(call.call_control_id, "busy"))
    # `not_found` comes for calls of a blocked account too, so it does not say that there is no such number.
    code = sip_code if sip_code.isdecimal() else cause
    return WebhookResult(
        CallEnded(
            call.call_control_id,
            "failed",
            error_message=describe_telnyx_call_failure(cause, sip_code),
            error_code=code or None,
        )
    )


def _detected(call: CallPayload, _: CallState) -> WebhookResult:
    answered_by = _FOUND.get(call.result, "unknown")
    if answered_by == "machine":
        return WebhookResult(MachineDetected(call.call_control_id))
    return WebhookResult(CallAnswered(call.call_control_id, answered_by))


def _greeted(call: CallPayload, _: CallState) -> WebhookResult:
    """A machine's greeting is over. Without a beep nothing is known that was not told before."""
    return WebhookResult(MachineDetected(call.call_control_id, beep=True) if call.result == "beep_detected" else None)


def _recorded(call: CallPayload, state: CallState) -> WebhookResult:
    """Telnyx names the leg and not the call: the webhook's address does, or the call's state."""
    if not call.call_leg_id:
        raise InvalidCallback("the webhook names no call")
    return WebhookResult(RecordingReady(call.call_control_id or state.call_id or call.call_leg_id, call.call_leg_id))


def _stream_failed(call: CallPayload, state: CallState) -> WebhookResult:
    """A call without audio would go on in silence."""
    if state.transferred:
        return WebhookResult()
    failed = CallEnded(
        call.call_control_id,
        "failed",
        error_message=describe_stream_failure(call.failure_reason),
        error_code=call.failure_reason or None,
    )
    return WebhookResult(failed, then=HangUpCall(call.call_control_id))


def _about_text(name: str, text: TextPayload, url: str) -> CarrierEvent | None:
    if not text.id or not text.to:
        raise InvalidCallback("the webhook names no text")
    if name == "message.received":
        opt_out = _OPT_OUTS.get(text.autoresponse_type.upper())
        media = tuple(item.url for item in text.media if item.url)
        return TextMessageReceived(
            text.id, text.sender.phone_number, text.to[0].phone_number, text.text, media, opt_out
        )
    if text.webhook_url is not None and text.webhook_url != url:
        raise InvalidCallback("the webhook is about another text")
    status = _TEXT_STATES.get(text.to[0].status)
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
    "call.initiated": _initiated,
    "call.answered": _answered,
    "call.hangup": _ended,
    "call.speak.ended": _nothing,
    "call.machine.detection.ended": _detected,
    "call.machine.premium.detection.ended": _detected,
    "call.machine.greeting.ended": _greeted,
    "call.machine.premium.greeting.ended": _greeted,
    "call.recording.saved": _recorded,
    "streaming.failed": _stream_failed,
}
_TEXT_EVENTS: Final = ("message.received", "message.sent", "message.finalized", "message.read")
