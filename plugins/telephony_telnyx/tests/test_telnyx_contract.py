"""The contract of a carrier, for Telnyx, against a server written from its published description."""

import itertools
import json
from base64 import b64decode, b64encode
from collections.abc import Callable

import pytest
from switchboard.plugin_sdk import CallbackRequest, CallbackUrls, Frame, OutboundCall, OutboundTextMessage
from switchboard.plugin_sdk.testing import MEDIA_URL, CarrierSamples, MovedFiles, TelephonyContract
from switchboard_telephony_telnyx.provider import TelnyxTelephony
from switchboard_telephony_telnyx.settings import TelnyxSettings
from switchboard_telephony_telnyx.state import CallState, digest_media_url, write_state

from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.telnyx.wire import CallRecord, encode_webhook, sign_headers
from tests.carriers.vendor import OURS

pytest_plugins = ["tests.carriers.telnyx.fixtures"]

CALLBACKS = CallbackUrls("https://127.0.0.1:9/carriers/events")
URL = "https://voice.example/carriers/telnyx/org/events"


class TestTelnyx(TelephonyContract):
    @pytest.fixture
    def provider(self, telnyx: TelnyxServer) -> TelnyxTelephony:
        return TelnyxTelephony(TelnyxSettings.model_validate(telnyx.settings))

    @pytest.fixture
    def move_files(self, telnyx: TelnyxServer) -> Callable[[str], MovedFiles]:
        def move(address: str) -> MovedFiles:
            telnyx.redirects["moved"] = address
            return MovedFiles(telnyx.storage_url("moved"), "moved")

        return move

    @pytest.fixture
    def outbound_call(self) -> OutboundCall:
        return OutboundCall("a-call-of-ours", OURS, "+15550100021", MEDIA_URL, CALLBACKS)

    @pytest.fixture
    def outbound_text_message(self) -> OutboundTextMessage:
        return OutboundTextMessage("a-text-of-ours", OURS, "+15550100001", "Hello", CALLBACKS)

    @pytest.fixture
    async def samples(self, telnyx: TelnyxServer) -> CarrierSamples:
        incoming = CallRecord("incoming", "+15550100001", OURS, telnyx.connection_id, URL)
        telnyx.over.add(incoming.id)  # the caller has hung up before the instruction arrives
        body = encode_webhook("call.initiated", incoming.payload(direction="incoming", state="parked"))
        headers = {name.lower(): value for name, value in sign_headers(telnyx.key, body).items()}
        chunks = itertools.count(1)

        def message(event: str, **fields: object) -> str:
            return json.dumps({"event": event, "sequence_number": "2", "stream_id": "32DE0DEA", **fields})

        def media(audio: bytes) -> str:
            chunk = {
                "track": "inbound",
                "chunk": str(next(chunks)),
                "timestamp": "5",
                "payload": b64encode(audio).decode(),
            }
            return message("media", media=chunk)

        start = {
            "user_id": "u",
            "call_control_id": incoming.id,
            "call_session_id": "s",
            "from": "+15550100001",
            "to": OURS,
            "tags": [],
            "client_state": write_state(telnyx.api_key, CallState(media=digest_media_url(MEDIA_URL))),
            "media_format": {"encoding": "PCMU", "sample_rate": 8000, "channels": 1},
        }
        return CarrierSamples(
            incoming_call=CallbackRequest("POST", URL, "", headers, body),
            media_started=message("start", start=start),
            digit=message("dtmf", occurred_at="2025-06-05T08:54:19.698408Z", dtmf={"digit": "5"}),
            media_stopped=message("stop", stop={"user_id": "u", "call_control_id": incoming.id}),
            media=media,
            mark=lambda name: message("mark", mark={"name": name}),
            read_audio=_audio_of,
            unknown_call="v3:nobody",
            available_number="+12125550103",
            taken_number="+12125550199",
        )


def _audio_of(message: Frame) -> bytes:
    return b64decode(json.loads(message)["media"]["payload"])
