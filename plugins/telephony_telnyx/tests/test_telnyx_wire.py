"""What the plugin sends and makes of the answers: retries only where nothing can happen twice, Telnyx's own errors, numbers, recordings, tokens."""

import asyncio
import dataclasses
from base64 import b64encode
from typing import Any

import pytest
from pydantic import ValidationError
from switchboard.plugin_sdk import (
    BrowserCall,
    CallbackUrls,
    CallEnded,
    CarrierRequest,
    ConnectMedia,
    ForwardCall,
    IncomingCall,
    OutboundCall,
    OutboundTextMessage,
    OutcomeUnknown,
    ProviderError,
    RejectCall,
    TransferTargetReady,
    UnsubscribedRecipient,
    WarmTransfer,
    retries,
)
from switchboard_telephony_telnyx import stock
from switchboard_telephony_telnyx.provider import TelnyxTelephony
from switchboard_telephony_telnyx.settings import TelnyxSettings
from switchboard_telephony_telnyx.state import CallState, digest_media_url, read_state

from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.telnyx.wire import CallRecord, signed_headers, webhook
from tests.carriers.vendor import BROKEN, GARBLED, NEVER, OURS, JsonBody

pytest_plugins = ["tests.carriers.telnyx.fixtures"]

REFERENCE = "01a1fed0-0000-7000-8000-000000000001"
CALLBACKS = CallbackUrls(f"https://voice.example/carriers/telnyx/org/calls/{REFERENCE}")
EVENTS = CallbackUrls("https://voice.example/carriers/telnyx/org/events")
MEDIA = "wss://voice.example/media/token"
CALL = OutboundCall(REFERENCE, OURS, "+15550100021", MEDIA, CALLBACKS, ring_seconds=25, max_duration_seconds=600)
TEXT = OutboundTextMessage("text", OURS, "+15550100001", "Hello", CALLBACKS)
WHY = "Ann wants a table."
ID, LEG, TEXT_ID = "v3:call", "a-leg", "a-text"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(retries, "ALL_SECONDS", 1.0)
    monkeypatch.setattr(stock, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(stock, "ARRIVAL_SECONDS", 0.3)


def announced(telnyx: TelnyxServer) -> tuple[CallRecord, IncomingCall]:
    """A call that has come in at Telnyx, and waits."""
    record = CallRecord("incoming", "+15550100001", OURS, telnyx.connection_id, EVENTS.events)
    telnyx.hold(record)
    return record, IncomingCall(record.id, record.from_number, record.to_number)


# --- what is sent ---


async def test_a_call_is_ordered_whole(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    call_id = await carrier.place_call(CALL)
    assert call_id in telnyx.legs
    ((method, path, sent),) = telnyx.requests
    assert (method, path) == ("POST", "/v2/calls")
    assert read_state(telnyx.api_key, str(sent.pop("client_state"))) == CallState(
        reference=REFERENCE, media=digest_media_url(MEDIA)
    )
    assert sent.pop("command_id")
    assert sent == {
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


async def test_limits_that_telnyx_does_not_take_are_widened(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    await carrier.place_call(dataclasses.replace(CALL, ring_seconds=1, max_duration_seconds=10, detect_machine=False))
    sent = telnyx.requests[0][2]
    assert (sent["timeout_secs"], sent["time_limit_secs"], "answering_machine_detection" in sent) == (5, 30, False)


async def test_instructions_are_commands_that_hold_once(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    record, call = announced(telnyx)
    recording = TelnyxTelephony(carrier.settings.model_copy(update={"record_calls": True}))
    await recording.open()
    for _ in range(2):
        await recording.instruct(call, ConnectMedia(MEDIA), EVENTS)
    await recording.close()
    (first, second) = [sent for _, path, sent in telnyx.requests if path.endswith("/actions/answer")]
    assert first == second
    assert (first["stream_url"], first["record"], first["record_channels"], first["record_format"]) == (
        MEDIA,
        "record-from-answer",
        "dual",
        "wav",
    )
    assert read_state(telnyx.api_key, record.client_state) == CallState(
        call_id=record.id, media=digest_media_url(MEDIA)
    )
    _, call = announced(telnyx)
    await carrier.instruct(call, RejectCall("busy"), EVENTS)
    assert telnyx.requests[-1][2]["cause"] == "USER_BUSY"
    await carrier.instruct(BrowserCall(call.carrier_call_id, "", "", identity="x"), RejectCall(), EVENTS)
    assert telnyx.requests[-1][1].endswith("/actions/hangup")


async def test_a_forwarded_call_is_answered_and_then_transferred_once(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    record, call = announced(telnyx)
    await carrier.instruct(call, ForwardCall("+15550100002", OURS), EVENTS)
    told_twice = signed(telnyx, "call.answered", record.payload())
    for _ in range(2):
        assert (await carrier.receive(told_twice)).events == ()
    assert [path.rpartition("/")[2] for _, path, _ in telnyx.requests] == ["answer", "transfer", "transfer"]
    sent = telnyx.requests[-1][2]
    assert (sent["to"], sent["from"]) == ("+15550100002", OURS)
    assert record.leg_b is not None
    assert (await carrier.receive(signed(telnyx, "call.answered", record.leg_b.payload()))).events == ()
    assert (
        await carrier.receive(signed(telnyx, "call.hangup", record.leg_b.payload(hangup_cause="user_busy")))
    ).events == ()
    assert telnyx.requests[-1][1] == f"/v2/calls/{record.id}/actions/hangup", "the caller is not left in silence"


@pytest.mark.parametrize(
    ("language", "spoken"), [("en-GB", "en-GB"), ("de", "de-DE"), ("nn-NO", "nb-NO"), ("mul", None)]
)
async def test_a_target_is_told_why_in_a_language_they_have(
    carrier: TelnyxTelephony, telnyx: TelnyxServer, language: str, spoken: str | None
) -> None:
    record = await introduced(carrier, telnyx, language)
    await carrier.receive(signed(telnyx, "call.answered", record.payload()))
    assert (telnyx.requests[-1][2]["payload"], telnyx.requests[-1][2].get("language")) == (WHY, spoken)


@pytest.mark.parametrize(("status", "ready"), [("completed", True), ("call_hangup", False), ("cancelled_amd", False)])
async def test_a_target_is_ready_who_has_heard_all(
    carrier: TelnyxTelephony, telnyx: TelnyxServer, status: str, ready: bool
) -> None:
    record = await introduced(carrier, telnyx, "en-US")
    told = await carrier.receive(signed(telnyx, "call.speak.ended", record.payload(status=status)))
    assert told.events == ((TransferTargetReady(record.id),) if ready else ())


async def introduced(carrier: TelnyxTelephony, telnyx: TelnyxServer, language: str) -> CallRecord:
    """Somebody who is rung for a warm transfer."""
    return telnyx.legs[
        await carrier.start_warm_transfer(ID, WarmTransfer("+15550100001", OURS, WHY, language), CALLBACKS)
    ].post.record


async def test_keys_are_pressed_and_transfers_take_the_call_off_the_stream(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    call_id = await carrier.place_call(CALL)
    record = telnyx.legs[call_id].post.record
    await carrier.send_digits(call_id, "1w#")
    await carrier.send_digits(call_id, "1w#")
    first, second = [sent for _, path, sent in telnyx.requests if path.endswith("send_dtmf")]
    assert first["digits"] == "1w#"
    assert first["command_id"] != second["command_id"], "the second time, it is meant"
    await carrier.transfer(call_id, to_number="+15550100001", caller_id=OURS, callbacks=EVENTS)
    assert [path.rpartition("/")[2] for _, path, _ in telnyx.requests[-2:]] == ["transfer", "streaming_stop"]
    assert (await carrier.receive(signed(telnyx, "streaming.failed", record.payload()))).events == ()
    assert telnyx.requests[-1][1].endswith("streaming_stop"), "whoever has left us is not hung up"


# --- retries ---


async def test_a_call_that_telnyx_failed_to_place_is_not_asked_for_again_but_may_be_by_others(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    telnyx.failures["POST", "calls"] = [500]
    with pytest.raises(ProviderError) as failure:
        await carrier.place_call(CALL)
    assert (failure.value.code, failure.value.retryable, isinstance(failure.value, OutcomeUnknown)) == (
        "10007",
        True,
        False,
    )
    assert len(telnyx.requests) == 1


@pytest.mark.parametrize("failure", [BROKEN, NEVER, GARBLED])
@pytest.mark.parametrize("collection", ["calls", "messages"])
async def test_what_may_have_been_done_is_never_asked_for_again(
    carrier: TelnyxTelephony, telnyx: TelnyxServer, collection: str, failure: int
) -> None:
    telnyx.failures["POST", collection] = [failure]
    with pytest.raises(OutcomeUnknown):
        await (carrier.place_call(CALL) if collection == "calls" else carrier.send_text_message(TEXT))
    assert len(telnyx.requests) == 1


async def test_too_many_requests_are_sent_again_a_little_later(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    telnyx.failures["POST", "calls"] = [429, 429]
    assert await carrier.place_call(CALL) in telnyx.legs
    assert (len(telnyx.requests), len(telnyx.legs)) == (3, 1)
    telnyx.failures["POST", "messages"] = [429] * 3
    with pytest.raises(ProviderError) as refusal:
        await carrier.send_text_message(TEXT)
    assert (refusal.value.code, refusal.value.retryable) == ("10011", True)


@pytest.mark.parametrize("failure", [500, 503, BROKEN])
async def test_commands_are_sent_again_and_obeyed_once(
    carrier: TelnyxTelephony, telnyx: TelnyxServer, failure: int
) -> None:
    call_id = await carrier.place_call(CALL)
    telnyx.failures["POST", "send_dtmf"] = [failure]
    await carrier.send_digits(call_id, "5")
    commands = [sent["command_id"] for _, path, sent in telnyx.requests if path.endswith("send_dtmf")]
    assert len(commands) == 2
    assert len(set(commands)) == 1


async def test_a_telnyx_that_cannot_be_reached_has_placed_nothing(telnyx: TelnyxServer) -> None:
    away = TelnyxTelephony(TelnyxSettings.model_validate({**telnyx.settings, "base_url": "http://127.0.0.1:9"}))
    await away.open()
    with pytest.raises(ProviderError, match="cannot be reached") as failure:
        await away.place_call(CALL)
    assert (failure.value.retryable, isinstance(failure.value, OutcomeUnknown)) == (True, False)
    await away.close()


async def test_a_call_is_found_by_its_reference(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    telnyx.failures["POST", "calls"] = [BROKEN]
    with pytest.raises(OutcomeUnknown):
        await carrier.place_call(CALL)
    await carrier.place_call(dataclasses.replace(CALL, reference="another"))
    found = await carrier.find_call(REFERENCE)
    assert found in telnyx.legs
    assert found != await carrier.find_call("another")
    assert await carrier.find_call("a third") is None


# --- errors ---


async def test_telnyx_own_code_and_words_are_told(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    with pytest.raises(ProviderError) as refusal:
        await carrier.place_call(dataclasses.replace(CALL, to_number="+15550100024"))
    assert refusal.value.message == "Telnyx: Bad Request: +15550100024 cannot be reached (error 10015)"
    assert (refusal.value.code, refusal.value.retryable) == ("10015", False)
    with pytest.raises(ProviderError, match="error 10016") as no_number:
        await carrier.place_call(dataclasses.replace(CALL, to_number="+15550100025"))
    assert (no_number.value.code, no_number.value.retryable) == ("invalid_number", False)
    with pytest.raises(UnsubscribedRecipient) as opted_out:
        await carrier.send_text_message(dataclasses.replace(TEXT, to_number="+15550100083"))
    assert opted_out.value.code == "40300"


async def test_what_only_this_account_may_not_do_another_carrier_may(carrier: TelnyxTelephony) -> None:
    with pytest.raises(ProviderError, match="not one of the account's") as refusal:
        await carrier.place_call(dataclasses.replace(CALL, from_number="+15550100009"))
    assert (refusal.value.code, refusal.value.retryable) == ("10010", True)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"api_key": "wrong"}, "Authentication failed"), ({"connection_id": "7"}, "Resource not found")],
)
async def test_settings_that_do_not_work_are_told_by_check(
    telnyx: TelnyxServer, change: dict[str, str], words: str
) -> None:
    stranger = TelnyxTelephony(TelnyxSettings.model_validate({**telnyx.settings, **change}))
    await stranger.open()
    with pytest.raises(ProviderError, match=words) as refusal:
        await stranger.check()
    assert not refusal.value.retryable
    await stranger.close()


async def test_credentials_in_the_environment_are_nobodys(
    telnyx: TelnyxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "CLIENT_ID", "CLIENT_SECRET", "BASE_URL"):
        monkeypatch.setenv(f"TELNYX_{name}", "http://127.0.0.1:9")
    carrier = TelnyxTelephony(TelnyxSettings.model_validate(telnyx.settings))
    await carrier.open()
    await carrier.check()
    await carrier.close()


async def test_check_spends_nothing(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    await carrier.check()
    assert [method for method, _, _ in telnyx.requests] == ["GET"]


@pytest.mark.parametrize(
    "settings",
    [
        {"public_key": "x"}, {"public_key": b64encode(b"x" * 31).decode()}, {"connection_id": "app"}, {"messaging_profile_id": "1"},
        {"credential_connection_id": ""}, {"base_url": "ftp://x"}, {"nonsense": 1}, {"api_key": ""},
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TelnyxSettings.model_validate(
            {"api_key": "KEY", "public_key": b64encode(bytes(32)).decode(), "connection_id": "1", **settings}
        )


def signed(telnyx: TelnyxServer, event_type: str, payload: JsonBody, url: str = CALLBACKS.events) -> CarrierRequest:
    body = webhook(event_type, payload)
    return CarrierRequest(
        "POST", url, "", {name.lower(): value for name, value in signed_headers(telnyx.key, body).items()}, body
    )


async def test_a_call_whose_audio_cannot_be_streamed_fails_and_is_hung_up(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    record, _ = announced(telnyx)
    received = await carrier.receive(
        signed(telnyx, "streaming.failed", record.payload(failure_reason="connection_failed"))
    )
    reason = "Telnyx could not stream the call's audio: it could not connect to the platform"
    assert received.events == (CallEnded(record.id, "failed", error_message=reason, error_code="connection_failed"),)
    assert telnyx.requests[-1][1].endswith("/actions/hangup")


# --- numbers, recordings, tokens ---


async def test_numbers_are_searched_where_they_are(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    (british,) = await carrier.search_numbers(country="GB", area_code="020", limit=1)
    assert british.phone_number.startswith("+4420")
    assert (british.locality, british.sms, british.mms, british.monthly_cost, british.setup_cost) == (
        "London",
        True,
        False,
        1.15,
        0.0,
    )
    assert telnyx.requests[0][2]["filter[national_destination_code]"] == "20"
    assert await carrier.search_numbers(country="FR", area_code=None, limit=5) == []
    asked = [
        sent["filter[phone_number_type]"] for _, _, sent in telnyx.requests if sent["filter[country_code]"] == "FR"
    ]
    assert asked == ["local", "mobile", "national", "toll_free"]


async def test_a_number_of_the_account_is_directed_to_us_and_not_bought(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    bought = await carrier.buy_number(OURS, EVENTS)
    number = telnyx.numbers[OURS]
    assert (bought.carrier_number_id, bought.sms, telnyx.purchases) == (number.id, True, 0)
    assert (number.connection_id, number.messaging_profile_id) == (telnyx.connection_id, telnyx.profile_id)
    assert (telnyx.application["webhook_event_url"], telnyx.application["webhook_api_version"]) == (EVENTS.events, "2")
    assert telnyx.profile["webhook_url"] == EVENTS.events
    changes = [path for method, path, _ in telnyx.requests if method == "PATCH"]
    await carrier.buy_number(OURS, EVENTS)
    again = [path for method, path, _ in telnyx.requests if method == "PATCH"][len(changes) :]
    assert [path for path in again if "phone_numbers" not in path] == [], (
        "an account that tells us already is left alone"
    )


async def test_a_number_without_texts_needs_no_messaging_profile(telnyx: TelnyxServer) -> None:
    settings = TelnyxSettings.model_validate({**telnyx.settings, "messaging_profile_id": None})
    voice = TelnyxTelephony(settings)
    await voice.open()
    assert not (await voice.buy_number(OURS, EVENTS)).sms
    assert telnyx.profile["webhook_url"] is None
    await voice.close()


async def test_a_purchase_whose_answer_was_lost_is_found_again(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    telnyx.failures["POST", "number_orders"] = [BROKEN]
    with pytest.raises(ProviderError) as lost:
        await carrier.buy_number("+12125550103", EVENTS)
    assert lost.value.retryable
    bought = await carrier.buy_number("+12125550103", EVENTS)
    assert (bought.phone_number, telnyx.purchases) == ("+12125550103", 1)


async def test_an_order_that_takes_long_is_waited_for_and_not_given_twice(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    telnyx.looks_until_active = 3
    assert (await carrier.buy_number("+12125550103", EVENTS)).phone_number == "+12125550103"
    telnyx.looks_until_active = 10_000
    for _ in range(2):
        with pytest.raises(ProviderError, match="not delivered it yet") as pending:
            await carrier.buy_number("+12125550104", EVENTS)
        assert pending.value.retryable
    assert telnyx.purchases == 2


async def test_a_recording_is_streamed_in_parts_from_where_it_is_kept(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    telnyx.recordings[LEG] = bytes(range(256)) * 1000
    whole = await carrier.fetch_recording(LEG, None)
    assert (whole.status, whole.content_type, whole.content_length) == (200, "audio/x-wav", 256_000)
    assert b"".join([chunk async for chunk in whole.chunks]) == telnyx.recordings[LEG]
    part = await carrier.fetch_recording(LEG, "bytes=256-511")
    assert (part.status, part.content_range, part.content_length) == (206, "bytes 256-511/256000", 256)
    assert b"".join([chunk async for chunk in part.chunks]) == bytes(range(256))
    with pytest.raises(ProviderError, match="does not have the recording") as gone:
        await carrier.fetch_recording("another", None)
    assert not gone.value.retryable


@pytest.mark.parametrize("platform", ["web", "ios", "android"])
async def test_a_browser_token_is_one_of_telnyx(carrier: TelnyxTelephony, telnyx: TelnyxServer, platform: Any) -> None:
    token = await carrier.create_browser_token(identity="key_1", platform=platform)
    assert token.token.count(".") == 2
    assert (token.identity, token.expires_in_seconds, dict(token.connection)) == (
        "key_1",
        3600,
        {"sdk": "telnyx-webrtc"},
    )
    (credential,) = telnyx.credentials.values()
    assert (credential["name"], credential["connection_id"]) == ("key_1", telnyx.browser_connection_id)
    assert credential["expires_at"]


async def test_a_token_needs_its_settings(telnyx: TelnyxServer) -> None:
    settings = TelnyxSettings.model_validate({**telnyx.settings, "credential_connection_id": None})
    with pytest.raises(ProviderError, match="credential_connection_id") as refusal:
        await TelnyxTelephony(settings).create_browser_token(identity="x", platform="web")
    assert not refusal.value.retryable


async def test_many_calls_share_one_client(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    orders = [dataclasses.replace(CALL, reference=str(number)) for number in range(20)]
    assert len(set(await asyncio.gather(*(carrier.place_call(order) for order in orders)))) == 20
