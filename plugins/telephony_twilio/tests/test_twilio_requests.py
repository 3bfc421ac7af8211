"""Requests and markup that the plugin sends, retries only where nothing can happen twice, and Twilio's own errors."""

from dataclasses import replace

import pytest
from pydantic import HttpUrl, SecretStr, ValidationError
from switchboard.plugin_sdk import (
    ConnectMedia,
    ForwardCall,
    IncomingCall,
    OutcomeUnknown,
    ProviderError,
    RejectCall,
    UnsubscribedRecipient,
    WarmTransfer,
)
from switchboard.plugin_sdk.json_media import derive_stream_token
from switchboard_telephony_twilio.provider import TwilioTelephony
from switchboard_telephony_twilio.settings import TwilioSettings

from tests.carriers.twilio.samples import CALL, CALLBACKS, MEDIA, SID, TEXT
from tests.carriers.twilio.server import TwilioServer
from tests.carriers.vendor import BROKEN, GARBLED, NEVER, OURS

pytest_plugins = ["tests.carriers.twilio.fixtures"]
pytestmark = pytest.mark.usefixtures("short_pauses")


async def test_a_dial_request_has_all_fields(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    sid = await carrier.place_call(CALL)
    assert sid in twilio.legs
    ((method, path, form),) = twilio.requests
    assert (method, path) == ("POST", f"/2010-04-01/Accounts/{twilio.account_sid}/Calls.json")
    fields = dict(form)
    twiml = fields.pop("Twiml")
    assert twiml == (
        '<?xml version="1.0" encoding="UTF-8"?><Response><Connect>'
        f'<Stream statusCallback="{CALLBACKS.events}/stream" url="{MEDIA}">'
        f'<Parameter name="token" value="{derive_stream_token(twilio.auth_token, MEDIA)}" />'
        "</Stream></Connect></Response>"
    )
    events = CALLBACKS.events
    assert fields == {
        "To": "+15550100021",
        "From": OURS,
        "Timeout": "25",
        "TimeLimit": "600",
        "MachineDetection": "Enable",
        "AsyncAmd": "true",
        "AsyncAmdStatusCallback": f"{events}/machine",
        "AsyncAmdStatusCallbackMethod": "POST",
        "StatusCallback": f"{events}/status",
        "StatusCallbackMethod": "POST",
        "StatusCallbackEvent": "completed",
    }
    assert [value for name, value in form if name == "StatusCallbackEvent"] == [
        "initiated",
        "ringing",
        "answered",
        "completed",
    ]


async def test_machine_detection_is_not_asked_for_where_nobody_needs_it(
    carrier: TwilioTelephony, twilio: TwilioServer
) -> None:
    await carrier.place_call(replace(CALL, detect_machine=False))
    assert not {"MachineDetection", "AsyncAmd"} & dict(twilio.requests[0][2]).keys()


async def test_instructions_are_markup(carrier: TwilioTelephony) -> None:
    call = IncomingCall(SID, "+15550100001", OURS)
    forwarded = await carrier.instruct(call, ForwardCall("+15550100002", OURS), CALLBACKS)
    assert (
        b'<Dial answerOnBridge="true" callerId="+12125550100" timeout="30"><Number>+15550100002</Number></Dial>'
        in forwarded.body
    )
    rung = await carrier.instruct(call, ForwardCall("client:reception", "+15550100001"), CALLBACKS)
    assert b'callerId="+15550100001" timeout="30"><Client><Identity>reception</Identity></Client></Dial>' in rung.body
    assert forwarded.content_type.startswith("text/xml")
    assert b'<Reject reason="busy" />' in (await carrier.instruct(call, RejectCall("busy"), CALLBACKS)).body
    recording = TwilioTelephony(carrier.settings.model_copy(update={"record_calls": True}))
    connected = (await recording.instruct(call, ConnectMedia(MEDIA), CALLBACKS)).body
    assert connected.index(f'recordingStatusCallback="{CALLBACKS.events}/recording"'.encode()) < connected.index(
        b"<Connect>"
    )


@pytest.mark.parametrize(
    ("language", "spoken"),
    [("en-GB", "en-GB"), ("de", "de-DE"), ("nn-NO", "nb-NO"), ("mul", None),
     ("cmn-CN", "cmn-CN"), ("yue", "yue-HK"), ("arb", "arb"), ("tl-PH", "fil-PH"), ("iw-IL", "he-IL"),],
)  # fmt: skip
async def test_a_target_hears_the_introduction_in_a_supported_language(
    carrier: TwilioTelephony, twilio: TwilioServer, language: str, spoken: str | None
) -> None:
    transfer = WarmTransfer("+15550100021", OURS, "Ann & Bob wait.", "Press one.", language)
    await carrier.start_warm_transfer(SID, transfer, CALLBACKS)
    twiml = dict(twilio.requests[-1][2])["Twiml"]
    attribute = "" if spoken is None else f' language="{spoken}"'
    question = (
        f'<Gather action="{CALLBACKS.events}/introduced" finishOnKey="" input="dtmf" method="POST" numDigits="1" '
        f'timeout="8"><Say{attribute}>Ann &amp; Bob wait. Press one.</Say></Gather>'
    )
    assert f"<Response>{question * 2}<Hangup /></Response>" in twiml


async def test_a_failed_call_is_not_repeated_but_may_fail_over(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    twilio.failures["POST", "Calls"] = [500]
    with pytest.raises(ProviderError) as failure:
        await carrier.place_call(CALL)
    assert (failure.value.code, failure.value.retryable, isinstance(failure.value, OutcomeUnknown)) == (
        "20500",
        True,
        False,
    )
    assert len(twilio.requests) == 1


@pytest.mark.parametrize("failure", [BROKEN, NEVER, GARBLED])
@pytest.mark.parametrize("collection", ["Calls", "Messages"])
async def test_requests_with_unknown_outcome_are_not_repeated(
    carrier: TwilioTelephony, twilio: TwilioServer, collection: str, failure: int
) -> None:
    twilio.failures["POST", collection] = [failure]
    with pytest.raises(OutcomeUnknown):
        await (carrier.place_call(CALL) if collection == "Calls" else carrier.send_text_message(TEXT))
    assert len(twilio.requests) == 1


async def test_rate_limited_requests_are_repeated_after_a_pause(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    twilio.failures["POST", "Calls"] = [429, 429]
    assert await carrier.place_call(CALL) in twilio.legs
    assert (len(twilio.requests), len(twilio.legs)) == (3, 1)
    twilio.failures["POST", "Messages"] = [429] * 3
    with pytest.raises(ProviderError) as refusal:
        await carrier.send_text_message(TEXT)
    assert (refusal.value.code, refusal.value.retryable) == ("20429", True)


@pytest.mark.parametrize("failure", [500, 503, BROKEN])
async def test_idempotent_requests_are_repeated(carrier: TwilioTelephony, twilio: TwilioServer, failure: int) -> None:
    sid = await carrier.place_call(CALL)
    twilio.failures["POST", sid] = [failure]
    await carrier.hang_up(sid)
    assert [path.rpartition("/")[2] for _, path, _ in twilio.requests] == ["Calls.json", f"{sid}.json", f"{sid}.json"]


async def test_an_unreachable_twilio_has_placed_no_call(twilio: TwilioServer) -> None:
    settings = TwilioSettings(
        account_sid=twilio.account_sid, auth_token=SecretStr("x"), base_url=HttpUrl("http://127.0.0.1:9")
    )
    unreachable = TwilioTelephony(settings)
    await unreachable.open()
    with pytest.raises(
        ProviderError, match=r"cannot be reached: nothing listens at 127\.0\.0\.1:9; check the address"
    ) as failure:
        await unreachable.place_call(CALL)
    assert (failure.value.retryable, isinstance(failure.value, OutcomeUnknown)) == (True, False)
    await unreachable.close()


async def test_twilios_errors_keep_their_code_and_message(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    with pytest.raises(ProviderError) as refusal:
        await carrier.place_call(replace(CALL, to_number="+15550100024"))
    assert refusal.value.message == "Twilio: 'To' phone number cannot be reached (error 21214)"
    assert (refusal.value.code, refusal.value.retryable) == ("21214", False)
    with pytest.raises(ProviderError, match="error 21211") as no_number:
        await carrier.place_call(replace(CALL, to_number="+15550100025"))
    assert (no_number.value.code, no_number.value.retryable) == ("invalid_number", False)
    with pytest.raises(UnsubscribedRecipient) as opted_out:
        await carrier.send_text_message(replace(TEXT, to_number="+15550100083"))
    assert opted_out.value.code == "21610"


async def test_account_restrictions_allow_failover(carrier: TwilioTelephony) -> None:
    with pytest.raises(ProviderError, match="not yet verified") as refusal:
        await carrier.place_call(replace(CALL, from_number="+15550100009"))
    assert (refusal.value.code, refusal.value.retryable) == ("21210", True)


async def test_a_number_that_twilio_cannot_reach_allows_failover(carrier: TwilioTelephony) -> None:
    with pytest.raises(ProviderError, match="does not support calling this number") as refusal:
        await carrier.place_call(replace(CALL, to_number="+15550100026"))
    assert (refusal.value.code, refusal.value.retryable) == ("13224", True)


async def test_check_reports_a_wrong_credential(twilio: TwilioServer) -> None:
    settings = TwilioSettings(
        account_sid=twilio.account_sid, auth_token=SecretStr("wrong"), base_url=HttpUrl(twilio.address)
    )
    stranger = TwilioTelephony(settings)
    await stranger.open()
    with pytest.raises(ProviderError, match="Authenticate") as refusal:
        await stranger.check()
    assert (refusal.value.code, refusal.value.retryable) == ("20003", False)
    await stranger.close()


@pytest.mark.parametrize(
    "settings",
    [
        {"account_sid": "AC1"},
        {"api_sid": "SK" + "a" * 32},
        {"application_sid": "x"},
        {"base_url": "ftp://x"},
        {"nonsense": 1},
        {"auth_token": ""},
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TwilioSettings.model_validate({"account_sid": "AC" + "a" * 32, "auth_token": "secret", **settings})
