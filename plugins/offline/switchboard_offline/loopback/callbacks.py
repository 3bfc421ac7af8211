"""Notices that the carrier sends to the platform over HTTP, their delivery, and their translation by the provider."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import aiohttp
import msgspec
from switchboard.plugin_sdk import (
    BrowserCall,
    CallAnswered,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    CarrierReply,
    ConnectMedia,
    ForwardCall,
    IncomingCall,
    Instruction,
    InvalidCallback,
    MachineDetected,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetGone,
    TransferTargetReady,
)
from switchboard.plugin_sdk.telephony_events import AnsweredBy, CallOutcome

from switchboard_offline.loopback import signatures

RETRY_SECONDS: Final = (0.2, 1.0, 3.0)
ANSWER_SECONDS: Final = 10.0


class IncomingCallNotice(msgspec.Struct, frozen=True, tag_field="type", tag="incoming"):
    call_id: str
    from_number: str
    to_number: str
    identity: str | None = None
    """Identity of the browser's token; None for a telephone."""


class RingingNotice(msgspec.Struct, frozen=True, tag_field="type", tag="ringing"):
    call_id: str


class AnsweredNotice(msgspec.Struct, frozen=True, tag_field="type", tag="answered"):
    call_id: str
    answered_by: AnsweredBy


class BeepNotice(msgspec.Struct, frozen=True, tag_field="type", tag="beep"):
    call_id: str


class CallEndedNotice(msgspec.Struct, frozen=True, tag_field="type", tag="ended"):
    call_id: str
    outcome: CallOutcome
    duration_seconds: int = 0
    error_message: str | None = None
    error_code: str | None = None


class TargetReadyNotice(msgspec.Struct, frozen=True, tag_field="type", tag="introduced"):
    """The target of a warm transfer has accepted the call."""

    call_id: str


class TargetGoneNotice(msgspec.Struct, frozen=True, tag_field="type", tag="left"):
    """The target of a warm transfer did not answer, or has hung up."""

    call_id: str
    outcome: CallOutcome
    error_code: str | None = None


class InboundTextNotice(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    text_id: str
    from_number: str
    to_number: str
    body: str
    media_urls: tuple[str, ...] = ()


class TextStatusNotice(msgspec.Struct, frozen=True, tag_field="type", tag="text_status"):
    text_id: str
    status: Literal["sent", "delivered", "undelivered"]
    error_message: str | None = None
    error_code: str | None = None


Notice: TypeAlias = (
    IncomingCallNotice
    | RingingNotice
    | AnsweredNotice
    | BeepNotice
    | CallEndedNotice
    | TargetReadyNotice
    | TargetGoneNotice
    | InboundTextNotice
    | TextStatusNotice
)


class ConnectReply(msgspec.Struct, frozen=True, tag_field="action", tag="connect"):
    media_url: str


class ForwardReply(msgspec.Struct, frozen=True, tag_field="action", tag="forward"):
    to_number: str
    caller_id: str
    clients_port: int = 0
    """Port of the exchange that has the sockets of clients; 0 for a phone number."""


class RejectReply(msgspec.Struct, frozen=True, tag_field="action", tag="reject"):
    reason: Literal["rejected", "busy"]


Reply: TypeAlias = ConnectReply | ForwardReply | RejectReply

_decoder: Final[msgspec.json.Decoder[Notice]] = msgspec.json.Decoder(Notice)
_answer: Final[msgspec.json.Decoder[Reply]] = msgspec.json.Decoder(Reply)
_PATHS: Final = {IncomingCallNotice: "call", InboundTextNotice: "text", TextStatusNotice: "text"}


def read_reply(body: bytes) -> Reply:
    """Return the platform's decision about an incoming call. Raises `ValueError`."""
    return _answer.decode(body)


def write_reply(instruction: Instruction, clients_port: int = 0) -> CarrierReply:
    """Write an instruction as the response to the notice of the incoming call.

    `clients_port` is that of a `ForwardReply`.
    """
    answer: Reply
    match instruction:
        case ConnectMedia(media_url):
            answer = ConnectReply(media_url)
        case ForwardCall(to_number, caller_id):
            answer = ForwardReply(to_number, caller_id, clients_port)
        case _:
            answer = RejectReply(instruction.reason)
    return CarrierReply(msgspec.json.encode(answer), "application/json")


def translate_notice(message: bytes) -> CarrierEvent:
    """Translate a verified notice to an event. Raises `InvalidCallback`."""
    try:
        notice = _decoder.decode(message)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise InvalidCallback("the callback is not one of the loopback carrier's") from None
    match notice:
        case TargetReadyNotice(call_id):
            return TransferTargetReady(call_id)
        case TargetGoneNotice(call_id, outcome):
            return TransferTargetGone(call_id, outcome)
        case InboundTextNotice(text_id, from_number, to_number, body, media_urls):
            return TextMessageReceived(text_id, from_number, to_number, body, media_urls)
        case TextStatusNotice(text_id, status, error_message, error_code):
            return TextMessageStatus(text_id, status, error_message, error_code)
    return _translate_call_notice(notice)


def _translate_call_notice(
    notice: IncomingCallNotice | RingingNotice | AnsweredNotice | BeepNotice | CallEndedNotice,
) -> CarrierEvent:
    match notice:
        case IncomingCallNotice(identity=str(identity)):
            return BrowserCall(notice.call_id, notice.from_number, notice.to_number, identity)
        case IncomingCallNotice():
            return IncomingCall(notice.call_id, notice.from_number, notice.to_number)
        case RingingNotice():
            return CalleeRinging(notice.call_id)
        case AnsweredNotice():
            return CallAnswered(notice.call_id, notice.answered_by)
        case BeepNotice():
            return MachineDetected(notice.call_id, beep=True)
        case CallEndedNotice():
            return CallEnded(
                notice.call_id, notice.outcome, notice.duration_seconds, notice.error_message, notice.error_code
            )


class NoticeUndelivered(Exception):
    """The platform did not accept a notice."""


@dataclass(frozen=True, slots=True)
class NoticeSender:
    """Delivers notices, with retries if the platform fails or does not answer; without retries once `closing`
    is set.
    """

    http: aiohttp.ClientSession
    secret: str
    closing: asyncio.Event

    async def deliver(self, events_url: str, notice: Notice) -> bytes:
        """Deliver a notice and return the platform's response.

        Raises `NoticeUndelivered` when the platform refuses it, or no retry is left.
        """
        url = f"{events_url}/{_PATHS.get(type(notice), 'status')}"
        body = msgspec.json.encode(notice)
        reason = ""
        for wait in (0.0, *RETRY_SECONDS):
            if wait:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self.closing.wait()
                if self.closing.is_set():
                    break
            try:
                status, answer = await self.send(url, body)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                reason = f"the platform cannot be reached: {str(error) or type(error).__name__}"
                continue
            if status < 300:
                return answer
            reason = f"the platform answered {status}"
            if status < 500:
                break
        raise NoticeUndelivered(reason)

    async def send(self, url: str, body: bytes) -> tuple[int, bytes]:
        """Send one signed request. Raises aiohttp's errors."""
        headers = {
            signatures.HEADER: signatures.sign_request(self.secret, url, body),
            "Content-Type": "application/json",
        }
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        async with self.http.post(url, data=body, headers=headers, timeout=timeout, allow_redirects=False) as response:
            return response.status, await response.read()
