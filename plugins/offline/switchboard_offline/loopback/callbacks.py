"""Notices that the carrier sends to the platform over HTTP: the SDK's events as JSON, and their delivery."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import aiohttp
import msgspec
from switchboard.plugin_sdk import (
    BrowserCall,
    CallAnswered,
    CallbackReply,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
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

from switchboard_offline.loopback import signatures

RETRY_SECONDS: Final = (0.2, 1.0, 3.0)
ANSWER_SECONDS: Final = 10.0


_EVENTS: Final[Mapping[str, type[CarrierEvent]]] = {
    "incoming": IncomingCall,
    "browser": BrowserCall,
    "ringing": CalleeRinging,
    "answered": CallAnswered,
    "machine": MachineDetected,
    "ended": CallEnded,
    "introduced": TransferTargetReady,
    "left": TransferTargetGone,
    "text": TextMessageReceived,
    "text_status": TextMessageStatus,
}
"""Events by the `type` of their notices, which have the fields of the event."""
_TYPES: Final = {kind: name for name, kind in _EVENTS.items()}
_PATHS: Final = {IncomingCall: "call", BrowserCall: "call", TextMessageReceived: "text", TextMessageStatus: "text"}


def write_notice(event: CarrierEvent) -> bytes:
    """Write an event as a notice."""
    return msgspec.json.encode({"type": _TYPES[type(event)], **msgspec.to_builtins(event)})


def read_notice(message: bytes) -> CarrierEvent:
    """Return the event of a verified notice. Raises `InvalidCallback`."""
    try:
        fields = msgspec.json.decode(message, type=dict[str, object])
        return msgspec.convert(fields, _EVENTS[str(fields.get("type"))])
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError):
        raise InvalidCallback("the callback is not one of the loopback carrier's") from None


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

_answer: Final[msgspec.json.Decoder[Reply]] = msgspec.json.Decoder(Reply)


def read_reply(body: bytes) -> Reply:
    """Return the platform's decision about an incoming call. Raises `ValueError`."""
    return _answer.decode(body)


def write_reply(instruction: Instruction, clients_port: int = 0) -> CallbackReply:
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
    return CallbackReply(msgspec.json.encode(answer), "application/json")


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

    async def deliver(self, events_url: str, notice: CarrierEvent) -> bytes:
        """Deliver a notice and return the platform's response.

        Raises `NoticeUndelivered` when the platform refuses it, or no retry is left.
        """
        url = f"{events_url}/{_PATHS.get(type(notice), 'status')}"
        body = write_notice(notice)
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
