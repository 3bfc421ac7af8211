"""A Plivo server in this process: the REST API that the plugin uses, and people with telephones.

Written from Plivo's documentation, and from the requests and fixtures of plivo-python 4.59.5. Responses of a real
account beyond them are not known here.
"""

import asyncio
from collections.abc import Mapping, Sequence
from uuid import uuid4

import aiohttp
from aiohttp import encode_basic_auth, web
from pydantic import JsonValue
from switchboard.plugin_sdk import (
    ACCEPT_KEY,
    CallbackUrls,
    IncomingCall,
    OutboundCall,
    OutboundTextMessage,
    ProviderError,
    SimulatedCall,
    TextMessageReceived,
    TransferTargetReady,
)
from switchboard_offline.loopback import stock, texts
from switchboard_offline.loopback.callbacks import ConnectReply, ForwardReply, NoticeUndelivered
from switchboard_offline.loopback.leg import CONNECT_SECONDS, LoopbackLeg, MediaFailed, join_legs
from switchboard_offline.loopback.line import Announcement, FarEnd
from switchboard_offline.loopback.persons import synthesize_mulaw

from tests.carriers.plivo.wire import Application, CallRecord, Number, PlivoPost, PlivoStream, read_markup, write_number
from tests.carriers.vendor import JsonBody, Refused, Vendor

UNREACHABLE = "connection disconnected with the remote service"
APPLICATION = "20468599130939380"
COUNTRIES = {"US": "UNITED STATES", "CA": "CANADA", "GB": "UNITED KINGDOM"}
Given = Mapping[str, JsonValue]


def create_refusal(status: int, message: str) -> Refused:
    """Return an error in Plivo's format."""
    return Refused(status, {"api_id": str(uuid4()), "error": message})


class PlivoLeg(LoopbackLeg):
    """A person's line, connected by Plivo's audio stream, which is `stream` once it is open."""

    def __init__(self, post: PlivoPost, auth_id: str, introductions: list[str]) -> None:
        super().__init__(post.record.uuid, post, "")
        self.post = post
        self.auth_id = auth_id
        self.introductions = introductions
        self.headers: str | None = None
        self.unreachable = False
        self.stream: PlivoStream | None = None

    async def open_media(self, url: str) -> FarEnd:
        """Connect an answered call as its instructions say, which are fetched for an outbound one."""
        record = self.post.record
        if record.direction == "outbound":
            try:
                reply = read_markup(record, await self.post.ask_for_instructions())
            except NoticeUndelivered as error:
                raise MediaFailed(str(error)) from error
            if record.key_url:
                return await self._ask()
            assert isinstance(reply, ConnectReply)
            url = reply.media_url
        return await self._open_stream(url)

    async def _ask(self) -> Announcement:
        record = self.post.record
        self.introductions.append(record.spoken)
        return Announcement(
            await synthesize_mulaw(record.spoken),
            on_spoken=lambda: None if record.is_machine else self.phone.press(ACCEPT_KEY),
            on_accepted=lambda: self.notify(TransferTargetReady(self.call_id)),
        )

    async def _open_stream(self, url: str) -> PlivoStream:
        record = self.post.record
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                if self.unreachable:
                    raise TimeoutError
                socket = await self.post.http.ws_connect(url, timeout=aiohttp.ClientWSTimeout(ws_close=1.0))
                headers = record.headers if self.headers is None else self.headers
                self.stream = PlivoStream(socket, self.auth_id, self.call_id, headers)
                await self.stream.start()
        except (aiohttp.ClientError, TimeoutError) as error:
            form = record.form("in-progress", "DroppedStream", StreamID=str(uuid4()), StatusReason=UNREACHABLE)
            await self.post.post_form(record.stream_callback, form)
            raise MediaFailed(UNREACHABLE) from error
        return self.stream


class PlivoServer(Vendor[PlivoLeg]):
    """One account.

    `requests` are the plugin's requests; `stream_headers` replace those of streams; with `media_is_unreachable`, no
    stream can be opened. `campaign` are the numbers that were linked to a 10DLC campaign.
    """

    def __init__(self) -> None:
        super().__init__()
        self.auth_id = f"MA{uuid4().hex[:18].upper()}"
        self.auth_token = uuid4().hex
        self.requests: list[tuple[str, str, Given]] = []
        self.numbers: dict[str, Number] = {}
        self.application = Application()
        self.campaign: list[str] = []
        self.stream_headers: str | None = None
        self.media_is_unreachable = False

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The account in a tenant file."""
        return {
            "auth_id": self.auth_id,
            "auth_token": self.auth_token,
            "application_id": APPLICATION,
            "base_url": self.address,
        }

    def create_failure(self, status: int) -> Refused:
        return create_refusal(status, "rate limit exceeded" if status == 429 else "server error")

    def authenticate(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != encode_basic_auth(self.auth_id, self.auth_token):
            raise create_refusal(401, "authentication failed")

    # --- people ---

    async def simulate_call(self, from_number: str, to_number: str, lines: Sequence[str]) -> SimulatedCall:
        """Call a number of the account and say these lines."""
        assert self.numbers[to_number].application == APPLICATION
        application = self.application
        record = CallRecord(
            str(uuid4()),
            "inbound",
            from_number,
            to_number,
            answer_url=application.answer_url,
            hangup_url=application.hangup_url,
        )
        leg = self._leg(record)
        return await self.simulate(leg, leg.post, IncomingCall(record.uuid, from_number, to_number), lines)

    async def text(self, from_number: str, to_number: str, body: str, **fields: str) -> str:
        """Send a text message to a number of the account and return its id."""
        notice = TextMessageReceived(str(uuid4()), from_number, to_number, body)
        await self.post(CallRecord("", "inbound", from_number, to_number)).send_inbound_text(notice, **fields)
        return notice.carrier_text_id

    def post(self, record: CallRecord) -> PlivoPost:
        return PlivoPost(self.http, self.auth_token, self.closing, record, self.application, self.repeats)

    def _leg(self, record: CallRecord) -> PlivoLeg:
        leg = self.legs[record.uuid] = PlivoLeg(self.post(record), self.auth_id, self.introductions)
        leg.headers, leg.unreachable = self.stream_headers, self.media_is_unreachable
        return leg

    async def handle_end(self, leg: PlivoLeg) -> None:
        """Do nothing."""

    # --- the API ---

    def _find_leg(self, call_id: str) -> PlivoLeg:
        if call_id not in self.legs:
            raise create_refusal(404, "call not found")
        return self.legs[call_id]

    async def create_call(self, given: Given) -> JsonBody:
        to_number, from_number = f"+{given['to']}", f"+{given['from']}"
        if from_number not in self.numbers:
            raise create_refusal(403, f"from number {from_number} is not of this account")
        try:
            subscriber = self.directory.subscriber(to_number)
        except ProviderError:
            raise create_refusal(400, "to number is not valid") from None
        machine_url = given.get("machine_detection_url", "") if given.get("machine_detection") == "true" else ""
        record = CallRecord(
            str(uuid4()),
            "outbound",
            from_number,
            to_number,
            answer_url=str(given["answer_url"]),
            ring_url=str(given.get("ring_url", "")),
            hangup_url=str(given.get("hangup_url", "")),
            machine_url=str(machine_url),
            is_machine=subscriber.machine,
        )
        ring_seconds, limit = given["ring_timeout"], given.get("time_limit", 14_400)
        assert isinstance(ring_seconds, int)
        assert isinstance(limit, int)
        order = OutboundCall(
            "", from_number, to_number, "", CallbackUrls(""), ring_seconds, limit, detect_machine=bool(machine_url)
        )
        leg = self._leg(record)
        self.run(leg, lambda _: leg.place(order, subscriber))
        return {"api_id": str(uuid4()), "message": "call fired", "request_uuid": record.uuid}

    async def transfer_call(self, call_id: str, given: Given) -> JsonBody:
        leg = self._find_leg(call_id)
        assert given["legs"] == "aleg"
        record = leg.post.record
        try:
            reply = read_markup(
                record, await leg.post.post_form(str(given["aleg_url"]), record.form("in-progress", ""))
            )
        except NoticeUndelivered:
            leg.hang_up()
        else:
            assert isinstance(reply, ForwardReply)
            assert reply.caller_id in self.numbers
            subscriber = self.directory.subscriber(reply.to_number)
            if subscriber.outcome is None:
                leg.connect_to(subscriber.person)
            else:
                leg.hang_up()
        return {"api_id": str(uuid4()), "message": "call transferred"}

    async def hang_up_call(self, call_id: str) -> None:
        self._find_leg(call_id).hang_up()

    async def send_digits(self, call_id: str, given: Given) -> JsonBody:
        await self._find_leg(call_id).press(str(given["digits"]))
        return {"api_id": str(uuid4()), "message": "digits sent"}

    async def add_participant(self, name: str, given: Given) -> JsonBody:
        leg = self._find_leg(str(given["call_uuid"]))
        assert (given["role"], given["end_mpc_on_exit"], given["enter_sound"]) == ("Customer", True, "none")
        target = next((other for other in self.legs.values() if other.post.record.multiparty_call == name), None)
        if target is None:
            raise create_refusal(404, "multi party call not found")
        join_legs(leg, target)
        return {"api_id": str(uuid4()), "message": "add participant action initiated", "request_uuid": str(uuid4())}

    async def create_message(self, given: Given) -> JsonBody:
        to_number, source = f"+{given['dst']}", str(given["src"])
        if f"+{source}" not in self.numbers and (source.isdecimal() or to_number.startswith("+1")):
            raise create_refusal(400, "This caller ID is not allowed for outbound message")
        if to_number.endswith("82"):
            raise create_refusal(400, "dst is not a valid number")
        assert (given["type"] == "mms") == ("media_urls" in given)
        text_id, url = str(uuid4()), str(given["url"])
        self.texts[text_id] = {"message_state": "sent", "error_code": None, "units": 1, "total_amount": "0.00000"}
        if to_number.endswith("83"):
            form = {"MessageUUID": text_id, "Status": "failed", "ErrorCode": "200", "Units": "1"}
            self.spawn(self._report_opt_out(url, form))
        else:
            order = OutboundTextMessage("", f"+{source}", to_number, str(given["text"]), CallbackUrls(url))
            self.spawn(texts.deliver_text(self.post(CallRecord("", "", "", "")), order, text_id))
        return {"api_id": str(uuid4()), "message": "message(s) queued", "message_uuid": [text_id]}

    async def get_message(self, text_id: str) -> JsonBody:
        if text_id not in self.texts:
            raise create_refusal(404, "not found")
        return {"api_id": str(uuid4()), "message_uuid": text_id, "message_direction": "outbound", **self.texts[text_id]}

    async def _report_opt_out(self, url: str, form: dict[str, str]) -> None:
        await self.post(CallRecord("", "", "", "")).post_form(url, form)

    # --- numbers ---

    async def search_numbers(self, query: Given) -> JsonBody:
        country, limit, offset = str(query["country_iso"]), int(str(query["limit"])), int(str(query["offset"]))
        assert 0 < limit <= 20
        assert query["services"] == "voice"
        found = []
        if query["type"] == "local" and country in COUNTRIES:
            pattern = query.get("pattern")
            found = list(stock.search_stock(country, None if pattern is None else str(pattern), offset + limit))
        objects = [
            {
                "number": write_number(one.phone_number),
                "city": one.locality,
                "country": COUNTRIES[country],
                "region": "New York, UNITED STATES",
                "type": "fixed",
                "sub_type": "local",
                "setup_rate": "0.00000",
                "monthly_rental_rate": f"{one.monthly_cost:.5f}",
                "voice_enabled": True,
                "sms_enabled": True,
                "mms_enabled": False,
                "restriction": None,
            }
            for one in found[offset:]
        ]
        meta = {"limit": limit, "offset": offset, "next": None, "previous": None, "total_count": len(objects)}
        return {"api_id": str(uuid4()), "meta": meta, "objects": objects}

    async def buy_number(self, number: str, given: Given) -> JsonBody:
        phone_number = f"+{number}"
        if phone_number.endswith("99") or phone_number in self.numbers:
            raise create_refusal(400, f"number {number} is not available")
        if phone_number.endswith("98") and "compliance_application_id" not in given:
            raise create_refusal(400, "compliance_application_id is required")
        status = "pending" if phone_number.endswith("97") else "Success"
        if status == "Success":
            self.purchases += 1
            self.numbers[phone_number] = Number(phone_number, str(given["app_id"]))
        return {
            "api_id": str(uuid4()),
            "message": "created",
            "numbers": [{"number": number, "status": status}],
            "status": "fulfilled",
        }

    def _find_number(self, number: str) -> Number:
        if f"+{number}" not in self.numbers:
            raise create_refusal(404, "not found")
        return self.numbers[f"+{number}"]

    async def get_number(self, number: str) -> JsonBody:
        application = self._find_number(number).application
        return {
            "api_id": str(uuid4()),
            "number": number,
            "application": f"/v1/Account/{self.auth_id}/Application/{application}/" if application else None,
            "number_type": "local",
            "voice_enabled": True,
            "sms_enabled": True,
            "mms_enabled": False,
        }

    async def update_number(self, number: str, given: Given) -> JsonBody:
        self._find_number(number).application = str(given["app_id"])
        return {"api_id": str(uuid4()), "message": "changed"}

    async def release_number(self, number: str) -> None:
        del self.numbers[self._find_number(number).phone_number]

    async def get_application(self, application_id: str) -> JsonBody:
        if application_id != APPLICATION:
            raise create_refusal(404, "not found")
        return {"api_id": str(uuid4()), "app_id": application_id, "enabled": True}

    async def update_application(self, application_id: str, given: Given) -> JsonBody:
        await self.get_application(application_id)
        addresses = {name: str(value) for name, value in given.items() if name.endswith("_url")}
        assert {name: given[name] for name in given if name.endswith("_method")} == dict.fromkeys(
            ("answer_method", "hangup_method", "message_method"), "POST"
        )
        self.application.__dict__.update(addresses)
        return {"api_id": str(uuid4()), "message": "changed"}

    async def link_numbers(self, given: Given) -> JsonBody:
        numbers = given["numbers"]
        assert isinstance(numbers, list)
        if any(number in self.campaign for number in numbers):
            raise create_refusal(400, f"The number {numbers[0]} is already requested for linking")
        self.campaign += [str(number) for number in numbers]
        return {"api_id": str(uuid4()), "message": "Request to link number(s) received"}
