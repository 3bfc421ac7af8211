"""Requests and XML that the plugin sends, retries only where nothing can happen twice, and Plivo's own errors."""

from dataclasses import replace
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from pydantic import ValidationError
from switchboard.plugin_sdk import (
    CallAnswered,
    CallbackRequest,
    ConnectMedia,
    ForwardCall,
    IncomingCall,
    OutcomeUnknown,
    ProviderError,
    RejectCall,
    WarmTransfer,
)
from switchboard.plugin_sdk.json_media import derive_stream_token
from switchboard_telephony_plivo.provider import PlivoTelephony
from switchboard_telephony_plivo.settings import PlivoSettings

from tests.carriers.plivo.samples import CALL, CALL_ID, CALLBACKS, MEDIA, TEXT
from tests.carriers.plivo.server import PlivoServer
from tests.carriers.plivo.wire import sign_form
from tests.carriers.vendor import BROKEN, GARBLED, NEVER, OURS

pytest_plugins = ["tests.carriers.plivo.fixtures"]
pytestmark = pytest.mark.usefixtures("short_pauses")


async def fetch_instructions(carrier: PlivoTelephony, plivo: PlivoServer, url: object) -> ElementTree.Element:
    """Return the instructions at an address that the plugin has given to Plivo."""
    form, path = {"CallUUID": CALL_ID, "Event": "StartApp"}, str(url).removeprefix(f"{CALLBACKS.events}/")
    assert "?" not in path
    received = await carrier.receive(
        CallbackRequest("POST", str(url), path, sign_form(plivo.auth_token, str(url), form), urlencode(form).encode())
    )
    assert received.events == ((CallAnswered(CALL_ID),) if path.startswith("answer/") else ())
    assert received.reply.content_type.startswith("application/xml")
    return ElementTree.fromstring(received.reply.body)  # noqa: S314  our own


async def test_a_dial_request_has_all_fields(carrier: PlivoTelephony, plivo: PlivoServer) -> None:
    call_id = await carrier.place_call(CALL)
    assert call_id in plivo.legs
    ((method, path, sent),) = plivo.requests
    assert (method, path) == ("POST", f"/v1/Account/{plivo.auth_id}/Call/")
    events, given = CALLBACKS.events, dict(sent)
    answer_url = given.pop("answer_url")
    assert given == {
        "to": "15550100021",
        "from": OURS.removeprefix("+"),
        "ring_timeout": 25,
        "time_limit": 600,
        "ring_url": f"{events}/ringing",
        "hangup_url": f"{events}/status",
        "machine_detection": "true",
        "machine_detection_url": f"{events}/machine",
    }
    (stream,) = await fetch_instructions(carrier, plivo, answer_url)
    assert (stream.tag, stream.text) == ("Stream", MEDIA)
    assert stream.attrib == {
        "bidirectional": "true",
        "keepCallAlive": "true",
        "audioTrack": "inbound",
        "contentType": "audio/x-mulaw;rate=8000",
        "statusCallbackUrl": f"{events}/stream",
        "statusCallbackMethod": "POST",
        "extraHeaders": f"token={derive_stream_token(plivo.auth_token, MEDIA)}",
    }


async def test_machine_detection_is_not_asked_for_where_nobody_needs_it(
    carrier: PlivoTelephony, plivo: PlivoServer
) -> None:
    await carrier.place_call(replace(CALL, detect_machine=False))
    assert not [name for name in plivo.requests[0][2] if name.startswith("machine")]


async def test_instructions_are_xml(carrier: PlivoTelephony) -> None:
    call = IncomingCall(CALL_ID, "+15550100001", OURS)
    forwarded = await carrier.instruct(call, ForwardCall("+15550100002", OURS), CALLBACKS)
    assert (
        b'<Response><Dial callerId="+12125550100" timeout="30"><Number>+15550100002</Number></Dial></Response>'
        in forwarded.body
    )
    assert b'<Hangup reason="busy" />' in (await carrier.instruct(call, RejectCall("busy"), CALLBACKS)).body
    assert b">wss://a/?b&amp;c</Stream>" in (await carrier.instruct(call, ConnectMedia("wss://a/?b&c"), CALLBACKS)).body


async def test_a_transfer_dials_from_an_address_of_ours(carrier: PlivoTelephony, plivo: PlivoServer) -> None:
    call_id = await carrier.place_call(CALL)
    with pytest.raises(ProviderError):
        await carrier.transfer(CALL_ID, to_number="+15550100002", caller_id=OURS, callbacks=CALLBACKS)
    await carrier.transfer(call_id, to_number="+15550100002", caller_id=OURS, callbacks=CALLBACKS)
    _, path, given = plivo.requests[-1]
    assert (path.rpartition("/Call/")[2], given["legs"]) == (f"{call_id}/", "aleg")
    (dial,) = await fetch_instructions(carrier, plivo, given["aleg_url"])
    assert (dial.tag, dial.attrib["callerId"], dial[0].text) == ("Dial", OURS, "+15550100002")


@pytest.mark.parametrize(
    ("language", "attributes"),
    [("en-GB", {"language": "en-GB"}), ("de", {"language": "de-DE"}), ("pt-PT", {"language": "pt-PT", "voice": "MAN"}),
     ("ja-JP", {}), ("mul", {})],
)  # fmt: skip
async def test_a_target_hears_the_introduction_in_a_supported_language(
    carrier: PlivoTelephony, plivo: PlivoServer, language: str, attributes: dict[str, str]
) -> None:
    transfer = WarmTransfer("+15550100021", OURS, "Ann & Bob wait — 東京.", "Press one.", language, ring_seconds=20)
    target = await carrier.start_warm_transfer(CALL_ID, transfer, CALLBACKS)
    given = dict(plivo.requests[-1][2])
    assert (target in plivo.legs, given["ring_timeout"], given["hangup_url"]) == (
        True,
        20,
        f"{CALLBACKS.events}/target",
    )
    *questions, last = await fetch_instructions(carrier, plivo, given["answer_url"])
    assert last.tag == "Hangup"
    assert [question.attrib for question in questions] == [
        {
            "action": f"{CALLBACKS.events}/introduced",
            "method": "POST",
            "numDigits": "1",
            "finishOnKey": "none",
            "timeout": "8",
        }
    ] * 2
    assert [(said.tag, said.text, said.attrib) for question in questions for said in question] == [
        ("Speak", "Ann & Bob wait — 東京. Press one.", attributes)
    ] * 2


async def test_keys_are_pressed_between_pauses(carrier: PlivoTelephony, plivo: PlivoServer) -> None:
    call_id = await carrier.place_call(CALL)
    await carrier.send_digits(call_id, "12w3#")
    assert [given for _, path, given in plivo.requests if path.endswith("/DTMF/")] == [
        {"digits": "12", "leg": "aleg"},
        {"digits": "3#", "leg": "aleg"},
    ]


@pytest.mark.parametrize("call_id", ["", "x", "../Application"])
async def test_only_one_call_is_ever_hung_up(carrier: PlivoTelephony, plivo: PlivoServer, call_id: str) -> None:
    """Without an id, Plivo would end all calls of the account."""
    with pytest.raises(ProviderError, match="not an id of a call"):
        await carrier.hang_up(call_id)
    assert plivo.requests == []


async def test_a_failed_call_is_not_repeated_but_may_fail_over(carrier: PlivoTelephony, plivo: PlivoServer) -> None:
    plivo.failures["POST", "Call"] = [500]
    with pytest.raises(ProviderError, match="Plivo: server error") as failure:
        await carrier.place_call(CALL)
    assert (failure.value.code, failure.value.retryable, isinstance(failure.value, OutcomeUnknown)) == (
        "500",
        True,
        False,
    )
    assert len(plivo.requests) == 1


@pytest.mark.parametrize("failure", [BROKEN, NEVER, GARBLED])
@pytest.mark.parametrize("collection", ["Call", "Message"])
async def test_requests_with_unknown_outcome_are_not_repeated(
    carrier: PlivoTelephony, plivo: PlivoServer, collection: str, failure: int
) -> None:
    plivo.failures["POST", collection] = [failure]
    with pytest.raises(OutcomeUnknown):
        await (carrier.place_call(CALL) if collection == "Call" else carrier.send_text_message(TEXT))
    assert len(plivo.requests) == 1


async def test_rate_limited_requests_are_repeated_after_a_pause(carrier: PlivoTelephony, plivo: PlivoServer) -> None:
    plivo.failures["POST", "Call"] = [429, 429]
    assert await carrier.place_call(CALL) in plivo.legs
    assert (len(plivo.requests), len(plivo.legs)) == (3, 1)
    plivo.failures["POST", "Message"] = [429] * 3
    with pytest.raises(ProviderError) as refusal:
        await carrier.send_text_message(TEXT)
    assert (refusal.value.code, refusal.value.retryable) == ("429", True)


@pytest.mark.parametrize("failure", [500, 503, BROKEN])
async def test_idempotent_requests_are_repeated(carrier: PlivoTelephony, plivo: PlivoServer, failure: int) -> None:
    call_id = await carrier.place_call(CALL)
    plivo.failures["DELETE", call_id] = [failure]
    await carrier.hang_up(call_id)
    assert [method for method, _, _ in plivo.requests] == ["POST", "DELETE", "DELETE"]


async def test_an_unreachable_plivo_has_placed_no_call(plivo: PlivoServer) -> None:
    unreachable = PlivoTelephony(PlivoSettings.model_validate({**plivo.settings, "base_url": "http://127.0.0.1:9"}))
    await unreachable.open()
    with pytest.raises(ProviderError, match="cannot be reached") as failure:
        await unreachable.place_call(CALL)
    assert (failure.value.retryable, isinstance(failure.value, OutcomeUnknown)) == (True, False)
    await unreachable.close()


async def test_plivos_errors_keep_their_message(carrier: PlivoTelephony) -> None:
    with pytest.raises(ProviderError) as refusal:
        await carrier.place_call(replace(CALL, to_number="+15550100024"))
    assert (refusal.value.message, refusal.value.code, refusal.value.retryable) == (
        "Plivo: to number is not valid (400)",
        "400",
        False,
    )


async def test_account_restrictions_allow_failover(carrier: PlivoTelephony) -> None:
    with pytest.raises(ProviderError, match="not of this account") as refusal:
        await carrier.place_call(replace(CALL, from_number="+15550100009"))
    assert (refusal.value.code, refusal.value.retryable) == ("403", True)


@pytest.mark.parametrize(
    ("given", "reason"), [({"auth_token": "wrong"}, "authentication"), ({"application_id": "1"}, "found")]
)
async def test_check_reports_a_wrong_credential_and_a_wrong_application(
    plivo: PlivoServer, given: dict[str, str], reason: str
) -> None:
    stranger = PlivoTelephony(PlivoSettings.model_validate({**plivo.settings, **given}))
    await stranger.open()
    with pytest.raises(ProviderError, match=reason) as refusal:
        await stranger.check()
    assert not refusal.value.retryable
    await stranger.close()


async def test_check_accepts_a_complete_account(carrier: PlivoTelephony) -> None:
    await carrier.check()


@pytest.mark.parametrize(
    "settings",
    [
        {"auth_id": "MA1"},
        {"auth_id": "XX" + "A" * 18},
        {"auth_token": ""},
        {"application_id": "app"},
        {"campaign_id": "../Call"},
        {"compliance_application_id": "a b"},
        {"sender_ids": {"US": "ACME"}},
        {"base_url": "ftp://x"},
        {"nonsense": 1},
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object]) -> None:
    account = {"auth_id": "MA" + "A" * 18, "auth_token": "secret", "application_id": "1"}
    with pytest.raises(ValidationError):
        PlivoSettings.model_validate({**account, **settings})
