"""Plivo's protocol: signed forms, Plivo XML, and messages of audio streams."""

import asyncio
import hashlib
import hmac
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode
from uuid import uuid4
from xml.etree import ElementTree

import aiohttp
import msgspec
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
from switchboard.plugin_sdk.json_media import Mark, MarkName
from switchboard_offline.loopback.callbacks import (
    ConnectReply,
    ForwardReply,
    NoticeSender,
    NoticeUndelivered,
    RejectReply,
    Reply,
)
from switchboard_offline.loopback.codec import LoopbackClear, LoopbackMedia, LoopbackPayload
from switchboard_offline.loopback.line import MediaStream

AMD_SECONDS = 0.3
Form = dict[str, str]
CAUSES = {
    "completed": ("completed", "4000", "Normal Hangup"),
    "busy": ("busy", "3010", "Busy Line"),
    "no-answer": ("timeout", "6010", "Ring Timeout Reached"),
    "canceled": ("cancel", "1000", "Canceled"),
    "failed": ("failed", "2010", "Destination Out Of Service"),
}
"""Status, code, and name of a hang-up cause, by outcome."""
SPEAK_LANGUAGES = frozenset({
    "da-DK", "nl-NL", "en-AU", "en-GB", "en-US", "fr-FR", "fr-CA", "de-DE", "it-IT", "pl-PL", "pt-PT", "pt-BR", "ru-RU",
    "es-ES", "es-US", "sv-SE",
})  # fmt: skip


def compute_signature(auth_token: str, url: str, fields: Mapping[str, str], nonce: str) -> str:
    """Return `X-Plivo-Signature-V3` of a form, as `plivo/utils/signature_v3.py` of plivo-python computes it."""
    signed_text = f"{url}?{''.join(f'{name}{fields[name]}' for name in sorted(fields))}.{nonce}"
    return b64encode(hmac.new(auth_token.encode(), signed_text.encode(), hashlib.sha256).digest()).decode()


def compute_address_signature(auth_token: str, url: str, nonce: str) -> str:
    """Return `X-Plivo-Signature-V2` of an address, as `plivo/utils/__init__.py` of plivo-python computes it."""
    return b64encode(hmac.new(auth_token.encode(), f"{url}{nonce}".encode(), hashlib.sha256).digest()).decode()


def sign_address(auth_token: str, url: str) -> dict[str, str]:
    """Return the headers of a callback about a text message, whose fields are not signed."""
    nonce = uuid4().hex
    signature = compute_address_signature(auth_token, url, nonce)
    return {
        "x-plivo-signature-v2": signature,
        "x-plivo-signature-ma-v2": signature,
        "x-plivo-signature-v2-nonce": nonce,
    }


def sign_form(auth_token: str, url: str, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a signed form."""
    nonce = uuid4().hex
    signature = compute_signature(auth_token, url, fields, nonce)
    return {
        "x-plivo-signature-v3": signature,
        "x-plivo-signature-ma-v3": signature,
        "x-plivo-signature-v3-nonce": nonce,
    }


def write_number(number: str) -> str:
    """Return a number as Plivo writes it."""
    return number.removeprefix("+")


@dataclass
class Number:
    """A number of the account."""

    phone_number: str
    application: str = ""


@dataclass
class Application:
    """Addresses for the numbers of an application."""

    answer_url: str = ""
    hangup_url: str = ""
    message_url: str = ""


@dataclass
class CallRecord:
    """A call at Plivo, and its callback addresses."""

    uuid: str
    direction: str
    from_number: str
    to_number: str
    answer_url: str = ""
    ring_url: str = ""
    hangup_url: str = ""
    machine_url: str = ""
    stream_callback: str = ""
    headers: str = ""
    spoken: str = ""
    key_url: str = ""
    multiparty_call: str = ""
    is_machine: bool = field(default=False)

    def form(self, status: str, event: str, **more: str) -> Form:
        request = (
            {"RequestUUID": self.uuid, "ALegUUID": self.uuid, "ALegRequestUUID": self.uuid}
            if self.direction == "outbound"
            else {}
        )
        return {
            "CallUUID": self.uuid,
            "From": write_number(self.from_number),
            "To": write_number(self.to_number),
            "CallStatus": status,
            "Direction": self.direction,
            "Event": event,
            "ForwardedFrom": "",
            **request,
            **more,
        }


def read_markup(record: CallRecord, markup: bytes) -> Reply | None:
    """Execute Plivo XML and return the decision about the call; None for a question's or a transfer's.

    XML that Plivo would not understand fails the test.
    """
    response = ElementTree.fromstring(markup)  # noqa: S314  our own
    assert response.tag == "Response"
    for element in response:
        if element.tag == "Stream":
            return _read_stream(record, element)
        if element.tag == "GetDigits":
            _read_question(record, element)
        elif element.tag == "Hangup":
            reason = element.attrib.get("reason")
            assert reason in (None, "rejected", "busy")
            return None if reason is None else RejectReply("busy" if reason == "busy" else "rejected")
        elif element.tag == "MultiPartyCall":
            assert element.attrib["role"] in ("Agent", "Supervisor", "Customer")
            assert (element.attrib["endMpcOnExit"], element.attrib["enterSound"]) == ("true", "none")
            assert element.attrib["stayAlone"] == "true", "the target waits alone"
            record.multiparty_call = element.text or ""
            return None
        else:
            assert element.tag == "Dial", element.tag
            number = element.find("Number")
            assert number is not None
            assert number.text
            return ForwardReply(number.text, element.attrib["callerId"])
    raise AssertionError("the markup does nothing")


def _read_stream(record: CallRecord, element: ElementTree.Element) -> ConnectReply:
    given = dict(element.attrib)
    record.stream_callback, record.headers = given.pop("statusCallbackUrl"), given.pop("extraHeaders")
    assert len(record.headers) <= 512
    assert given == {
        "bidirectional": "true",
        "keepCallAlive": "true",
        "audioTrack": "inbound",
        "contentType": "audio/x-mulaw;rate=8000",
        "statusCallbackMethod": "POST",
    }
    assert element.text
    assert len(element.text) <= 2048
    return ConnectReply(element.text)


def _read_question(record: CallRecord, element: ElementTree.Element) -> None:
    said = element.find("Speak")
    assert said is not None
    assert said.attrib.get("language", "en-US") in SPEAK_LANGUAGES, "makes the document invalid"
    assert (element.attrib["numDigits"], element.attrib["method"]) == ("1", "POST")
    record.spoken, record.key_url = said.text or "", element.attrib["action"]


@dataclass(frozen=True, slots=True)
class PlivoPost(NoticeSender):
    """Sends Plivo's callbacks about one call or text message, in place of the loopback carrier's notices."""

    record: CallRecord
    application: Application
    repeats: bool = False

    async def deliver(self, events_url: str, notice: CarrierEvent) -> bytes:
        """Deliver a notice as Plivo's callback. Raises `NoticeUndelivered` if the platform refuses it."""
        record = self.record
        match notice:
            case IncomingCall():
                body = await self.post_form(record.answer_url, record.form("ringing", "StartApp"))
                return msgspec.json.encode(read_markup(record, body))
            case CalleeRinging():
                await self.send_callback(record.ring_url, record.form("ringing", "Ring"))
            case CallAnswered():
                await self._send_detection(notice)
            case CallEnded():
                await self._send_end(notice)
            case TransferTargetReady():
                form = record.form("in-progress", "Redirect", Digits=ACCEPT_KEY)
                read_markup(record, await self.post_form(record.key_url, form))
            case TextMessageStatus():
                await self._send_text_status(events_url, notice)
            case TextMessageReceived():
                await self.send_inbound_text(notice)
            case MachineDetected():
                """Plivo does not report beeps."""
        return b""

    async def send_callback(self, url: str, form: Form) -> None:
        """Send one callback, if its address was given."""
        for _ in range((2 if self.repeats else 1) if url else 0):
            await self.post_form(url, form)

    async def ask_for_instructions(self) -> bytes:
        """Return the instructions of an answered outbound call."""
        for _ in range(1 if self.repeats else 0):
            await self.post_form(self.record.answer_url, self.record.form("in-progress", "StartApp"))
        return await self.post_form(self.record.answer_url, self.record.form("in-progress", "StartApp"))

    async def _send_detection(self, notice: CallAnswered) -> None:
        if self.record.machine_url:
            await asyncio.sleep(AMD_SECONDS)
            found = "true" if notice.answered_by == "machine" else "false"
            form = self.record.form("in-progress", "MachineDetection", Machine=found, IfMachine="continue")
            await self.post_form(self.record.machine_url, form)

    async def _send_end(self, notice: CallEnded) -> None:
        status, code, name = CAUSES[notice.outcome]
        seconds = str(notice.duration_seconds or 0)
        if notice.error_code == "media":
            # If a stream cannot be opened, Plivo continues after it, where the instructions end.
            status, code, name = "completed", "4010", "End Of XML Instructions"
        form = self.record.form(
            status,
            "Hangup",
            HangupCause="NORMAL_CLEARING",
            HangupCauseCode=code,
            HangupCauseName=name,
            HangupSource="Plivo",
            Duration=seconds if status == "completed" else "0",
            BillDuration="60" if status == "completed" else "0",
            TotalCost="0.00850" if status == "completed" else "0.00000",
        )
        await self.send_callback(self.record.hangup_url, form)

    async def _send_text_status(self, url: str, notice: TextMessageStatus) -> None:
        form = {
            "MessageUUID": notice.carrier_text_id,
            "ParentMessageUUID": notice.carrier_text_id,
            "Status": notice.status,
            "Type": "sms",
            "Units": "1",
            "TotalRate": "0.00550",
            "TotalAmount": "0.00550",
            "PartInfo": "1 of 1",
        }
        report = {**form, **({"ErrorCode": "80"} if notice.status == "undelivered" else {})}
        await self.post_form(url, report, is_text_message=True)

    async def send_inbound_text(self, notice: TextMessageReceived, **more: str) -> None:
        """Deliver a text message to its number."""
        form = {
            "MessageUUID": notice.carrier_text_id,
            "From": write_number(notice.from_number),
            "To": write_number(notice.to_number),
            "Text": notice.body,
            "Type": "sms",
            "Units": "1",
            "TotalRate": "0.00000",
            "TotalAmount": "0.00000",
            "MessageIntent": "optout" if notice.body.strip().upper() == "STOP" else "",
            **more,
        }
        response = await self.post_form(self.application.message_url, form, is_text_message=True)
        assert ElementTree.fromstring(response).tag == "Response"  # noqa: S314  our own

    async def post_form(self, url: str, form: Form, *, is_text_message: bool = False) -> bytes:
        """Send a signed form and return the response's body. Raises `NoticeUndelivered`."""
        signed = sign_address(self.secret, url) if is_text_message else sign_form(self.secret, url, form)
        headers = signed | {"Content-Type": "application/x-www-form-urlencoded"}
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


class PlivoStream(MediaStream):
    """An audio stream with Plivo's messages: the loopback carrier's, rewritten on output, and read on input."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, auth_id: str, call_id: str, headers: str) -> None:
        super().__init__(socket, call_id, str(uuid4()))
        self._auth_id = auth_id
        self._headers = headers
        self._sequence = 0
        self._chunk = 0

    async def run(self) -> None:
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                self.fault = "Plivo reads text frames only"
                return
            try:
                await self._read(json.loads(message.data))
            except (ValueError, KeyError) as error:
                self.fault = f"invalid message: {error}"
                return

    async def _read(self, command: dict[str, object]) -> None:
        match command:
            case {"event": "playAudio", "media": {"contentType": kind, "sampleRate": rate, "payload": str(payload)}}:
                if (kind, rate) != ("audio/x-mulaw", 8000):
                    raise ValueError("invalid_content_type")
                await self._execute(LoopbackMedia(LoopbackPayload(b64decode(payload, validate=True))))
            case {"event": "checkpoint", "streamId": self._start.stream_id, "name": str(name)}:
                await self._execute(Mark(MarkName(name)))
            case {"event": "clearAudio", "streamId": self._start.stream_id}:
                self._marks.clear()  # Plivo does not return the checkpoints that it drops
                await self._execute(LoopbackClear())
                await self._send_event({"event": "clearedAudio"})
            case _:
                raise ValueError(str(command))

    async def _send(self, message: str) -> None:
        notice = json.loads(message)
        event = notice["event"]
        if event == "start":
            notice["start"] = {
                "callId": self._start.call_id,
                "streamId": self._start.stream_id,
                "accountId": self._auth_id,
                "tracks": ["inbound"],
                "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000},
            }
        elif event == "media":
            self._chunk += 1
            notice["media"] |= {"track": "inbound", "chunk": self._chunk, "timestamp": str(self._chunk * 20)}
        elif event == "dtmf":
            notice["dtmf"] |= {"track": "inbound", "timestamp": str(self._chunk * 20)}
        elif event == "mark":
            notice = {"event": "playedStream", "name": notice["mark"]["name"]}
        elif event == "stop":
            return  # Plivo closes the socket, and sends nothing before
        await self._send_event(notice)

    async def _send_event(self, notice: dict[str, object]) -> None:
        self._sequence += 1
        common = {"sequenceNumber": self._sequence, "extra_headers": self._headers}
        stream = {} if notice["event"] == "start" else {"streamId": self._start.stream_id}
        await super()._send(json.dumps({**notice, **common, **stream}))
