"""What the carrier tells the platform over HTTP, how it is delivered, and how the platform's side of the plugin reads it."""

import asyncio
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import aiohttp
import msgspec
from switchboard.plugin_sdk import (
    BrowserCall,
    CallAnswered,
    CallEnded,
    CallRinging,
    CarrierEvent,
    CarrierReply,
    ConnectMedia,
    ForwardCall,
    IncomingCall,
    Instruction,
    InvalidCallback,
    MachineDetected,
    TargetGone,
    TargetReady,
    TextReceived,
    TextStatus,
)
from switchboard.plugin_sdk.telephony import AnsweredBy, CallOutcome

from switchboard_offline.loopback import signatures

RETRY_SECONDS: Final = (0.2, 1.0, 3.0)
ANSWER_SECONDS: Final = 10.0


class Calling(msgspec.Struct, frozen=True, tag_field="type", tag="incoming"):
    call_id: str
    from_number: str
    to_number: str
    identity: str | None = None
    """Whose token a browser called with; None where a telephone did."""


class Ringing(msgspec.Struct, frozen=True, tag_field="type", tag="ringing"):
    call_id: str


class Answered(msgspec.Struct, frozen=True, tag_field="type", tag="answered"):
    call_id: str
    answered_by: AnsweredBy


class Beeped(msgspec.Struct, frozen=True, tag_field="type", tag="beep"):
    call_id: str


class Ended(msgspec.Struct, frozen=True, tag_field="type", tag="ended"):
    call_id: str
    outcome: CallOutcome
    duration_seconds: int = 0
    error_message: str | None = None
    error_code: str | None = None


class Introduced(msgspec.Struct, frozen=True, tag_field="type", tag="introduced"):
    """Who was called for a transfer has heard why."""

    call_id: str


class Left(msgspec.Struct, frozen=True, tag_field="type", tag="left"):
    """Who was called for a transfer is not there (any more)."""

    call_id: str
    outcome: CallOutcome
    error_code: str | None = None


class TextCame(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    text_id: str
    from_number: str
    to_number: str
    body: str


class TextWent(msgspec.Struct, frozen=True, tag_field="type", tag="text_status"):
    text_id: str
    status: Literal["sent", "delivered", "undelivered"]
    error_message: str | None = None
    error_code: str | None = None


Told: TypeAlias = Calling | Ringing | Answered | Beeped | Ended | Introduced | Left | TextCame | TextWent


class Connect(msgspec.Struct, frozen=True, tag_field="action", tag="connect"):
    media_url: str


class Forward(msgspec.Struct, frozen=True, tag_field="action", tag="forward"):
    to_number: str
    caller_id: str


class Reject(msgspec.Struct, frozen=True, tag_field="action", tag="reject"):
    reason: Literal["rejected", "busy"]


Answer: TypeAlias = Connect | Forward | Reject

_told: Final[msgspec.json.Decoder[Told]] = msgspec.json.Decoder(Told)
_answer: Final[msgspec.json.Decoder[Answer]] = msgspec.json.Decoder(Answer)
_PATHS: Final = {Calling: "call", TextCame: "text", TextWent: "text"}


def read_answer(body: bytes) -> Answer:
    """What is to become of an incoming call. Raises `ValueError`."""
    return _answer.decode(body)


def reply(instruction: Instruction) -> CarrierReply:
    """An instruction as the answer to the callback that announced the call."""
    answer: Answer
    match instruction:
        case ConnectMedia(media_url):
            answer = Connect(media_url)
        case ForwardCall(to_number, caller_id):
            answer = Forward(to_number, caller_id)
        case _:
            answer = Reject(instruction.reason)
    return CarrierReply(msgspec.json.encode(answer), "application/json")


def translate(body: bytes) -> CarrierEvent:
    """A verified callback as an event. Raises `InvalidCallback`."""
    try:
        told = _told.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise InvalidCallback("the callback is not one of the loopback carrier's") from None
    if isinstance(told, TextCame | TextWent):
        return _text_event(told)
    return _transfer_event(told) if isinstance(told, Introduced | Left) else _call_event(told)


def _transfer_event(told: Introduced | Left) -> CarrierEvent:
    return TargetReady(told.call_id) if isinstance(told, Introduced) else TargetGone(told.call_id, told.outcome)


def _call_event(told: Calling | Ringing | Answered | Beeped | Ended) -> CarrierEvent:
    match told:
        case Calling(identity=str(identity)):
            return BrowserCall(told.call_id, told.from_number, told.to_number, identity)
        case Calling():
            return IncomingCall(told.call_id, told.from_number, told.to_number)
        case Ringing():
            return CallRinging(told.call_id)
        case Answered():
            return CallAnswered(told.call_id, told.answered_by)
        case Beeped():
            return MachineDetected(told.call_id, beep=True)
        case Ended():
            return CallEnded(told.call_id, told.outcome, told.duration_seconds, told.error_message, told.error_code)


def _text_event(told: TextCame | TextWent) -> CarrierEvent:
    if isinstance(told, TextCame):
        return TextReceived(told.text_id, told.from_number, told.to_number, told.body)
    return TextStatus(told.text_id, told.status, told.error_message, told.error_code)


class Undelivered(Exception):
    """The platform did not take a callback."""


@dataclass(frozen=True, slots=True)
class Post:
    """Delivers callbacks, again for a while where the platform fails or does not answer; once only after `closing` is set."""

    http: aiohttp.ClientSession
    secret: str
    closing: asyncio.Event

    async def deliver(self, events_url: str, told: Told) -> bytes:
        """Answers the platform's reply. Raises `Undelivered` when it refuses, or when patience ends."""
        url = f"{events_url}/{_PATHS.get(type(told), 'status')}"
        body = msgspec.json.encode(told)
        reason = ""
        for wait in (0.0, *RETRY_SECONDS):
            if wait and await self._closes_within(wait):
                break
            try:
                status, answer = await self.send(url, body)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                reason = f"the platform cannot be reached: {error or type(error).__name__}"
                continue
            if status < 300:
                return answer
            reason = f"the platform answered {status}"
            if status < 500:
                break
        raise Undelivered(reason)

    async def send(self, url: str, body: bytes) -> tuple[int, bytes]:
        """One signed request. Raises what aiohttp raises."""
        headers = {signatures.HEADER: signatures.sign(self.secret, url, body), "Content-Type": "application/json"}
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        async with self.http.post(url, data=body, headers=headers, timeout=timeout, allow_redirects=False) as response:
            return response.status, await response.read()

    async def _closes_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.closing.wait()
        except TimeoutError:
            return False
        return True
