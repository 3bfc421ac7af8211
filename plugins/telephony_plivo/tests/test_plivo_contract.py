"""The contract of a carrier, for Plivo, against a server written from its published description."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from switchboard.plugin_sdk import CallbackRequest, CallbackUrls, Frame, OutboundCall, OutboundTextMessage
from switchboard.plugin_sdk.json_media import derive_stream_token
from switchboard.plugin_sdk.testing import MEDIA_URL, CarrierSamples, MovedFiles, TelephonyContract
from switchboard_telephony_plivo.provider import PlivoTelephony
from switchboard_telephony_plivo.settings import PlivoSettings

from tests.carriers.plivo.server import PlivoServer
from tests.carriers.plivo.wire import sign_form
from tests.carriers.vendor import OURS

pytest_plugins = ["tests.carriers.plivo.fixtures"]

CALLBACKS = CallbackUrls("https://127.0.0.1:9/carriers/events")


class TestPlivo(TelephonyContract):
    @pytest.fixture
    def provider(self, plivo: PlivoServer) -> PlivoTelephony:
        return PlivoTelephony(PlivoSettings.model_validate(plivo.settings))

    @pytest.fixture
    def move_files(self, plivo: PlivoServer) -> Callable[[str], MovedFiles]:
        def move(address: str) -> MovedFiles:
            media_id = str(uuid4())
            plivo.redirects[media_id] = address
            path = f"Account/{plivo.auth_id}/Message/{uuid4()}/Media/{media_id}"
            return MovedFiles(f"https://media.plivo.com/{path}")

        return move

    @pytest.fixture
    def outbound_call(self) -> OutboundCall:
        return OutboundCall("a-call-of-ours", OURS, "+15550100021", MEDIA_URL, CALLBACKS)

    @pytest.fixture
    def outbound_text_message(self) -> OutboundTextMessage:
        return OutboundTextMessage("a-text-of-ours", OURS, "+15550100001", "Hello", CALLBACKS)

    @pytest.fixture
    def samples(self, plivo: PlivoServer) -> CarrierSamples:
        url = "https://voice.example/carriers/plivo/org/events/call"
        form = {
            "CallUUID": str(uuid4()),
            "From": "15550100001",
            "To": OURS.removeprefix("+"),
            "CallStatus": "ringing",
            "Direction": "inbound",
            "Event": "StartApp",
            "ForwardedFrom": "",
            "SessionStart": "2026-11-23 17:06:01.123456",
        }
        stream = str(uuid4())
        headers = f"token={derive_stream_token(plivo.auth_token, MEDIA_URL)}"

        def message(event: str, **fields: object) -> str:
            return json.dumps(
                {"event": event, "sequenceNumber": 2, "streamId": stream, "extra_headers": headers, **fields}
            )

        start = {
            "accountId": plivo.auth_id,
            "streamId": stream,
            "callId": str(uuid4()),
            "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000},
        }
        return CarrierSamples(
            incoming_call=CallbackRequest(
                "POST", url, "call", sign_form(plivo.auth_token, url, form), urlencode(form).encode()
            ),
            media_started=message("start", start=start),
            digit=message("dtmf", dtmf={"track": "inbound", "timestamp": "1200", "digit": "5"}),
            media_stopped=message("stop"),
            media=lambda audio: message(
                "media",
                media={"track": "inbound", "chunk": 1, "timestamp": "20", "payload": b64encode(audio).decode()},
            ),
            mark=lambda name: message("playedStream", name=name),
            read_audio=_read_audio,
            unknown_call=str(uuid4()),
            available_number="+12125550103",
            taken_number="+12125550199",
        )


def _read_audio(message: Frame) -> bytes:
    event = json.loads(message)
    assert (event["event"], event["media"]["contentType"], event["media"]["sampleRate"]) == (
        "playAudio",
        "audio/x-mulaw",
        8000,
    )
    return b64decode(event["media"]["payload"])
