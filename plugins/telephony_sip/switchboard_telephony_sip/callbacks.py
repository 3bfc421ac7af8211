"""Notices that a gateway sends to the platform, the platform's replies, and their translation by the provider."""

from typing import Final, TypeAlias

import msgspec
from switchboard.plugin_sdk import (
    CallAnswered,
    CalleeRinging,
    CallEnded,
    CallQuality,
    CarrierEvent,
    CarrierReply,
    ConnectMedia,
    ForwardCall,
    IncomingCall,
    Instruction,
    InvalidCallback,
    RejectCall,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetGone,
    TransferTargetReady,
)
from switchboard.plugin_sdk.telephony_events import CallOutcome


class IncomingNotice(msgspec.Struct, frozen=True, tag_field="type", tag="incoming"):
    """A call has come in and waits for a reply."""

    call_id: str
    from_number: str
    to_number: str
    metadata: dict[str, str] = {}


class SipRingingNotice(msgspec.Struct, frozen=True, tag_field="type", tag="ringing"):
    call_id: str


class SipAnsweredNotice(msgspec.Struct, frozen=True, tag_field="type", tag="answered"):
    call_id: str


class LineQuality(msgspec.Struct, frozen=True):
    """Quality of the audio that came from the trunk."""

    loss_share: float
    jitter_ms: float
    mos: float


class EndedNotice(msgspec.Struct, frozen=True, tag_field="type", tag="ended"):
    """A call is over. `error_code` is the SIP status of a call that failed, or the platform's own code."""

    call_id: str
    outcome: CallOutcome
    duration_seconds: int = 0
    error_message: str | None = None
    error_code: str | None = None
    quality: LineQuality | None = None


class SipTargetReadyNotice(msgspec.Struct, frozen=True, tag_field="type", tag="target_ready"):
    """The target of a warm transfer has accepted the call."""

    call_id: str


class SipTargetGoneNotice(msgspec.Struct, frozen=True, tag_field="type", tag="target_gone"):
    call_id: str
    outcome: CallOutcome


class TextNotice(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """A SIP MESSAGE has come in."""

    text_id: str
    from_number: str
    to_number: str
    body: str


class TextDeliveredNotice(msgspec.Struct, frozen=True, tag_field="type", tag="text_delivered"):
    """The trunk has taken a text message."""

    text_id: str


CallNotice: TypeAlias = SipRingingNotice | SipAnsweredNotice | EndedNotice
Notice: TypeAlias = (
    IncomingNotice | CallNotice | SipTargetReadyNotice | SipTargetGoneNotice | TextNotice | TextDeliveredNotice
)


class SipConnectReply(msgspec.Struct, frozen=True, tag_field="action", tag="connect"):
    media_url: str


class SipForwardReply(msgspec.Struct, frozen=True, tag_field="action", tag="forward"):
    to_number: str
    caller_id: str


class SipRejectReply(msgspec.Struct, frozen=True, tag_field="action", tag="reject"):
    """`status` is the SIP status with which the gateway answers."""

    status: int


GatewayReply: TypeAlias = SipConnectReply | SipForwardReply | SipRejectReply
NOT_FOUND, BUSY, DECLINED = 404, 486, 603

_notices: Final[msgspec.json.Decoder[Notice]] = msgspec.json.Decoder(Notice)
REPLIES: Final[msgspec.json.Decoder[GatewayReply]] = msgspec.json.Decoder(GatewayReply)
"""Reads the platform's decision about an incoming call. Raises `ValueError`."""


def get_notice_path(notice: Notice) -> str:
    """Return the path of a notice after the callback address."""
    if isinstance(notice, IncomingNotice | TextNotice):
        return "call" if isinstance(notice, IncomingNotice) else "text"
    return "status"


def write_gateway_reply(instruction: Instruction) -> CarrierReply:
    """Write an instruction as the response to the notice of the incoming call."""
    reply: GatewayReply
    match instruction:
        case ConnectMedia(media_url):
            reply = SipConnectReply(media_url)
        case ForwardCall(to_number, caller_id):
            reply = SipForwardReply(to_number, caller_id)
        case RejectCall():
            status = BUSY if instruction.reason == "busy" else DECLINED
            reply = SipRejectReply(NOT_FOUND if instruction.unknown_number else status)
    return CarrierReply(msgspec.json.encode(reply), "application/json")


def translate_gateway_notice(body: bytes) -> CarrierEvent:
    """Translate a verified notice to an event. Raises `InvalidCallback`."""
    try:
        notice = _notices.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise InvalidCallback("the callback is not a gateway's") from None
    match notice:
        case IncomingNotice():
            return IncomingCall(notice.call_id, notice.from_number, notice.to_number, metadata=notice.metadata)
        case TextNotice():
            return TextMessageReceived(notice.text_id, notice.from_number, notice.to_number, notice.body)
        case TextDeliveredNotice(text_id):
            return TextMessageStatus(text_id, "sent")
        case SipTargetReadyNotice():
            return TransferTargetReady(notice.call_id)
        case SipTargetGoneNotice():
            return TransferTargetGone(notice.call_id, notice.outcome)
        case _:
            return _translate_progress(notice)


def _translate_progress(notice: CallNotice) -> CarrierEvent:
    if isinstance(notice, SipRingingNotice):
        return CalleeRinging(notice.call_id)
    if isinstance(notice, SipAnsweredNotice):
        return CallAnswered(notice.call_id)
    quality = notice.quality
    return CallEnded(
        notice.call_id,
        notice.outcome,
        notice.duration_seconds,
        notice.error_message,
        notice.error_code,
        quality=CallQuality(quality.loss_share, quality.jitter_ms, quality.mos) if quality else None,
    )
