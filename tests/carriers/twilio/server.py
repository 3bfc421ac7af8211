"""A Twilio in this process: its REST API as far as the plugin uses it, on one side; people with telephones on the other.

Written from Twilio's published OpenAPI description and documentation. What a real account answers beyond them is not known here.
"""

import asyncio
import io
import wave
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from uuid import uuid4

import aiohttp
import numpy as np
from switchboard.conversation.g711 import decode
from switchboard.plugins import CallbackUrls, CallOrder, ProviderError, SimulatedCall, TextOrder
from switchboard_offline.loopback import stock, texts
from switchboard_offline.loopback.callbacks import Calling, Connect, Ended, Forward, TextCame
from switchboard_offline.loopback.leg import CONNECT_SECONDS, Leg, MediaFailed
from switchboard_offline.loopback.persons import Directory, Subscriber, voice
from switchboard_offline.loopback.simulation import Simulation

from tests.carriers.twilio.wire import CallRecord, Number, TwilioPost, TwilioStream, read_markup

OURS = "+12125550100"
"""The number of the plugin's own tests."""
JsonBody = dict[str, object]


def new_sid(prefix: str) -> str:
    return prefix + uuid4().hex


class TwilioLeg(Leg):
    """A person's line, connected by a media stream of Twilio's."""

    def __init__(self, post: TwilioPost) -> None:
        super().__init__(post.record.sid, post, "")
        self.post = post
        self.altered: dict[str, str] = {}

    def parameters(self, url: str) -> dict[str, str]:
        return {**self.post.record.streams[url], **self.altered}

    async def place(self, order: CallOrder, subscriber: Subscriber) -> Ended:
        await self.post.status("initiated")
        return await super().place(order, subscriber)

    async def open_media(self, url: str) -> TwilioStream:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                socket = await self.post.http.ws_connect(url, timeout=aiohttp.ClientWSTimeout(ws_close=1.0))
                stream = TwilioStream(socket, self.post.account_sid, self.call_id, self.parameters(url))
                await stream.start()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise MediaFailed(f"31920: {error}") from error
        return stream


class Refused(Exception):
    """An error of the API."""

    def __init__(self, status: int, code: int, message: str) -> None:
        self.body = {"code": code, "message": message, "more_info": f"https://www.twilio.com/docs/errors/{code}", "status": status}
        self.status = status


class TwilioServer:
    """One account. `failures` holds, by method and last part of the path, statuses to be answered before anything is done (or `BROKEN`, `NEVER`,
    `DONE`); `requests` is what the plugin sent; `talked` counts the calls in which somebody was heard; `stream_parameters` are added to streams'
    own; with `repeats` each status is told twice."""

    def __init__(self) -> None:
        self._credentials = new_sid("AC"), uuid4().hex
        self.address = ""
        self.requests: list[tuple[str, str, list[tuple[str, str]]]] = []
        self.failures: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.numbers: dict[str, Number] = {}
        self.purchases = 0
        self.recordings: dict[str, bytes] = {}
        self.legs: dict[str, TwilioLeg] = {}
        self.repeats = False
        self.talked = 0
        self.stream_parameters: dict[str, str] = {}
        self._http: aiohttp.ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.closing = asyncio.Event()
        self._directory = Directory({})

    @property
    def account_sid(self) -> str:
        return self._credentials[0]

    @property
    def auth_token(self) -> str:
        return self._credentials[1]

    # --- the people ---

    async def ring(self, from_number: str, to_number: str, lines: Sequence[str], **fields: str) -> SimulatedCall:
        """Somebody rings a number of the account and says these lines."""
        number = self.numbers[to_number]
        record = CallRecord(new_sid("CA"), "inbound", from_number, to_number, voice_url=number.voice_url, status_callback=number.status_callback)
        return await self._ring(record, lines)

    async def call_from_browser(self, identity: str, to_number: str, application_url: str, lines: Sequence[str], **given: str) -> SimulatedCall:
        """Somebody with a token calls from a page, which gives these fields along. The application tells its calls' ends to `status` beside it."""
        status = f"{application_url.rpartition('/')[0]}/status"
        record = CallRecord(new_sid("CA"), "inbound", f"client:{identity}", to_number, voice_url=application_url, status_callback=status, more=given)
        return await self._ring(record, lines)

    async def _ring(self, record: CallRecord, lines: Sequence[str]) -> SimulatedCall:
        leg = self._leg(record)
        call = Simulation([await voice(line) for line in lines], self._directory, lambda _: None)
        announced = Calling(record.sid, record.from_number, record.to_number)
        await self._run(leg, lambda leg: call.ring(leg, leg_post(leg), "", announced))
        return call.result(leg)

    async def text(self, from_number: str, to_number: str, body: str, **fields: str) -> str:
        """Somebody texts a number of the account; answers the text's id."""
        told = TextCame(texts.new_id(), from_number, to_number, body)
        await self.post(CallRecord("", "inbound", from_number, to_number)).text_came(told, **fields)
        return f"SM{told.text_id[3:]}"

    def post(self, record: CallRecord) -> TwilioPost:
        assert self._http is not None
        return TwilioPost(self._http, self.auth_token, self.closing, self.account_sid, record, self.numbers, self.repeats)

    def _leg(self, record: CallRecord) -> TwilioLeg:
        leg = self.legs[record.sid] = TwilioLeg(self.post(record))
        leg.altered = self.stream_parameters
        return leg

    def _run(self, leg: TwilioLeg, call: Callable[[Leg], Awaitable[Ended]]) -> asyncio.Task[None]:
        async def whole() -> None:
            await leg.run(call)
            del self.legs[leg.call_id]
            self.talked += leg.phone.voiced_frames > 0
            if leg.post.record.recording_callback:
                await self._record(leg)

        return self._spawn(whole())

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _record(self, leg: TwilioLeg) -> None:
        sid, file = new_sid("RE"), io.BytesIO()
        with wave.open(file, "wb") as recording:
            recording.setnchannels(2)
            recording.setsampwidth(2)
            recording.setframerate(8000)
            sides = [decode(bytes(side), "mulaw") for side in (leg.phone.said, leg.phone.heard)]
            recording.writeframes(np.stack(sides, axis=1).astype("<i2").tobytes())
        self.recordings[sid] = file.getvalue()
        form = {"CallSid": leg.call_id, "RecordingSid": sid, "RecordingStatus": "completed", "AccountSid": self.account_sid, "RecordingChannels": "2"}
        await leg.post.form_post(leg.post.record.recording_callback, form)

    # --- the API ---

    async def account(self) -> JsonBody:
        return {"sid": self.account_sid, "status": "active"}

    async def create_call(self, form: dict[str, str], events: tuple[str, ...]) -> JsonBody:
        if form["From"] not in self.numbers:
            raise Refused(400, 21210, "Source phone number provided, not yet verified for your account.")
        if form["To"].endswith("25"):
            raise Refused(400, 21211, f"The 'To' number {form['To']} is not a valid phone number.")
        try:
            subscriber = self._directory.subscriber(form["To"])
        except ProviderError:
            raise Refused(400, 21214, "'To' phone number cannot be reached") from None
        record = CallRecord(
            new_sid("CA"), "outbound-api", form["From"], form["To"], status_callback=form.get("StatusCallback", ""),
            status_events=events, amd_callback=form.get("AsyncAmdStatusCallback", "") if form.get("AsyncAmd") == "true" else "",
        )  # fmt: skip
        answer = read_markup(record, form["Twiml"])
        assert isinstance(answer, Connect)
        order = CallOrder(
            "", form["From"], form["To"], answer.media_url, CallbackUrls(""), int(form["Timeout"]), int(form["TimeLimit"]), bool(record.amd_callback)
        )
        leg = self._leg(record)
        self._run(leg, lambda _: leg.place(order, subscriber))
        return self._call_body(record, "queued")

    async def update_call(self, sid: str, form: dict[str, str]) -> JsonBody:
        leg = self.legs.get(sid)
        if leg is None:
            raise Refused(404, 20404, f"The requested resource /Calls/{sid}.json was not found")
        if form.get("Status") in ("completed", "canceled"):
            leg.hang_up()
            return self._call_body(leg.post.record, "completed")
        answer = read_markup(leg.post.record, form["Twiml"])
        assert isinstance(answer, Forward)
        assert answer.caller_id in self.numbers
        subscriber = self._directory.subscriber(answer.to_number)
        if subscriber.outcome is None:
            leg.connect_to(subscriber.person)
        else:
            leg.hang_up()
        return self._call_body(leg.post.record, "in-progress")

    def _call_body(self, record: CallRecord, status: str) -> JsonBody:
        return {"sid": record.sid, "account_sid": self.account_sid, "from": record.from_number, "to": record.to_number, "status": status}

    async def create_message(self, form: dict[str, str]) -> JsonBody:
        if form["From"] not in self.numbers:
            raise Refused(400, 21606, f"The 'From' phone number provided ({form['From']}) is not a valid message-capable Twilio phone number.")
        if form["To"].endswith("82"):
            raise Refused(400, 21211, f"The 'To' number {form['To']} is not a valid phone number.")
        if form["To"].endswith("83"):
            raise Refused(400, 21610, "Attempt to send to unsubscribed recipient")
        sid = new_sid("SM")
        order = TextOrder("", form["From"], form["To"], form["Body"], CallbackUrls(form["StatusCallback"]))
        self._spawn(texts.carry(self.post(CallRecord("", "", "", "")), order, sid))
        return {"sid": sid, "account_sid": self.account_sid, "status": "queued", "num_segments": "1", "body": form["Body"]}

    async def available(self, country: str, kind: str, query: dict[str, str]) -> JsonBody:
        if kind != "Local" or country not in ("US", "CA", "GB"):
            raise Refused(404, 20404, "The requested resource was not found")
        assert query["VoiceEnabled"] == "true"
        pattern = query.get("Contains", "")
        found = stock.search(country, query.get("AreaCode") or (pattern.removeprefix("+44").rstrip("%") or None), int(query["PageSize"]))
        able = {"voice": True, "SMS": True, "MMS": False}
        numbers = [
            {"phone_number": one.phone_number, "friendly_name": one.friendly_name, "iso_country": country, "locality": one.locality,
             "region": "NY", "postal_code": None, "capabilities": able} for one in found
        ]  # fmt: skip
        return {"available_phone_numbers": numbers, "uri": "", "next_page_uri": None}

    async def list_numbers(self, query: dict[str, str]) -> JsonBody:
        found = [self._number_body(number) for number in self.numbers.values() if query["PhoneNumber"] in number.phone_number]
        return {"incoming_phone_numbers": found, "uri": "", "next_page_uri": None}

    async def buy_number(self, form: dict[str, str]) -> JsonBody:
        phone_number = form["PhoneNumber"]
        if phone_number.endswith("99") or phone_number in self.numbers:
            raise Refused(400, 21422, f"{phone_number} is not available.")
        self.purchases += 1
        self.numbers[phone_number] = Number(new_sid("PN"), phone_number)
        return self._direct(self.numbers[phone_number], form)

    async def update_number(self, sid: str, form: dict[str, str]) -> JsonBody:
        return self._direct(self._number(sid), form)

    async def release_number(self, sid: str) -> None:
        del self.numbers[self._number(sid).phone_number]

    def _number(self, sid: str) -> Number:
        found = next((number for number in self.numbers.values() if number.sid == sid), None)
        if found is None:
            raise Refused(404, 20404, f"The requested resource /IncomingPhoneNumbers/{sid}.json was not found")
        return found

    def _direct(self, number: Number, form: dict[str, str]) -> JsonBody:
        number.voice_url, number.sms_url, number.status_callback = form["VoiceUrl"], form["SmsUrl"], form["StatusCallback"]
        return self._number_body(number)

    def _number_body(self, number: Number) -> JsonBody:
        able = {"voice": True, "sms": True, "mms": False, "fax": False}
        return {"sid": number.sid, "phone_number": number.phone_number, "capabilities": able, "account_sid": self.account_sid}

    async def prices(self, country: str) -> JsonBody:
        prices = [{"number_type": "local", "base_price": "1.15", "current_price": "1.15"}]
        return {"iso_country": country, "phone_number_prices": prices, "price_unit": "USD"}

    # --- opening and closing ---

    async def idle(self) -> None:
        """Returns when every call is over and everything has been told."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        self.closing.set()
        for leg in self.legs.values():
            leg.hang_up()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        assert self._http is not None
        await self._http.close()

    async def open(self, address: str) -> None:
        self.address = address
        self._http = aiohttp.ClientSession()


def leg_post(leg: Leg) -> TwilioPost:
    """How a leg of ours tells."""
    assert isinstance(leg, TwilioLeg)
    return leg.post
