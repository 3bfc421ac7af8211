"""Twilio's protocol: signed forms, TwiML, and messages of media streams."""

import asyncio
import hashlib
import hmac
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode
from xml.etree import ElementTree

import aiohttp
import msgspec
from switchboard.plugin_sdk import (
    ACCEPT_KEY,
    CLIENT_PREFIX,
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
from switchboard_offline.loopback.callbacks import (
    ConnectReply,
    ForwardReply,
    NoticeSender,
    NoticeUndelivered,
    RejectReply,
    Reply,
)
from switchboard_offline.loopback.codec import LoopbackClear, read_command
from switchboard_offline.loopback.line import MediaStream

AMD_SECONDS = 0.3
Form = dict[str, str]


def compute_signature(auth_token: str, url: str, fields: Mapping[str, str]) -> str:
    """Return `X-Twilio-Signature`, as https://www.twilio.com/docs/usage/security describes it.

    Written without the SDK, to check it.
    """
    signed_text = url + "".join(f"{name}{fields[name]}" for name in sorted(fields))
    return b64encode(hmac.new(auth_token.encode(), signed_text.encode(), hashlib.sha1).digest()).decode()


@dataclass
class Number:
    """A number of the account."""

    sid: str
    phone_number: str
    voice_url: str = ""
    sms_url: str = ""
    status_callback: str = ""
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Its applications and its trunk, by the parameter's name: they come before the addresses."""


@dataclass
class CallRecord:
    """A call at Twilio, and its callback address."""

    sid: str
    direction: str
    from_number: str
    to_number: str
    voice_url: str = ""
    status_callback: str = ""
    status_events: tuple[str, ...] = ("completed",)
    amd_callback: str = ""
    recording_callback: str = ""
    stream_callback: str = ""
    more: Form = field(default_factory=dict)
    streams: dict[str, dict[str, str]] = field(default_factory=dict)
    sequence: int = 0
    spoken: str = ""
    key_url: str = ""
    conference: str = ""

    def form(self, account_sid: str, status: str, **more: str) -> Form:
        return {
            "AccountSid": account_sid,
            "ApiVersion": "2010-04-01",
            "CallSid": self.sid,
            "CallStatus": status,
            "Direction": self.direction,
            "From": self.from_number,
            "To": self.to_number,
            "Caller": self.from_number,
            "Called": self.to_number,
            "FromCity": "",
            **self.more,
            **more,
        }


def read_markup(record: CallRecord, markup: str) -> Reply | None:
    """Execute TwiML and return the decision about the call; None for a transfer's.

    TwiML that Twilio would not understand fails the test.
    """
    response = ElementTree.fromstring(markup)  # noqa: S314  our own
    assert response.tag == "Response"
    for verb in response:
        if verb.tag == "Start":
            recording = verb.find("Recording")
            assert recording is not None
            record.recording_callback = recording.attrib["recordingStatusCallback"]
        elif verb.tag == "Connect":
            stream = verb.find("Stream")
            assert stream is not None
            url = stream.attrib["url"]
            assert "?" not in url, "Twilio drops a stream's query"
            record.stream_callback = stream.attrib["statusCallback"]
            record.streams[url] = {
                parameter.attrib["name"]: parameter.attrib["value"] for parameter in stream.iter("Parameter")
            }
            return ConnectReply(url)
        elif verb.tag == "Gather":
            said = verb.find("Say")
            assert said is not None
            assert (verb.attrib["input"], verb.attrib["numDigits"], verb.attrib["method"]) == ("dtmf", "1", "POST")
            record.spoken, record.key_url = said.text or "", verb.attrib["action"]
        elif verb.tag == "Hangup":
            return None
        elif verb.tag == "Dial" and (joined := verb.find("Conference")) is not None:
            assert (joined.attrib["endConferenceOnExit"], joined.attrib["beep"]) == ("true", "false")
            record.conference = joined.text or ""
            return None
        elif verb.tag == "Dial":
            number, identity = verb.find("Number"), verb.find("Client/Identity")
            dialed = number if identity is None else identity
            assert dialed is not None
            assert dialed.text
            to_number = dialed.text if identity is None else f"{CLIENT_PREFIX}{dialed.text}"
            return ForwardReply(to_number, verb.attrib["callerId"])
        else:
            assert verb.tag == "Reject", verb.tag
            return RejectReply("busy" if verb.attrib.get("reason") == "busy" else "rejected")
    raise AssertionError("the markup does nothing")


@dataclass(frozen=True, slots=True)
class TwilioPost(NoticeSender):
    """Sends Twilio's callbacks about one call or text message, in place of the loopback carrier's notices."""

    account_sid: str
    record: CallRecord
    numbers: Mapping[str, Number]
    repeats: bool = False

    async def deliver(self, events_url: str, notice: CarrierEvent) -> bytes:
        """Deliver a notice as Twilio's callback. Raises `NoticeUndelivered` if the platform refuses it."""
        match notice:
            case IncomingCall():
                body = await self.post_form(self.record.voice_url, self.record.form(self.account_sid, "ringing"))
                return msgspec.json.encode(read_markup(self.record, body.decode()))
            case CalleeRinging():
                await self.send_status("ringing")
            case CallAnswered():
                await self.send_status("in-progress", event="answered")
                await self._send_detection(notice)
            case CallEnded():
                await self._send_end(notice)
            case TransferTargetReady():
                form = self.record.form(self.account_sid, "in-progress", Digits=ACCEPT_KEY)
                read_markup(self.record, (await self.post_form(self.record.key_url, form)).decode())
            case TextMessageStatus():
                await self._send_text_status(events_url, notice)
            case TextMessageReceived():
                await self.send_inbound_text(notice)
            case MachineDetected():
                """Told by `DetectMessageEnd` alone."""
        return b""

    async def send_status(self, status: str, *, event: str = "", **more: str) -> None:
        """Send one status callback, if it was requested."""
        if self.record.status_callback and (event or status) in self.record.status_events:
            more = {"SequenceNumber": str(self.record.sequence), "CallbackSource": "call-progress-events", **more}
            self.record.sequence += 1
            for _ in range(2 if self.repeats else 1):
                await self.post_form(self.record.status_callback, self.record.form(self.account_sid, status, **more))

    async def _send_detection(self, notice: CallAnswered) -> None:
        if not self.record.amd_callback:
            return
        await asyncio.sleep(AMD_SECONDS)
        answered_by = "machine_start" if notice.answered_by == "machine" else notice.answered_by
        form = {
            "CallSid": self.record.sid,
            "AccountSid": self.account_sid,
            "AnsweredBy": answered_by,
            "MachineDetectionDuration": "300",
        }
        await self.post_form(self.record.amd_callback, form)

    async def _send_end(self, notice: CallEnded) -> None:
        # If a stream cannot be opened, Twilio continues after it, where the instructions end.
        outcome = "completed" if notice.error_code == "media" else notice.outcome
        more = {"Duration": "1"} if outcome == "completed" else {}
        if outcome == "completed":
            more["CallDuration"] = str(notice.duration_seconds)
        if outcome == "failed":
            more["SipResponseCode"] = (
                notice.error_code if notice.error_code and notice.error_code.isdecimal() else "500"
            )
        await self.send_status(outcome, event="completed", **more)

    async def _send_text_status(self, url: str, notice: TextMessageStatus) -> None:
        form = {
            "MessageSid": notice.carrier_text_id,
            "SmsSid": notice.carrier_text_id,
            "AccountSid": self.account_sid,
            "MessageStatus": notice.status,
            "ApiVersion": "2010-04-01",
        }
        await self.post_form(url, {**form, **({"ErrorCode": notice.error_code} if notice.error_code else {})})

    async def send_inbound_text(self, notice: TextMessageReceived, **more: str) -> None:
        """Deliver a text message to its number."""
        sid = f"SM{notice.carrier_text_id.removeprefix('lt-')}"
        number = self.numbers[notice.to_number]
        form = {
            "MessageSid": sid,
            "SmsSid": sid,
            "SmsMessageSid": sid,
            "AccountSid": self.account_sid,
            "From": notice.from_number,
            "To": notice.to_number,
            "Body": notice.body,
            "NumMedia": "0",
            "NumSegments": "1",
            "SmsStatus": "received",
            "ApiVersion": "2010-04-01",
            **more,
        }
        response = await self.post_form(number.sms_url, form)
        assert ElementTree.fromstring(response).tag == "Response"  # noqa: S314  our own

    async def post_form(self, url: str, form: Form) -> bytes:
        """Send a signed form and return the response's body. Raises `NoticeUndelivered`."""
        headers = {
            "X-Twilio-Signature": compute_signature(self.secret, url, form),
            "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8",
        }
        try:
            async with self.http.post(
                url, data=urlencode(form), headers=headers, timeout=aiohttp.ClientTimeout(total=15)
            ) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoticeUndelivered(str(error)) from error
        if response.status >= 300:
            raise NoticeUndelivered(f"the platform answered {response.status}")
        return body


class TwilioStream(MediaStream):
    """A media stream with Twilio's messages: the loopback carrier's, rewritten on output and checked on input.

    `cleared_at` are the times of the loop's clock at which the buffer was cleared.
    """

    def __init__(
        self, socket: aiohttp.ClientWebSocketResponse, account_sid: str, call_sid: str, parameters: Mapping[str, str]
    ) -> None:
        super().__init__(socket, call_sid, "MZ" + hashlib.md5(call_sid.encode(), usedforsecurity=False).hexdigest())
        self._account_sid = account_sid
        self._parameters = parameters
        self.cleared_at: list[float] = []
        self._sequence = 0
        self._chunk = 0

    async def run(self) -> None:
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                self.fault = "31951: Stream - Protocol - Invalid Message"
                return
            if json.loads(message.data).get("streamSid") != self._start.stream_id:
                self.fault = "31951: the message does not name its stream"
                return
            try:
                command = read_command(message.data)
                if isinstance(command, LoopbackClear):
                    self.cleared_at.append(asyncio.get_running_loop().time())
                await self._execute(command)
            except ValueError as error:
                self.fault = f"31951: {error}"
                return

    async def _send(self, message: str) -> None:
        notice = json.loads(message)
        event = notice["event"]
        if event == "start":
            await super()._send(json.dumps({"event": "connected", "protocol": "Call", "version": "1.0.0"}))
            notice["start"] = {
                "accountSid": self._account_sid,
                "streamSid": self._start.stream_id,
                "callSid": self._start.call_id,
                "tracks": ["inbound"],
                "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
                "customParameters": dict(self._parameters),
            }
        elif event == "media":
            self._chunk += 1
            notice["media"] |= {"track": "inbound", "chunk": str(self._chunk), "timestamp": str(self._chunk * 20)}
        elif event == "dtmf":
            notice["dtmf"]["track"] = "inbound_track"
        elif event == "stop":
            notice["stop"] = {"accountSid": self._account_sid, "callSid": self._start.call_id}
        self._sequence += 1
        await super()._send(
            json.dumps({**notice, "sequenceNumber": str(self._sequence), "streamSid": self._start.stream_id})
        )
