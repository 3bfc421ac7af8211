"""A Twilio server in this process: the REST API that the plugin uses, and people with telephones.

Written from Twilio's published OpenAPI description and documentation. Responses of a real account beyond them are not
known here.
"""

import asyncio
from collections.abc import Callable, Sequence
from uuid import uuid4

import aiohttp
from aiohttp import encode_basic_auth, web
from switchboard.plugin_sdk import (
    CallbackUrls,
    CallEnded,
    IncomingCall,
    OutboundCall,
    OutboundTextMessage,
    ProviderError,
    SimulatedCall,
    TextMessageReceived,
)
from switchboard_offline.loopback import stock, texts
from switchboard_offline.loopback.callbacks import ConnectReply, ForwardReply
from switchboard_offline.loopback.caller import Caller
from switchboard_offline.loopback.leg import CONNECT_SECONDS, LoopbackLeg, MediaFailed, join_legs, ring_person
from switchboard_offline.loopback.persons import Person, Subscriber, synthesize_mulaw

from tests.carriers.twilio.wire import CallRecord, Number, TwilioPost, TwilioStream, read_markup
from tests.carriers.vendor import JsonBody, Refused, Vendor, stereo


def new_sid(prefix: str) -> str:
    return prefix + uuid4().hex


UNREACHABLE = "Stream - WebSocket - Connection Timeout"


class TwilioLeg(LoopbackLeg):
    """A person's line, connected by a Twilio media stream, which is `stream` once it is open."""

    def __init__(self, post: TwilioPost) -> None:
        super().__init__(post.record.sid, post, "")
        self.post = post
        self.altered: dict[str, str] = {}
        self.unreachable = False
        self.stream: TwilioStream | None = None

    def parameters(self, url: str) -> dict[str, str]:
        return {**self.post.record.streams[url], **self.altered}

    async def place(self, order: OutboundCall, subscriber: Subscriber) -> CallEnded:
        await self.post.send_status("initiated")
        return await super().place(order, subscriber)

    async def open_media(self, url: str) -> TwilioStream:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                if self.unreachable:
                    raise TimeoutError
                socket = await self.post.http.ws_connect(url, timeout=aiohttp.ClientWSTimeout(ws_close=1.0))
                stream = TwilioStream(socket, self.post.account_sid, self.call_id, self.parameters(url))
                self.stream = stream
                await stream.start()
        except (aiohttp.ClientError, TimeoutError) as error:
            notice = {
                "StreamEvent": "stream-error",
                "StreamError": UNREACHABLE,
                "StreamSid": new_sid("MZ"),
                "CallSid": self.call_id,
            }
            await self.post.post_form(self.post.record.stream_callback, {"AccountSid": self.post.account_sid, **notice})
            raise MediaFailed(UNREACHABLE) from error
        return stream


def create_refusal(status: int, code: int, message: str) -> Refused:
    """Return an error in Twilio's format."""
    return Refused(
        status,
        {"code": code, "message": message, "more_info": f"https://www.twilio.com/docs/errors/{code}", "status": status},
    )


class TwilioServer(Vendor[TwilioLeg]):
    """One account.

    `requests` are the plugin's requests; `stream_parameters` are added to the parameters of streams; with
    `media_is_unreachable`, no stream can be opened.
    """

    def __init__(self) -> None:
        super().__init__()
        self._credentials = new_sid("AC"), uuid4().hex
        self.requests: list[tuple[str, str, list[tuple[str, str]]]] = []
        self.numbers: dict[str, Number] = {}
        self.senders: dict[str, str] = {}
        self.stream_parameters: dict[str, str] = {}
        self.media_is_unreachable = False

    def create_failure(self, status: int) -> Refused:
        return create_refusal(
            status,
            20429 if status == 429 else 20500,
            "Too Many Requests" if status == 429 else "An internal server error",
        )

    def authenticate(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != encode_basic_auth(self.account_sid, self.auth_token):
            raise create_refusal(401, 20003, "Authenticate")

    @property
    def account_sid(self) -> str:
        return self._credentials[0]

    @property
    def auth_token(self) -> str:
        return self._credentials[1]

    # --- people ---

    async def simulate_call(
        self, from_number: str, to_number: str, lines: Sequence[str], **fields: str
    ) -> SimulatedCall:
        """Call a number of the account and say these lines."""
        number = self.numbers[to_number]
        record = CallRecord(
            new_sid("CA"),
            "inbound",
            from_number,
            to_number,
            voice_url=number.voice_url,
            status_callback=number.status_callback,
        )
        return await self._start_call(record, lines)

    async def call_from_browser(
        self, identity: str, to_number: str, application_url: str, lines: Sequence[str], **given: str
    ) -> SimulatedCall:
        """Call from a web page with a token; the page sets these fields.

        The application reports the calls' ends to the `status` path.
        """
        status = f"{application_url.rpartition('/')[0]}/status"
        record = CallRecord(
            new_sid("CA"),
            "inbound",
            f"client:{identity}",
            to_number,
            voice_url=application_url,
            status_callback=status,
            more=given,
        )
        return await self._start_call(record, lines)

    async def connect_person(self, from_number: str, to_number: str, person: Callable[["TwilioLeg"], Person]) -> None:
        """Let a person call a number of the account and behave as written, until one side hangs up."""
        number = self.numbers[to_number]
        record = CallRecord(
            new_sid("CA"),
            "inbound",
            from_number,
            to_number,
            voice_url=number.voice_url,
            status_callback=number.status_callback,
        )
        leg, notice = self._leg(record), IncomingCall(record.sid, from_number, to_number)
        caller = Caller(self.directory, lambda _: person(leg))
        await self.run(leg, lambda ringing: caller.ring(ringing, leg.post, "", notice))

    async def _start_call(self, record: CallRecord, lines: Sequence[str]) -> SimulatedCall:
        leg = self._leg(record)
        return await self.simulate(leg, leg.post, IncomingCall(record.sid, record.from_number, record.to_number), lines)

    async def text(self, from_number: str, to_number: str, body: str, **fields: str) -> str:
        """Send a text message to a number of the account and return its id."""
        notice = TextMessageReceived(texts.new_text_id(), from_number, to_number, body)
        await self.post(CallRecord("", "inbound", from_number, to_number)).send_inbound_text(notice, **fields)
        return f"SM{notice.carrier_text_id[3:]}"

    def post(self, record: CallRecord) -> TwilioPost:
        return TwilioPost(
            self.http, self.auth_token, self.closing, self.account_sid, record, self.numbers, self.repeats
        )

    def _leg(self, record: CallRecord) -> TwilioLeg:
        leg = self.legs[record.sid] = TwilioLeg(self.post(record))
        leg.altered, leg.unreachable = self.stream_parameters, self.media_is_unreachable
        return leg

    async def handle_end(self, leg: TwilioLeg) -> None:
        if not leg.post.record.recording_callback:
            return
        sid = new_sid("RE")
        self.recordings[sid] = stereo(leg)
        form = {
            "CallSid": leg.call_id,
            "RecordingSid": sid,
            "RecordingStatus": "completed",
            "AccountSid": self.account_sid,
            "RecordingChannels": "2",
        }
        await leg.post.post_form(leg.post.record.recording_callback, form)

    # --- the API ---

    async def get_account(self) -> JsonBody:
        return {"sid": self.account_sid, "status": "active"}

    async def create_call(self, form: dict[str, str], events: tuple[str, ...]) -> JsonBody:
        if form["From"] not in self.numbers:
            raise create_refusal(400, 21210, "Source phone number provided, not yet verified for your account.")
        if form["To"].endswith("25"):
            raise create_refusal(400, 21211, f"The 'To' number {form['To']} is not a valid phone number.")
        if form["To"].endswith("26"):
            raise create_refusal(400, 13224, "Twilio does not support calling this number or the number is invalid")
        try:
            subscriber = self.directory.subscriber(form["To"])
        except ProviderError:
            raise create_refusal(400, 21214, "'To' phone number cannot be reached") from None
        record = CallRecord(
            new_sid("CA"),
            "outbound-api",
            form["From"],
            form["To"],
            status_callback=form.get("StatusCallback", ""),
            status_events=events,
            amd_callback=form.get("AsyncAmdStatusCallback", "") if form.get("AsyncAmd") == "true" else "",
        )
        reply = read_markup(record, form["Twiml"])
        if record.key_url:
            leg = self._leg(record)
            self.introductions.append(record.spoken)
            audio, ring = await synthesize_mulaw(record.spoken), int(form["Timeout"])
            self.run(leg, lambda _: leg.consult(ring_person(subscriber, ring), audio))
            return self._call_body(record, "queued")
        assert isinstance(reply, ConnectReply)
        order = OutboundCall(
            "",
            form["From"],
            form["To"],
            reply.media_url,
            CallbackUrls(""),
            int(form["Timeout"]),
            int(form["TimeLimit"]),
            bool(record.amd_callback),
        )
        leg = self._leg(record)
        self.run(leg, lambda _: leg.place(order, subscriber))
        return self._call_body(record, "queued")

    async def update_call(self, sid: str, form: dict[str, str]) -> JsonBody:
        leg = self.legs.get(sid)
        if leg is None:
            raise create_refusal(404, 20404, f"The requested resource /Calls/{sid}.json was not found")
        if form.get("Status") in ("completed", "canceled"):
            leg.hang_up()
            return self._call_body(leg.post.record, "completed")
        reply = read_markup(leg.post.record, form["Twiml"])
        if reply is None:
            target = self.legs[leg.post.record.conference]
            assert target.post.record.conference == leg.post.record.conference, "who waits is in the same conference"
            join_legs(leg, target)
            return self._call_body(leg.post.record, "in-progress")
        assert isinstance(reply, ForwardReply)
        # Of the two numbers of the call, either is accepted (https://www.twilio.com/docs/api/errors/13214).
        assert reply.caller_id in (*self.numbers, leg.post.record.from_number, leg.post.record.to_number)
        subscriber = self.directory.subscriber(reply.to_number)
        if subscriber.outcome is None:
            leg.connect_to(subscriber.person)
        else:
            leg.hang_up()
        return self._call_body(leg.post.record, "in-progress")

    def _call_body(self, record: CallRecord, status: str) -> JsonBody:
        return {
            "sid": record.sid,
            "account_sid": self.account_sid,
            "from": record.from_number,
            "to": record.to_number,
            "status": status,
        }

    async def create_message(self, form: dict[str, str]) -> JsonBody:
        if form["From"] not in self.numbers and (form["From"].startswith("+") or form["To"].startswith("+1")):
            raise create_refusal(
                400,
                21606,
                f"The 'From' phone number provided ({form['From']}) is not a valid message-capable "
                "Twilio phone number.",
            )
        assert form["From"].startswith("+") or "MessagingServiceSid" not in form
        if form["To"].endswith("82"):
            raise create_refusal(400, 21211, f"The 'To' number {form['To']} is not a valid phone number.")
        if form["To"].endswith("83"):
            raise create_refusal(400, 21610, "Attempt to send to unsubscribed recipient")
        sid = new_sid("SM")
        self.texts[sid] = {"status": "sent", "error_code": None, "error_message": None}
        order = OutboundTextMessage("", form["From"], form["To"], form["Body"], CallbackUrls(form["StatusCallback"]))
        self.spawn(texts.deliver_text(self.post(CallRecord("", "", "", "")), order, sid))
        return {
            "sid": sid,
            "account_sid": self.account_sid,
            "status": "queued",
            "num_segments": "1",
            "body": form["Body"],
        }

    async def get_message(self, sid: str) -> JsonBody:
        if sid not in self.texts:
            raise create_refusal(404, 20404, "The requested resource was not found")
        return {"sid": sid, "account_sid": self.account_sid, "body": "Hello", **self.texts[sid]}

    async def search_numbers(self, country: str, kind: str, query: dict[str, str]) -> JsonBody:
        if kind != "Local" or country not in ("US", "CA", "GB"):
            raise create_refusal(404, 20404, "The requested resource was not found")
        assert query["VoiceEnabled"] == "true"
        pattern = query.get("Contains", "")
        stock_numbers = stock.search_stock(
            country, query.get("AreaCode") or (pattern.removeprefix("+44").rstrip("%") or None), int(query["PageSize"])
        )
        capabilities = {"voice": True, "SMS": True, "MMS": False}
        numbers = [
            {
                "phone_number": one.phone_number,
                "friendly_name": one.friendly_name,
                "iso_country": country,
                "locality": one.locality,
                "region": "NY",
                "postal_code": None,
                "capabilities": capabilities,
            }
            for one in stock_numbers
        ]
        return {"available_phone_numbers": numbers, "uri": "", "next_page_uri": None}

    async def list_numbers(self, query: dict[str, str]) -> JsonBody:
        numbers = [
            self._number_body(number) for number in self.numbers.values() if query["PhoneNumber"] in number.phone_number
        ]
        return {"incoming_phone_numbers": numbers, "uri": "", "next_page_uri": None}

    async def buy_number(self, form: dict[str, str]) -> JsonBody:
        phone_number = form["PhoneNumber"]
        if phone_number.endswith("99") or phone_number in self.numbers:
            raise create_refusal(400, 21422, f"{phone_number} is not available.")
        if phone_number.endswith("98") and "AddressSid" not in form:
            raise create_refusal(
                400, 21631, "Phone Number Requires an Address but the 'AddressSid' parameter was empty."
            )
        self.purchases += 1
        self.numbers[phone_number] = Number(new_sid("PN"), phone_number)
        return self._direct(self.numbers[phone_number], form)

    async def update_number(self, sid: str, form: dict[str, str]) -> JsonBody:
        return self._direct(self._number(sid), form)

    async def add_sender(self, service: str, sid: str) -> JsonBody:
        """Add a number to a messaging service; it can be in one only."""
        held_by = self.senders.get(sid)
        if held_by is not None and held_by != service:
            raise create_refusal(409, 21712, "Phone Number or Short Code is associated with another Messaging Service.")
        if held_by is not None:
            raise create_refusal(409, 21710, "Phone Number or Short Code is already in the Messaging Service.")
        self.senders[sid] = service
        return {"sid": sid, "service_sid": service, "phone_number": self._number(sid).phone_number}

    async def release_number(self, sid: str) -> None:
        del self.numbers[self._number(sid).phone_number]

    def _number(self, sid: str) -> Number:
        numbers = next((number for number in self.numbers.values() if number.sid == sid), None)
        if numbers is None:
            raise create_refusal(404, 20404, f"The requested resource /IncomingPhoneNumbers/{sid}.json was not found")
        return numbers

    def _direct(self, number: Number, form: dict[str, str]) -> JsonBody:
        number.voice_url, number.sms_url, number.status_callback = (
            form["VoiceUrl"],
            form["SmsUrl"],
            form["StatusCallback"],
        )
        number.elsewhere = {name: sid for name in number.elsewhere if (sid := form.get(name, number.elsewhere[name]))}
        return self._number_body(number)

    def _number_body(self, number: Number) -> JsonBody:
        capabilities = {"voice": True, "sms": True, "mms": False, "fax": False}
        return {
            "sid": number.sid,
            "phone_number": number.phone_number,
            "capabilities": capabilities,
            "account_sid": self.account_sid,
        }

    async def list_prices(self, country: str) -> JsonBody:
        prices = [{"number_type": "local", "base_price": "1.15", "current_price": "1.15"}]
        return {"iso_country": country, "phone_number_prices": prices, "price_unit": "USD"}
