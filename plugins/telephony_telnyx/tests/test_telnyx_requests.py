"""Requests that the plugin sends for calls, transfers, and pressed keys."""

import dataclasses

import pytest
from switchboard.plugin_sdk import (
    BrowserCall,
    ConnectMedia,
    ForwardCall,
    ProviderError,
    RejectCall,
    TransferTargetReady,
    WarmTransfer,
)
from switchboard_telephony_telnyx.provider import TelnyxTelephony
from switchboard_telephony_telnyx.state import CallState, digest_media_url, read_state

from tests.carriers.telnyx.samples import (
    CALL,
    CALLBACKS,
    EVENTS,
    ID,
    INTRODUCTION,
    MEDIA,
    REFERENCE,
    announce_call,
    sign_webhook,
)
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.telnyx.wire import CallRecord
from tests.carriers.vendor import OURS

pytest_plugins = ["tests.carriers.telnyx.fixtures"]
pytestmark = pytest.mark.usefixtures("short_pauses")


async def test_a_dial_request_has_all_fields(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    call_id = await carrier.place_call(CALL)
    assert call_id in telnyx.legs
    ((method, path, body),) = telnyx.requests
    assert (method, path) == ("POST", "/v2/calls")
    assert read_state(telnyx.api_key, str(body.pop("client_state"))) == CallState(
        reference=REFERENCE, media=digest_media_url(MEDIA)
    )
    assert body.pop("command_id")
    assert body == {
        "connection_id": telnyx.connection_id,
        "to": "+15550100021",
        "from": OURS,
        "timeout_secs": 25,
        "time_limit_secs": 600,
        "webhook_url": CALLBACKS.events,
        "stream_url": MEDIA,
        "stream_track": "inbound_track",
        "stream_codec": "PCMU",
        "stream_bidirectional_mode": "rtp",
        "stream_bidirectional_codec": "PCMU",
        "stream_bidirectional_target_legs": "self",
        "send_silence_when_idle": True,
        "preferred_codecs": "PCMU,PCMA",
        "answering_machine_detection": "detect",
    }


async def test_short_limits_are_raised_to_telnyxs_minimum(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    await carrier.place_call(dataclasses.replace(CALL, ring_seconds=1, max_duration_seconds=10, detect_machine=False))
    body = telnyx.requests[0][2]
    assert (body["timeout_secs"], body["time_limit_secs"], "answering_machine_detection" in body) == (5, 30, False)


async def test_the_end_of_a_greeting_is_asked_for_where_a_message_follows(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    await carrier.place_call(dataclasses.replace(CALL, await_greeting_end=True))
    assert telnyx.requests[0][2]["answering_machine_detection"] == "greeting_end"


async def test_instructions_are_idempotent_commands(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    record, call = announce_call(telnyx)
    recording = TelnyxTelephony(carrier.settings.model_copy(update={"record_calls": True}))
    await recording.open()
    for _ in range(2):
        await recording.instruct(call, ConnectMedia(MEDIA), EVENTS)
    await recording.close()
    (first, second) = [body for _, path, body in telnyx.requests if path.endswith("/actions/answer")]
    assert first == second
    assert first["preferred_codecs"] == "PCMU,PCMA"
    assert (first["stream_url"], first["record"], first["record_channels"], first["record_format"]) == (
        MEDIA,
        "record-from-answer",
        "dual",
        "wav",
    )
    assert read_state(telnyx.api_key, record.client_state) == CallState(
        call_id=record.id, media=digest_media_url(MEDIA)
    )
    _, call = announce_call(telnyx)
    await carrier.instruct(call, RejectCall("busy"), EVENTS)
    assert telnyx.requests[-1][2]["cause"] == "USER_BUSY"
    await carrier.instruct(BrowserCall(call.carrier_call_id, "", "", identity="x"), RejectCall(), EVENTS)
    assert telnyx.requests[-1][1].endswith("/actions/hangup")


async def test_a_forwarded_call_is_answered_and_transferred_once(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    record, call = announce_call(telnyx)
    await carrier.instruct(call, ForwardCall("+15550100002", OURS), EVENTS)
    repeated = sign_webhook(telnyx, "call.answered", record.payload())
    for _ in range(2):
        assert (await carrier.receive(repeated)).events == ()
    assert [path.rpartition("/")[2] for _, path, _ in telnyx.requests] == ["answer", "transfer", "transfer"]
    body = telnyx.requests[-1][2]
    assert (body["to"], body["from"]) == ("+15550100002", OURS)
    assert record.leg_b is not None
    assert (await carrier.receive(sign_webhook(telnyx, "call.answered", record.leg_b.payload()))).events == ()
    assert (
        await carrier.receive(sign_webhook(telnyx, "call.hangup", record.leg_b.payload(hangup_cause="user_busy")))
    ).events == ()
    assert telnyx.requests[-1][1] == f"/v2/calls/{record.id}/actions/hangup", "the caller is not left in silence"


@pytest.mark.parametrize(
    ("language", "spoken"),
    [("en-GB", "en-GB"), ("de", "de-DE"), ("nn-NO", "nb-NO"), ("mul", None),
     ("zh-CN", "cmn-CN"), ("yue-HK", "cmn-CN"), ("ar-EG", "arb"), ("fil-PH", None), ("iw-IL", None),],
)  # fmt: skip
async def test_a_target_hears_the_introduction_in_a_supported_language(
    carrier: TelnyxTelephony, telnyx: TelnyxServer, language: str, spoken: str | None
) -> None:
    record = await start_transfer(carrier, telnyx, language)
    await carrier.receive(sign_webhook(telnyx, "call.answered", record.payload()))
    _, path, body = telnyx.requests[-1]
    assert path.endswith("/actions/gather_using_speak")
    assert (body["payload"], body.get("language")) == (f"{INTRODUCTION} Press one.", spoken)
    assert (body["maximum_digits"], body["maximum_tries"], body["timeout_millis"]) == (1, 2, 8000)


async def test_a_target_is_ready_once_it_has_pressed_the_key(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    record = await start_transfer(carrier, telnyx, "en-US")
    webhook = sign_webhook(telnyx, "call.gather.ended", record.payload(status="valid", digits="1"))
    assert (await carrier.receive(webhook)).events == (TransferTargetReady(record.id),)


@pytest.mark.parametrize(("status", "digits"), [("timeout", ""), ("valid", "2"), ("call_hangup", ""), ("invalid", "")])
async def test_a_target_that_does_not_press_the_key_is_hung_up(
    carrier: TelnyxTelephony, telnyx: TelnyxServer, status: str, digits: str
) -> None:
    record = await start_transfer(carrier, telnyx, "en-US")
    webhook = sign_webhook(telnyx, "call.gather.ended", record.payload(status=status, digits=digits))
    assert (await carrier.receive(webhook)).events == ()
    assert telnyx.requests[-1][1] == f"/v2/calls/{record.id}/actions/hangup"


async def start_transfer(carrier: TelnyxTelephony, telnyx: TelnyxServer, language: str) -> CallRecord:
    """Start a warm transfer and return its target's call."""
    return telnyx.legs[
        await carrier.start_warm_transfer(
            ID, WarmTransfer("+15550100001", OURS, INTRODUCTION, "Press one.", language), CALLBACKS
        )
    ].post.record


async def test_a_client_is_rung_at_the_address_of_its_credential(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    call_id = await carrier.place_call(CALL)
    with pytest.raises(ProviderError, match="no token that is valid"):
        await carrier.transfer(call_id, to_number="client:reception", caller_id=OURS, callbacks=EVENTS)
    await carrier.create_browser_token(identity="reception", platform="ios")
    await carrier.transfer(call_id, to_number="client:reception", caller_id=OURS, callbacks=EVENTS)
    (credential,) = telnyx.credentials.values()
    sent = next(body for _, path, body in telnyx.requests if path.endswith("/transfer"))
    assert (sent["to"], sent["from"]) == (f"sip:{credential['sip_username']}@sip.telnyx.com", OURS)
    credential["expires_at"] = "2026-01-01T00:00:00Z"
    with pytest.raises(ProviderError, match="no token that is valid"):
        await carrier.transfer(call_id, to_number="client:reception", caller_id=OURS, callbacks=EVENTS)


async def test_digits_are_sent_and_transfers_stop_the_stream(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    call_id = await carrier.place_call(CALL)
    record = telnyx.legs[call_id].post.record
    await carrier.send_digits(call_id, "1w#")
    await carrier.send_digits(call_id, "1w#")
    first, second = [body for _, path, body in telnyx.requests if path.endswith("send_dtmf")]
    assert first["digits"] == "1w#"
    assert first["command_id"] != second["command_id"], "the second time, it is meant"
    await carrier.transfer(call_id, to_number="+15550100001", caller_id=OURS, callbacks=EVENTS)
    assert [path.rpartition("/")[2] for _, path, _ in telnyx.requests[-2:]] == ["transfer", "streaming_stop"]
    assert (await carrier.receive(sign_webhook(telnyx, "streaming.failed", record.payload()))).events == ()
    assert telnyx.requests[-1][1].endswith("streaming_stop"), "whoever has left us is not hung up"
