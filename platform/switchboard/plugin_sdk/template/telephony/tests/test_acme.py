"""The contract of a carrier, and tests of this plugin's own."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable

import pytest
from acme_server import TAKEN, AcmeCarrier
from acme_vendor import KEY, create_settings
from switchboard.plugin_sdk import CallbackRequest, CallEnded, Frame
from switchboard.plugin_sdk.testing import CarrierSamples, MovedFiles, TelephonyContract
from switchboard_acme.callbacks import SIGNATURE, sign
from switchboard_acme.client import AcmeSettings
from switchboard_acme.provider import AcmeTelephony

URL = "https://voice.example/carriers/acme/organization/events"


def create_callback(**event: object) -> CallbackRequest:
    """Create a callback as Acme signs it."""
    body = json.dumps(event).encode()
    return CallbackRequest("POST", URL, "", {SIGNATURE: sign(KEY, URL, body)}, body)


def create_message(event: str, **fields: object) -> str:
    return json.dumps({"event": event, **fields})


def read_audio(message: Frame) -> bytes:
    return b64decode(json.loads(message)["media"]["payload"])


class TestAcmeTelephony(TelephonyContract):
    @pytest.fixture
    def provider(self, settings: AcmeSettings) -> AcmeTelephony:
        return AcmeTelephony(settings)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AcmeTelephony]:
        return lambda address: AcmeTelephony(create_settings(address))

    @pytest.fixture
    def move_files(self, acme: AcmeCarrier, settings: AcmeSettings) -> Callable[[str], MovedFiles]:
        def move(address: str) -> MovedFiles:
            acme.moved_to = address
            return MovedFiles(media_url=f"{settings.base_url}files/moved")

        return move

    @pytest.fixture
    def samples(self) -> CarrierSamples:
        incoming = {"event": "call.incoming", "id": "call-0", "from": "+15550100001", "to": "+12125550100"}
        return CarrierSamples(
            incoming_call=create_callback(**incoming),
            media_started=create_message("start", start={"call_id": "call-0", "stream_id": "stream-0"}),
            digit=create_message("dtmf", dtmf={"digit": "5"}),
            media_stopped=create_message("stop"),
            media=lambda audio: create_message("media", media={"payload": b64encode(audio).decode()}),
            mark=lambda name: create_message("mark", mark={"name": name}),
            read_audio=read_audio,
            unknown_call="call-unknown",
            available_number="+12125550103",
            taken_number=TAKEN,
        )

    async def test_the_end_of_a_call_is_reported(self, open_provider: AcmeTelephony) -> None:
        ended = create_callback(event="call.ended", id="call-0", outcome="busy", seconds=0)
        assert (await open_provider.receive(ended)).events == (CallEnded("call-0", "busy", duration_seconds=0),)
