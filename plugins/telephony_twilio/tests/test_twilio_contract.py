"""The contract of a carrier, for Twilio, against a server written from its published description."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk import CallbackRequest, CallbackUrls, Frame, OutboundCall, OutboundTextMessage
from switchboard.plugin_sdk.json_media import derive_stream_token
from switchboard.plugin_sdk.testing import MEDIA_URL, CarrierSamples, MovedFiles, TelephonyContract
from switchboard_telephony_twilio.provider import TwilioTelephony
from switchboard_telephony_twilio.settings import TwilioSettings

from tests.carriers.twilio.server import TwilioServer, new_sid
from tests.carriers.twilio.wire import compute_signature
from tests.carriers.vendor import OURS

pytest_plugins = ["tests.carriers.twilio.fixtures"]

CALLBACKS = CallbackUrls("https://127.0.0.1:9/carriers/events")


class TestTwilio(TelephonyContract):
    @pytest.fixture
    def provider(self, twilio: TwilioServer) -> TwilioTelephony:
        token = SecretStr(twilio.auth_token)
        return TwilioTelephony(
            TwilioSettings(account_sid=twilio.account_sid, auth_token=token, base_url=HttpUrl(twilio.address))
        )

    @pytest.fixture
    def move_files(self, twilio: TwilioServer) -> Callable[[str], MovedFiles]:
        def move(address: str) -> MovedFiles:
            sid = new_sid("RE")
            twilio.redirects[sid] = address
            account = f"https://api.twilio.com/2010-04-01/Accounts/{twilio.account_sid}"
            return MovedFiles(f"{account}/Messages/{new_sid('MM')}/Media/{sid}", sid)

        return move

    @pytest.fixture
    def outbound_call(self) -> OutboundCall:
        return OutboundCall("a-call-of-ours", OURS, "+15550100021", MEDIA_URL, CALLBACKS)

    @pytest.fixture
    def outbound_text_message(self) -> OutboundTextMessage:
        return OutboundTextMessage("a-text-of-ours", OURS, "+15550100001", "Hello", CALLBACKS)

    @pytest.fixture
    def samples(self, twilio: TwilioServer) -> CarrierSamples:
        url = "https://voice.example/carriers/twilio/org/events/call"
        form = {
            "CallSid": new_sid("CA"),
            "From": "+15550100001",
            "To": OURS,
            "CallStatus": "ringing",
            "FromCity": "",
            "ToZip": "10001",
        }
        headers = {"x-twilio-signature": compute_signature(twilio.auth_token, url, form)}
        stream = new_sid("MZ")

        def message(event: str, **fields: object) -> str:
            return json.dumps({"event": event, "sequenceNumber": "2", "streamSid": stream, **fields})

        start = {
            "accountSid": twilio.account_sid, "streamSid": stream, "callSid": new_sid("CA"), "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
            "customParameters": {"token": derive_stream_token(twilio.auth_token, MEDIA_URL)},
        }  # fmt: skip
        return CarrierSamples(
            incoming_call=CallbackRequest("POST", url, "call", headers, urlencode(form).encode()),
            media_started=message("start", start=start),
            digit=message("dtmf", dtmf={"track": "inbound_track", "digit": "5"}),
            media_stopped=message("stop", stop={"accountSid": twilio.account_sid, "callSid": new_sid("CA")}),
            media=lambda audio: message(
                "media",
                media={"track": "inbound", "chunk": "1", "timestamp": "5", "payload": b64encode(audio).decode()},
            ),
            mark=lambda name: message("mark", mark={"name": name}),
            read_audio=_audio_of,
            unknown_call=new_sid("CA"),
            available_number="+12125550103",
            taken_number="+12125550199",
        )


def _audio_of(message: Frame) -> bytes:
    event = json.loads(message)
    assert event["streamSid"]
    return b64decode(event["media"]["payload"])
