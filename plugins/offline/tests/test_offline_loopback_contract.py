"""The contract of a carrier, for the loopback carrier."""

import json
from base64 import b64decode, b64encode

import pytest
from pydantic import SecretStr
from switchboard.plugin_sdk import CallbackRequest, Frame
from switchboard.plugin_sdk.testing import CarrierSamples, TelephonyContract
from switchboard_offline.loopback import LoopbackSettings, LoopbackTelephony
from switchboard_offline.loopback.signatures import sign_request

SECRET = "a signing secret of the tests"


class TestLoopback(TelephonyContract):
    @pytest.fixture
    def provider(self) -> LoopbackTelephony:
        return LoopbackTelephony(LoopbackSettings(signing_secret=SecretStr(SECRET)))

    @pytest.fixture
    def samples(self) -> CarrierSamples:
        url = "https://voice.example/carriers/loopback/org/events/call"
        body = json.dumps(
            {
                "type": "incoming",
                "carrier_call_id": "lb-1-aa",
                "from_number": "+15550100001",
                "to_number": "+12125550100",
            }
        ).encode()
        return CarrierSamples(
            incoming_call=CallbackRequest(
                "POST", url, "call", {"x-loopback-signature": sign_request(SECRET, url, body)}, body
            ),
            media_started=(
                '{"event":"start","start":'
                '{"call_id":"lb-1-aa","stream_id":"ls-1","encoding":"mulaw","sample_rate":8000}}'
            ),
            digit='{"event":"dtmf","dtmf":{"digit":"5"}}',
            media_stopped='{"event":"stop"}',
            media=lambda audio: json.dumps({"event": "media", "media": {"payload": b64encode(audio).decode()}}),
            mark=lambda name: json.dumps({"event": "mark", "mark": {"name": name}}),
            read_audio=_audio_of,
            unknown_call="lb-9-" + "0" * 32,
            available_number="+12125550103",
            taken_number="+12125550199",
        )


def _audio_of(message: Frame) -> bytes:
    return b64decode(json.loads(message)["media"]["payload"])
