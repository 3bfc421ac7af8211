"""A Telnyx server in this process: the REST API that the plugin uses, and people with telephones.

Written from Telnyx's published OpenAPI description and documentation. Responses of a real account beyond them are not
known here.
"""

from base64 import b64encode
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from uuid import uuid4

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import JsonValue
from switchboard.plugin_sdk import (
    CallbackUrls,
    IncomingCall,
    OutboundCall,
    OutboundTextMessage,
    ProviderError,
    SimulatedCall,
    TextMessageReceived,
)
from switchboard_offline.loopback import texts
from switchboard_offline.loopback.callbacks import NoticeUndelivered
from switchboard_offline.loopback.leg import join_legs
from switchboard_offline.loopback.persons import Subscriber, synthesize_mulaw

from tests.carriers.telnyx.leg import TelnyxLeg
from tests.carriers.telnyx.phone_numbers import TelnyxNumbers, create_refusal
from tests.carriers.telnyx.wire import CallRecord, Number, TelnyxPost, build_hangup, encode_webhook
from tests.carriers.vendor import JsonBody, Refused, Vendor, stereo

LONGEST_RING = 5
"""Telnyx rings for at least five seconds, which are one here."""


async def _send_if_reachable(telling: Awaitable[None]) -> None:
    """Send a webhook to a platform that may be gone."""
    with suppress(NoticeUndelivered):
        await telling


def _check_stream_options(body: Mapping[str, object]) -> None:
    """Check the options that are needed for audio in both directions."""
    assert (body["stream_bidirectional_mode"], body["stream_bidirectional_codec"]) == ("rtp", "PCMU")
    assert (body["stream_track"], body["stream_codec"], body["stream_bidirectional_target_legs"]) == (
        "inbound_track",
        "PCMU",
        "self",
    )


class TelnyxServer(TelnyxNumbers, Vendor[TelnyxLeg]):
    """One account with an application, a messaging profile, and a connection for browsers.

    `requests` are the plugin's requests. `stream_start` is added to the start messages of streams. An ordered number
    becomes active after `looks_until_active` requests for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.api_key = f"KEY{uuid4().hex}"
        self.key = Ed25519PrivateKey.generate()
        self.connection_id, self.browser_connection_id, self.profile_id = (
            "1293384261075731499",
            "1293384261075731500",
            str(uuid4()),
        )
        self.requests: list[tuple[str, str, JsonBody]] = []
        self.application: JsonBody = {
            "id": self.connection_id,
            "application_name": "switchboard",
            "webhook_event_url": "https://example.com",
            "webhook_api_version": "1",
            "active": True,
        }
        self.profile: JsonBody = {
            "id": self.profile_id,
            "name": "texts",
            "webhook_url": None,
            "webhook_api_version": "2",
            "enabled": True,
        }
        self.numbers: dict[str, Number] = {}
        self.orders: list[JsonBody] = []
        self.credentials: dict[str, JsonBody] = {}
        self.looks_until_active = 0
        self.campaigns: dict[str, str] = {}
        self.stream_start: dict[str, object] = {}
        self.over: set[str] = set()

    @property
    def public_key(self) -> str:
        return b64encode(self.key.public_key().public_bytes_raw()).decode()

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The account's settings, as in a tenant file."""
        return {
            "api_key": self.api_key,
            "public_key": self.public_key,
            "connection_id": self.connection_id,
            "messaging_profile_id": self.profile_id,
            "credential_connection_id": self.browser_connection_id,
            "base_url": f"{self.address}/v2",
        }

    def create_failure(self, status: int) -> Refused:
        if status == 429:
            return create_refusal(
                429, "10011", "Too many requests", "You have exceeded the maximum number of allowed requests."
            )
        return create_refusal(status, "10007", "Unexpected error", "An unexpected error occured.")

    def authenticate(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {self.api_key}":
            raise create_refusal(
                401,
                "10009",
                "Authentication failed",
                "The required authentication headers were either invalid or not included.",
            )

    # --- people ---

    async def simulate_call(self, from_number: str, to_number: str, lines: Sequence[str]) -> SimulatedCall:
        """Call a number of the account and say these lines."""
        assert self.numbers[to_number].connection_id == self.connection_id
        record = CallRecord("incoming", from_number, to_number, self.connection_id, self._application_url)
        return await self._start_call(record, lines)

    async def call_from_browser(
        self,
        identity: str,
        to_number: str,
        lines: Sequence[str],
        *,
        caller: str = "",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> SimulatedCall:
        """Call from a web page with a token; the page sets a caller id and headers."""
        custom_headers = [{"name": name, "value": value} for name, value in headers.items()]
        more: JsonBody = {"caller_id_name": identity, **({"custom_headers": custom_headers} if headers else {})}
        record = CallRecord(
            "outgoing", caller or identity, to_number, self.browser_connection_id, self._application_url, more=more
        )
        return await self._start_call(record, lines)

    async def _start_call(self, record: CallRecord, lines: Sequence[str]) -> SimulatedCall:
        leg = self._leg(record)
        return await self.simulate(leg, leg.post, IncomingCall(record.id, record.from_number, record.to_number), lines)

    async def text(self, from_number: str, to_number: str, body: str, **more: object) -> str:
        """Send a text message to a number of the account and return its id."""
        assert self.numbers[to_number].messaging_profile_id == self.profile_id
        notice = TextMessageReceived("", from_number, to_number, body)
        return await self.post(CallRecord("incoming", from_number, to_number, "", "")).send_inbound_text(
            str(self.profile["webhook_url"]), notice, **more
        )

    @property
    def _application_url(self) -> str:
        assert self.application["webhook_api_version"] == "2"
        return str(self.application["webhook_event_url"])

    def post(self, record: CallRecord) -> TelnyxPost:
        return TelnyxPost(self.http, "", self.closing, self.key, record, self.repeats)

    def _leg(self, record: CallRecord) -> TelnyxLeg:
        leg = self.legs[record.id] = TelnyxLeg(self.post(record))
        leg.altered = self.stream_start
        return leg

    async def handle_end(self, leg: TelnyxLeg) -> None:
        record = leg.post.record
        self.over.add(record.id)
        if record.recorded:
            self.recordings[record.leg_id] = stereo(leg)
            payload = record.payload(channels="dual", recording_urls={"wav": self.storage_url(record.leg_id)})
            del payload["call_control_id"]
            await leg.post.post(record.webhook_url, encode_webhook("call.recording.saved", payload))

    # --- calls ---

    def hold(self, record: CallRecord) -> None:
        """Let a call wait for commands, without a webhook."""
        self._leg(record)

    async def dial(self, body: Mapping[str, object]) -> JsonBody:
        from_number, to_number = str(body["from"]), str(body["to"])
        assert body["connection_id"] == self.connection_id
        self._check_address(to_number)
        if from_number not in self.numbers:
            raise create_refusal(403, "10010", "Authorization failed", "The 'from' number is not one of the account's.")
        if to_number.endswith("25"):
            raise create_refusal(
                422, "10016", "Phone number must be in +E164 format", "The 'to' parameter must be in E164 format."
            )
        try:
            subscriber = self.directory.subscriber(to_number)
        except ProviderError:
            raise create_refusal(422, "10015", "Bad Request", f"{to_number} cannot be reached") from None
        record = CallRecord(
            "outgoing",
            from_number,
            to_number,
            self.connection_id,
            str(body["webhook_url"]),
            state="bridging",
            client_state=str(body["client_state"]),
            amd=body.get("answering_machine_detection", "disabled") != "disabled",
            awaits_greeting_end=body.get("answering_machine_detection") == "greeting_end",
            recorded=body.get("record") == "record-from-answer",
        )
        ring, limit = body["timeout_secs"], body.get("time_limit_secs", 14_400)
        assert isinstance(ring, int)
        assert isinstance(limit, int)
        assert 5 <= ring <= 600
        assert 30 <= limit <= 14_400
        if "stream_url" not in body:
            return self._dial_target(record, subscriber, ring)
        _check_stream_options(body)
        order = OutboundCall(
            "",
            from_number,
            to_number,
            str(body["stream_url"]),
            CallbackUrls(""),
            ring // LONGEST_RING,
            limit,
            record.amd,
        )
        leg = self._leg(record)
        self.run(leg, lambda _: leg.place(order, subscriber))
        return {"data": self._call_body(record)}

    def _dial_target(self, record: CallRecord, subscriber: Subscriber, ring: int) -> JsonBody:
        """Place a call without a stream, whose speech is commanded once it is answered."""
        leg = self._leg(record)
        self.run(leg, lambda _: leg.wait_for_speech(subscriber, ring // LONGEST_RING))
        return {"data": self._call_body(record)}

    def _check_address(self, to_number: str) -> None:
        """Fail for a SIP address that no credential has."""
        addresses = [f"sip:{credential['sip_username']}@sip.telnyx.com" for credential in self.credentials.values()]
        assert not to_number.startswith("sip:") or to_number in addresses

    async def active_calls(self, connection_id: str) -> JsonBody:
        """Return one call per page, so that the client must request all pages."""
        calls = [
            self._call_body(leg.post.record)
            for leg in self.legs.values()
            if leg.post.record.connection_id == connection_id
        ]
        return {"data": calls, "meta": {"page_number": 1, "page_size": 20, "total_pages": 1, "total_items": len(calls)}}

    def _call_body(self, record: CallRecord) -> JsonBody:
        return {**record.payload(), "record_type": "call", "is_alive": False, "call_duration": 0}

    async def command(self, call_id: str, action: str, body: Mapping[str, object]) -> JsonBody:
        leg = self.legs.get(call_id)
        if leg is None and call_id in self.over:
            raise create_refusal(
                422, "90018", "Call has already ended", "This call is no longer active and can't receive commands."
            )
        if leg is None:
            raise create_refusal(422, "90015", "Invalid Call Control ID", "The call_control_id provided was not valid.")
        record, command_id = leg.post.record, str(body["command_id"])
        if command_id not in record.commands:
            record.commands.add(command_id)
            record.client_state = str(body.get("client_state") or record.client_state or "") or None
            await self._obey(leg, action, body)
        return {"data": {"result": "ok"}}

    async def _obey(self, leg: TelnyxLeg, action: str, body: Mapping[str, object]) -> None:
        match action:
            case "answer":
                self._answer(leg, body)
            case "reject":
                assert body["cause"] in ("CALL_REJECTED", "USER_BUSY")
                leg.refuse("busy" if body["cause"] == "USER_BUSY" else "rejected")
            case "hangup":
                leg.end()
            case "transfer":
                await self._transfer(leg, body)
            case "gather_using_speak":
                assert body["voice"]
                assert body["maximum_digits"] == 1
                self.introductions.append(str(body["payload"]))
                leg.speech.set_result(await synthesize_mulaw(str(body["payload"])))
            case "bridge":
                join_legs(leg, self.legs[str(body["call_control_id"])])
            case "send_dtmf":
                self.spawn(leg.press(str(body["digits"])))
            case _:
                assert action == "streaming_stop", action

    def _answer(self, leg: TelnyxLeg, body: Mapping[str, object]) -> None:
        record = leg.post.record
        record.recorded = body.get("record") == "record-from-answer"
        if "stream_url" in body:
            _check_stream_options(body)
            leg.connect_media(str(body["stream_url"]))
        self.spawn(_send_if_reachable(leg.post.send_event("call.answered", state="answered")))

    async def _transfer(self, leg: TelnyxLeg, body: Mapping[str, object]) -> None:
        record = leg.post.record
        assert body["from"] in (*self.numbers, record.from_number, record.to_number)
        self._check_address(str(body["to"]))
        other = CallRecord(
            "outgoing", str(body["from"]), str(body["to"]), record.connection_id, record.webhook_url,
            client_state=str(body["target_leg_client_state"]),
        )  # fmt: skip
        subscriber = self.directory.subscriber(other.to_number)
        if subscriber.outcome is None:
            record.leg_b = other
            leg.bridge(other.to_number, other.from_number, subscriber.person)
        self.spawn(
            _send_if_reachable(
                self._report_second_leg(leg.post.create_sender(other), subscriber.outcome, subscriber.error_code)
            )
        )

    async def _report_second_leg(self, post: TelnyxPost, outcome: str | None, code: str | None) -> None:
        await post.send_event("call.initiated", direction="outgoing", state="bridging")
        if outcome is None:
            await post.send_event("call.answered", state="answered")
            await post.send_event("call.bridged", state="bridged")
        else:
            await post.send_event("call.hangup", **build_hangup(outcome, code))

    # --- text messages ---

    async def send_message(self, body: Mapping[str, object]) -> JsonBody:
        from_number, to_number = str(body["from"]), str(body["to"])
        assert body["use_profile_webhooks"] is False
        is_sender_id = body.get("messaging_profile_id") == self.profile_id and not to_number.startswith("+1")
        if from_number not in self.numbers and not is_sender_id:
            raise create_refusal(
                400, "40305", "Invalid 'from' address", "The 'from' address is not one of the profile's."
            )
        if to_number.endswith("82"):
            raise create_refusal(400, "40310", "Invalid 'to' address", "The 'to' address is not valid.")
        if to_number.endswith("83"):
            raise create_refusal(
                400, "40300", "Blocked due to STOP message", "Messages cannot be sent due to an existing block rule."
            )
        text_id = str(uuid4())
        self.texts[text_id] = {"to": [{"phone_number": to_number, "status": "sent"}], "errors": []}
        order = OutboundTextMessage(
            "", from_number, to_number, str(body["text"]), CallbackUrls(str(body["webhook_url"]))
        )
        self.spawn(texts.deliver_text(self.post(CallRecord("outgoing", "", "", "", "")), order, text_id))
        return {
            "data": {"id": text_id, "record_type": "message", "to": [{"phone_number": to_number, "status": "queued"}]}
        }

    # --- account ---

    async def update_application(self, body: Mapping[str, object]) -> JsonBody:
        assert body["application_name"]
        self.application.update(body)
        return {"data": self.application}

    async def update_profile(self, body: Mapping[str, object]) -> JsonBody:
        self.profile.update(body)
        return {"data": self.profile}

    async def create_credential(self, body: Mapping[str, object]) -> JsonBody:
        assert body["connection_id"] == self.browser_connection_id
        credential: JsonBody = {
            "id": str(uuid4()),
            "record_type": "credential",
            "sip_username": f"gencred{uuid4().hex}",
            **body,
        }
        self.credentials[str(credential["id"])] = credential
        return {"data": credential}

    async def list_credentials(self, query: Mapping[str, str]) -> JsonBody:
        assert query["filter[resource_id]"] == f"connection:{self.browser_connection_id}"
        # The name is a search term, as for other resources.
        named = [one for one in self.credentials.values() if query["filter[name]"] in str(one["name"])]
        return {"data": named, "meta": {"page_number": 1, "total_pages": 1}}

    async def update_credential(self, credential_id: str, body: Mapping[str, object]) -> JsonBody:
        """An expired credential can only be deleted."""
        credential = self.credentials[credential_id]
        if credential.get("expired"):
            raise create_refusal(422, "10015", "can't update credentials in expired status")
        credential.update(body)
        return {"data": credential}

    async def delete_credential(self, credential_id: str) -> JsonBody:
        return {"data": self.credentials.pop(credential_id)}

    async def list_recordings(self, query: Mapping[str, str]) -> JsonBody:
        leg_id = query["filter[call_leg_id]"]
        recordings = (
            [{"id": str(uuid4()), "call_leg_id": leg_id, "download_urls": {"wav": self.storage_url(leg_id)}}]
            if leg_id in (*self.recordings, *self.redirects)
            else []
        )
        return {"data": recordings, "meta": {"page_number": 1, "total_pages": 1}}
