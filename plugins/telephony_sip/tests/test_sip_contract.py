"""The contract of a carrier, for SIP, against a gateway and a trunk in this process."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from switchboard.plugin_sdk import CallbackRequest, Frame, IncomingCall
from switchboard.plugin_sdk.testing import CarrierSamples, TelephonyContract
from switchboard_telephony_sip.callbacks import write_callback
from switchboard_telephony_sip.provider import SipTelephony
from switchboard_telephony_sip.settings import SipSettings
from switchboard_telephony_sip.signatures import SIGNATURE_HEADER, sign_message

from tests.carriers.sip.far_end import FarEnd
from tests.carriers.sip.gateway import SECRET, FixedAccounts, build_provider_account, build_settings, run_gateway
from tests.fixtures.free_ports import find_free_port


class TestSip(TelephonyContract):
    @pytest_asyncio.fixture
    async def sip(self) -> AsyncIterator[SipTelephony]:
        control_port, trunk = find_free_port(), FarEnd(find_free_port())
        await trunk.start()
        settings = build_settings(
            control_port, {"name": "office", "hosts": [f"127.0.0.1:{trunk.port}"], "text_messages": True}
        )
        context = FixedAccounts([build_provider_account(settings)])
        async with run_gateway(context, sip_port=find_free_port(), control_port=control_port):
            yield SipTelephony(SipSettings.model_validate(settings))
        await trunk.stop()

    @pytest.fixture
    def provider(self, sip: SipTelephony) -> SipTelephony:
        return sip

    @pytest.fixture
    def samples(self, sip: SipTelephony) -> CarrierSamples:
        url = "https://voice.example/carriers/sip/org/events/call"
        call_id = f"{'0' * 32}@{sip.settings.gateways[0].removeprefix('http://')}"
        body = write_callback(IncomingCall(call_id, "+15550100001", "+12125550100", metadata={"x-customer": "42"}))
        signature = sign_message(SECRET, url, body)
        return CarrierSamples(
            incoming_call=CallbackRequest("POST", url, "call", {SIGNATURE_HEADER.lower(): signature}, body),
            media_started=json.dumps({"event": "start", "start": {"call_id": call_id, "stream_id": "sip-1"}}),
            digit='{"event":"dtmf","dtmf":{"digit":"5"}}',
            media_stopped='{"event":"stop"}',
            media=lambda audio: audio,
            mark=lambda name: json.dumps({"event": "mark", "mark": {"name": name}}),
            read_audio=_read_audio,
            unknown_call=call_id,
            available_number="+12125550103",
        )


def _read_audio(message: Frame) -> bytes:
    assert isinstance(message, bytes)
    return message
