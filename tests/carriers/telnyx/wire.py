"""Telnyx's protocol: signed webhooks, and messages of media streams."""

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import aiohttp
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from switchboard.foundation.database import now
from switchboard.plugin_sdk import (
    ACCEPT_KEY,
    CallAnswered,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    IncomingCall,
    MachineDetected,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetReady,
)
from switchboard_offline.loopback.callbacks import NoticeSender, NoticeUndelivered, Reply
from switchboard_offline.loopback.codec import read_command
from switchboard_offline.loopback.line import MediaStream

from tests.carriers.vendor import JsonBody

AMD_SECONDS = 0.3
CAUSES = {"completed": "normal_clearing", "busy": "user_busy", "no-answer": "timeout", "canceled": "originator_cancel"}
FAILURES = {"404": "not_found", "603": "call_rejected"}


def sign_headers(key: Ed25519PrivateKey, body: bytes, *, at: float | None = None) -> dict[str, str]:
    """Return the headers of a webhook, as https://developers.telnyx.com describes them.

    Written without the SDK, to check it.
    """
    timestamp = str(int(time.time() if at is None else at))
    signature = b64encode(key.sign(f"{timestamp}|".encode() + body)).decode()
    return {"Telnyx-Signature-Ed25519": signature, "Telnyx-Timestamp": timestamp, "Content-Type": "application/json"}


def encode_webhook(event_type: str, payload: JsonBody) -> bytes:
    """Return an event in the format of API v2."""
    data = {
        "record_type": "event",
        "event_type": event_type,
        "id": str(uuid4()),
        "occurred_at": now().isoformat(),
        "payload": payload,
    }
    return json.dumps({"data": data, "meta": {"attempt": 1, "delivered_to": "https://voice.example"}}).encode()


@dataclass
class Number:
    """A number of the account."""

    id: str
    phone_number: str
    connection_id: str | None = None
    messaging_profile_id: str | None = None
    looks_until_active: int = 0


@dataclass
class CallRecord:
    """A call at Telnyx, its commands, and its webhook address."""

    direction: str
    from_number: str
    to_number: str
    connection_id: str
    webhook_url: str
    state: str = "parked"
    client_state: str | None = None
    amd: bool = False
    awaits_greeting_end: bool = False
    recorded: bool = False
    more: JsonBody = field(default_factory=dict)
    id: str = field(default_factory=lambda: f"v3:{uuid4().hex}")
    leg_id: str = field(default_factory=lambda: str(uuid4()))
    commands: set[str] = field(default_factory=set)
    leg_b: "CallRecord | None" = None
    decision: asyncio.Future[Reply] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def payload(self, **more: object) -> JsonBody:
        state: JsonBody = {} if self.client_state is None else {"client_state": self.client_state}
        return {
            "call_control_id": self.id,
            "call_leg_id": self.leg_id,
            "call_session_id": self.leg_id,
            "connection_id": self.connection_id,
            "from": self.from_number,
            "to": self.to_number,
            **state,
            **more,
        }


def build_hangup(outcome: str, error_code: str | None) -> JsonBody:
    """Return Telnyx's fields for the end of a call."""
    cause = CAUSES.get(outcome) or FAILURES.get(error_code or "", "unspecified")
    sip_code = "486" if outcome == "busy" else error_code if error_code and error_code.isdecimal() else "unspecified"
    return {"state": "hangup", "hangup_cause": cause, "hangup_source": "callee", "sip_hangup_cause": sip_code}


@dataclass(frozen=True, slots=True)
class TelnyxPost(NoticeSender):
    """Sends Telnyx's events about one call or text message, in place of the loopback carrier's notices."""

    key: Ed25519PrivateKey
    record: CallRecord
    repeats: bool = False

    async def deliver(self, events_url: str, notice: CarrierEvent) -> bytes:
        """Deliver a notice as Telnyx's webhook. Raises `NoticeUndelivered` if the platform refuses it."""
        record = self.record
        match notice:
            case IncomingCall():
                await self.send_event("call.initiated", direction=record.direction, state="parked", **record.more)
                async with asyncio.timeout(20):
                    return msgspec.json.encode(await record.decision)
            case CalleeRinging():
                await self.send_event("call.initiated", direction="outgoing", state="bridging")
            case CallAnswered():
                await self.send_event("call.answered", state="answered")
                await self._send_detection(notice)
            case CallEnded():
                if record.leg_b is not None:
                    await self.create_sender(record.leg_b).send_event(
                        "call.hangup", **build_hangup(notice.outcome, notice.error_code)
                    )
                await self.send_event("call.hangup", **build_hangup(notice.outcome, notice.error_code))
            case TransferTargetReady():
                await self.send_event("call.gather.ended", status="valid", digits=ACCEPT_KEY)
            case TextMessageStatus():
                await self._send_text_status(events_url, notice)
            case TextMessageReceived():
                raise AssertionError("brought by `text_came`")
            case MachineDetected() if record.awaits_greeting_end:
                await self.send_event("call.machine.greeting.ended", result="ended")
        return b""

    def create_sender(self, record: CallRecord) -> "TelnyxPost":
        """Return a sender for another leg."""
        return TelnyxPost(self.http, self.secret, self.closing, self.key, record, self.repeats)

    async def send_event(self, event_type: str, **more: object) -> None:
        """Send one event about the call."""
        for _ in range(2 if self.repeats else 1):
            await self.post(self.record.webhook_url, encode_webhook(event_type, self.record.payload(**more)))

    async def _send_detection(self, notice: CallAnswered) -> None:
        if self.record.amd:
            await asyncio.sleep(AMD_SECONDS)
            await self.send_event(
                "call.machine.detection.ended",
                result="not_sure" if notice.answered_by == "unknown" else notice.answered_by,
            )

    async def _send_text_status(self, url: str, notice: TextMessageStatus) -> None:
        status = {"undelivered": "delivery_failed"}.get(notice.status, notice.status)
        problem = {
            "code": "40008",
            "title": "Undeliverable",
            "detail": "The recipient carrier did not accept the message.",
        }
        payload: JsonBody = {
            "record_type": "message",
            "direction": "outbound",
            "id": notice.carrier_text_id,
            "type": "SMS",
            "to": [{"phone_number": "", "status": status}],
            "webhook_url": url,
            "parts": 1,
            "errors": [problem] if notice.status == "undelivered" else [],
            "cost": {"amount": "0.0051", "currency": "USD"},
        }
        await self.post(
            url, encode_webhook("message.sent" if notice.status == "sent" else "message.finalized", payload)
        )

    async def send_inbound_text(self, url: str, notice: TextMessageReceived, **more: object) -> str:
        """Deliver a text message to the address of the messaging profile and return its id."""
        text_id = str(uuid4())
        payload: JsonBody = {
            "record_type": "message",
            "direction": "inbound",
            "id": text_id,
            "type": "SMS",
            "from": {"phone_number": notice.from_number},
            "to": [{"phone_number": notice.to_number, "status": "webhook_delivered"}],
            "text": notice.body,
            "media": [],
            "webhook_url": url,
            **more,
        }
        await self.post(url, encode_webhook("message.received", payload))
        return text_id

    async def post(self, url: str, body: bytes) -> None:
        """Send a signed webhook. Raises `NoticeUndelivered`."""
        try:
            timeout = aiohttp.ClientTimeout(total=15)
            async with self.http.post(
                url, data=body, headers=sign_headers(self.key, body), timeout=timeout
            ) as response:
                await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoticeUndelivered(str(error)) from error
        if response.status >= 300:
            raise NoticeUndelivered(f"the platform answered {response.status}")


class TelnyxStream(MediaStream):
    """A media stream with Telnyx's messages: the loopback carrier's, rewritten on output and checked on input.

    Some frames arrive out of order, which Telnyx allows. A socket closed by the platform does not end the call.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, call_id: str, start: Mapping[str, object]) -> None:
        super().__init__(socket, call_id, str(uuid4()))
        self._more = start
        self._sequence = 0
        self._chunk = 0
        self._delayed: str | None = None

    async def run(self) -> None:
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.TEXT or "streamSid" in message.data:
                self.fault = "100003: malformed_frame"
                return
            try:
                await self._execute(read_command(message.data))
            except ValueError as error:
                self.fault = f"100003: {error}"
                return
        await asyncio.Event().wait()

    async def _send(self, message: str) -> None:
        notice = json.loads(message)
        event = notice["event"]
        if event == "start":
            await super()._send(json.dumps({"event": "connected", "version": "1.0.0"}))
            notice["start"] = {
                "user_id": str(uuid4()),
                "call_control_id": self._start.call_id,
                "call_session_id": str(uuid4()),
                "tags": [],
                **self._more,
                "media_format": {"encoding": "PCMU", "sample_rate": 8000, "channels": 1},
            }
        elif event == "media":
            self._chunk += 1
            notice["media"] |= {"track": "inbound", "chunk": str(self._chunk), "timestamp": str(self._chunk * 20)}
        elif event == "stop":
            notice["stop"] = {"user_id": str(uuid4()), "call_control_id": self._start.call_id}
        self._sequence += 1
        text = json.dumps({**notice, "sequence_number": str(self._sequence), "stream_id": self._start.stream_id})
        if event == "media" and self._chunk % 50 == 0:
            self._delayed = text
            return
        await super()._send(text)
        if self._delayed is not None:
            delayed, self._delayed = self._delayed, None
            await super()._send(delayed)
