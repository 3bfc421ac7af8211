"""The provider `loopback`: the carrier's words translated, and calls placed."""

import asyncio
import json
import secrets
from collections.abc import Callable, Sequence
from typing import Literal, cast

import aiohttp
import structlog
from pydantic import Field, JsonValue, SecretStr
from switchboard.plugins import (
    AvailableNumber,
    BoughtNumber,
    BrowserToken,
    CallAnswered,
    CallbackUrls,
    CallEnded,
    CallOrder,
    CallProgress,
    CallRinging,
    CarrierEvent,
    CarrierReply,
    CarrierRequest,
    ConnectMedia,
    ForwardCall,
    IncomingCall,
    Instruction,
    InvalidCallback,
    JsonObject,
    MachineDetected,
    MediaCodec,
    ProviderError,
    ProviderSettings,
    Received,
    RecordingStream,
    SimulatedCall,
    SimulatedCarrier,
    SpokenLine,
    TelephonyCapabilities,
    TelephonyProvider,
    TextOrder,
    TextReceived,
    TextStatus,
)

from switchboard_offline.loopback import inventory
from switchboard_offline.loopback.caller import Caller
from switchboard_offline.loopback.exchange import Exchange
from switchboard_offline.loopback.leg import Leg
from switchboard_offline.loopback.people import Person, person
from switchboard_offline.loopback.signing import HEADER, is_valid
from switchboard_offline.loopback.wire import LoopbackCodec

logger = structlog.get_logger()
CallOutcome = Literal["completed", "busy", "no-answer", "failed", "canceled"]
TextState = Literal["sent", "delivered", "undelivered", "failed"]
RING_SECONDS = 0.3
GREETING_SECONDS = 4.0
JSON = "application/json"
OUTCOMES = {"busy": "busy", "no-answer": "no-answer", "fails": "failed", "rejects": "failed"}
REASONS = {"fails": "The network could not connect the call.", "rejects": "The call was rejected."}


class LoopbackSettings(ProviderSettings):
    """`signing_secret` is made up once. `people` are the lines that somebody at a number says. A callee rings `no_answer_seconds` in vain."""

    signing_secret: SecretStr
    people: dict[str, list[str]] = Field(default_factory=dict)
    no_answer_seconds: float = Field(2.0, ge=0, le=120)


class LoopbackTelephony(TelephonyProvider[LoopbackSettings], SimulatedCarrier):
    """A carrier in the machine: real callbacks, a real media socket, real audio, and people who behave by their number."""

    name = "loopback"
    title = "Loopback"
    Settings = LoopbackSettings
    capabilities = TelephonyCapabilities(recordings=False, browser_calling=False)

    def __init__(self, settings: LoopbackSettings) -> None:
        super().__init__(settings)
        self._exchange = Exchange(settings.signing_secret.get_secret_value())

    @classmethod
    def initial_settings(cls) -> dict[str, str]:
        return {"signing_secret": secrets.token_urlsafe(32)}

    async def close(self) -> None:
        await self._exchange.close()

    async def check(self) -> None:
        await self._exchange.open()

    # callbacks and media

    async def receive(self, request: CarrierRequest) -> Received:
        secret = self.settings.signing_secret.get_secret_value()
        if not is_valid(secret, request.url, request.body, request.headers.get(HEADER, "")):
            raise InvalidCallback("the signature is missing, wrong or too old")
        try:
            event: JsonObject = json.loads(request.body)
            return Received((_event(event),))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidCallback(f"not understood: {type(error).__name__}") from None

    async def instruct(self, call: IncomingCall, instruction: Instruction, callbacks: CallbackUrls) -> CarrierReply:
        if isinstance(instruction, ConnectMedia):
            answer: JsonObject = {"action": "connect", "media_url": instruction.media_url}
        elif isinstance(instruction, ForwardCall):
            answer = {"action": "forward", "to": instruction.to_number, "caller_id": instruction.caller_id}
        else:
            answer = {"action": "reject", "reason": instruction.reason}
        return CarrierReply(json.dumps(answer).encode(), JSON)

    def media_codec(self) -> MediaCodec:
        return LoopbackCodec()

    # calls

    async def place_call(self, order: CallOrder) -> str:
        leg = await self._exchange.add(lambda call_id: Leg(call_id, self.settings.people, reference=order.reference))
        self._exchange.run(self._place(leg, order))
        return leg.call_id

    async def find_call(self, reference: str) -> str | None:
        return self._exchange.find(reference)

    async def hang_up(self, carrier_call_id: str) -> None:
        await self._exchange.command(carrier_call_id, "hang_up")

    async def transfer(self, carrier_call_id: str, *, to_number: str, caller_id: str, callbacks: CallbackUrls) -> None:
        await self._exchange.command(carrier_call_id, "transfer", {"to": to_number})

    async def send_digits(self, carrier_call_id: str, digits: str) -> None:
        await self._exchange.command(carrier_call_id, "digits", {"digits": digits})

    async def _place(self, leg: Leg, order: CallOrder) -> None:
        callee = person(order.to_number, self.settings.people)
        try:
            await self._tell(order, {"event": "ringing", "call_id": leg.call_id})
            ended = await self._ring(leg, order, callee)
            if ended is None:
                ended = await self._talk(leg, order, callee)
            await self._tell(order, {"event": "ended", "call_id": leg.call_id, **ended})
        except ProviderError as error:
            logger.warning("the platform could not be told of a call", reason=error.message)
        finally:
            self._exchange.forget(leg)

    async def _ring(self, leg: Leg, order: CallOrder, callee: Person) -> JsonObject | None:
        """Why the call ended before anybody answered, None where somebody has."""
        seconds = min(order.ring_seconds, self.settings.no_answer_seconds) if callee.answer == "no-answer" else RING_SECONDS
        try:
            await asyncio.wait_for(leg.line.over.wait(), seconds)
        except TimeoutError:
            if callee.answer == "answers":
                return None
            return {"outcome": OUTCOMES[callee.answer], "error_message": REASONS.get(callee.answer)}
        return {"outcome": "canceled"}

    async def _talk(self, leg: Leg, order: CallOrder, callee: Person) -> JsonObject:
        await self._tell(order, {"event": "answered", "call_id": leg.call_id})
        if callee.machine and order.detect_machine:
            self._exchange.run(self._detect_machine(leg, order))
        try:
            async with asyncio.timeout(order.max_duration_seconds):
                await leg.connect(self._exchange.session(), order.media_url, callee.behave)
        except aiohttp.ClientError as error:
            return {"outcome": "failed", "error_message": f"The media socket could not be opened: {error}"}
        except TimeoutError:
            logger.info("call cut at its longest duration", call_id=leg.call_id)
        return {"outcome": "completed", "duration_seconds": round(leg.duration_seconds)}

    async def _detect_machine(self, leg: Leg, order: CallOrder) -> None:
        try:
            await asyncio.wait_for(leg.line.over.wait(), GREETING_SECONDS)
        except TimeoutError:
            await self._tell(order, {"event": "machine", "call_id": leg.call_id, "beep": True})

    async def _tell(self, order: CallOrder, event: JsonObject) -> None:
        await self._exchange.tell(order.callbacks, "status", event)

    # texts

    async def send_text(self, order: TextOrder) -> str:
        text_id = f"lbt-{secrets.token_hex(12)}"
        self._exchange.run(self._deliver(text_id, order))
        return text_id

    async def _deliver(self, text_id: str, order: TextOrder) -> None:
        segments = 1 if len(order.body) <= 160 else -(-len(order.body) // 153)
        final: dict[str, str | int] = {"status": "delivered"}
        if order.to_number.endswith("60"):
            final = {"status": "undelivered", "error_message": "The number cannot be reached."}
        try:
            await self._exchange.tell(
                order.callbacks, "text-status", {"event": "text_status", "text_id": text_id, "status": "sent", "segments": segments}
            )
            await self._exchange.tell(order.callbacks, "text-status", {"event": "text_status", "text_id": text_id, **final})
        except ProviderError as error:
            logger.warning("the platform could not be told of a text", reason=error.message)

    # numbers

    async def search_numbers(self, *, country: str, area_code: str | None, limit: int) -> Sequence[AvailableNumber]:
        return inventory.available(country, area_code, limit)

    async def buy_number(self, phone_number: str, callbacks: CallbackUrls) -> BoughtNumber:
        if phone_number.endswith(inventory.TAKEN):
            raise ProviderError(f"{phone_number} is not available any more.", code="number_taken", retryable=False)
        return BoughtNumber(carrier_number_id=f"lbn-{phone_number.removeprefix('+')}", phone_number=phone_number)

    async def release_number(self, carrier_number_id: str) -> None:
        """Every number can always be given back."""

    # recordings and browsers

    async def fetch_recording(self, recording_id: str, byte_range: str | None) -> RecordingStream:
        raise ProviderError("the loopback carrier makes no recordings: the platform's own are", retryable=False)

    async def browser_token(self, *, identity: str, platform: Literal["web", "ios", "android"]) -> BrowserToken:
        raise ProviderError("the loopback carrier has no client for browsers", retryable=False)

    # people who ring us

    async def simulate_call(
        self,
        *,
        from_number: str,
        to_number: str,
        lines: Sequence[SpokenLine],
        callbacks: CallbackUrls,
        progress: Callable[[CallProgress], None] = lambda _progress: None,
    ) -> SimulatedCall:
        caller = await Caller.prepare(lines, progress)
        leg = await self._exchange.add(lambda call_id: Leg(call_id, self.settings.people))
        progress(CallProgress("ringing"))
        try:
            incoming: JsonObject = {"event": "incoming", "call_id": leg.call_id, "from": from_number, "to": to_number}
            answer = json.loads(await self._exchange.tell(callbacks, "call", incoming))
            refused = await self._follow(leg, answer, caller)
            ended: JsonObject = {"event": "ended", "call_id": leg.call_id, "outcome": "completed" if refused is None else "canceled"}
            if refused is None:
                await self._exchange.tell(callbacks, "status", {**ended, "duration_seconds": round(leg.duration_seconds)})
        finally:
            self._exchange.forget(leg)
            progress(CallProgress("ended"))
        return SimulatedCall(leg.call_id, caller.duration_seconds, caller.first_reply_ms, bytes(leg.line.heard), refused)

    async def _follow(self, leg: Leg, answer: dict[str, str], caller: Caller) -> str | None:
        if answer["action"] == "connect":
            try:
                await leg.connect(self._exchange.session(), answer["media_url"], caller.behave)
            except aiohttp.ClientError as error:
                raise ProviderError(f"the media socket could not be opened: {error}") from error
        elif answer["action"] == "forward":
            leg.answer_by(answer["to"])
            await leg.converse(caller.behave)
        else:
            return answer["reason"]
        return None

    async def simulate_text(self, *, from_number: str, to_number: str, body: str, callbacks: CallbackUrls) -> str:
        text_id = f"lbt-{secrets.token_hex(12)}"
        await self._exchange.tell(callbacks, "text", {"event": "text", "text_id": text_id, "from": from_number, "to": to_number, "body": body})
        return text_id


def _event(event: JsonObject) -> CarrierEvent:
    """A callback's event. Raises `KeyError`, `ValueError` or `TypeError` for what is none."""
    texts = {name: value for name, value in event.items() if isinstance(value, str)}
    readers: dict[str, Callable[[], CarrierEvent]] = {
        "incoming": lambda: IncomingCall(texts["call_id"], texts["from"], texts["to"]),
        "ringing": lambda: CallRinging(texts["call_id"]),
        "answered": lambda: CallAnswered(texts["call_id"]),
        "machine": lambda: MachineDetected(texts["call_id"], beep=bool(event.get("beep"))),
        "ended": lambda: CallEnded(
            texts["call_id"], cast("CallOutcome", texts["outcome"]), _whole(event.get("duration_seconds")), texts.get("error_message")
        ),
        "text": lambda: TextReceived(texts["text_id"], texts["from"], texts["to"], texts["body"]),
        "text_status": lambda: TextStatus(
            texts["text_id"], cast("TextState", texts["status"]), texts.get("error_message"), segments=_whole(event.get("segments"))
        ),
    }
    return readers[texts["event"]]()


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) else None
