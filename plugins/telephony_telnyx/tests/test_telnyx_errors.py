"""Retries, only where nothing can happen twice, and Telnyx's own errors."""

import dataclasses
from base64 import b64encode

import pytest
from pydantic import ValidationError
from switchboard.plugin_sdk import (
    CallEnded,
    OutcomeUnknown,
    ProviderError,
    UnsubscribedRecipient,
)
from switchboard_telephony_telnyx.provider import TelnyxTelephony
from switchboard_telephony_telnyx.settings import TelnyxSettings

from tests.carriers.telnyx.samples import CALL, REFERENCE, TEXT, announce_call, sign_webhook
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.vendor import BROKEN, GARBLED, NEVER

pytest_plugins = ["tests.carriers.telnyx.fixtures"]
pytestmark = pytest.mark.usefixtures("short_pauses")


async def test_a_failed_call_is_not_repeated_but_may_fail_over(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
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
async def test_requests_with_unknown_outcome_are_not_repeated(
    carrier: TelnyxTelephony, telnyx: TelnyxServer, collection: str, failure: int
) -> None:
    telnyx.failures["POST", collection] = [failure]
    with pytest.raises(OutcomeUnknown):
        await (carrier.place_call(CALL) if collection == "calls" else carrier.send_text_message(TEXT))
    assert len(telnyx.requests) == 1


async def test_rate_limited_requests_are_repeated_after_a_pause(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    telnyx.failures["POST", "calls"] = [429, 429]
    assert await carrier.place_call(CALL) in telnyx.legs
    assert (len(telnyx.requests), len(telnyx.legs)) == (3, 1)
    telnyx.failures["POST", "messages"] = [429] * 3
    with pytest.raises(ProviderError) as refusal:
        await carrier.send_text_message(TEXT)
    assert (refusal.value.code, refusal.value.retryable) == ("10011", True)


@pytest.mark.parametrize("failure", [500, 503, BROKEN])
async def test_commands_are_repeated_and_executed_once(
    carrier: TelnyxTelephony, telnyx: TelnyxServer, failure: int
) -> None:
    call_id = await carrier.place_call(CALL)
    telnyx.failures["POST", "send_dtmf"] = [failure]
    await carrier.send_digits(call_id, "5")
    commands = [body["command_id"] for _, path, body in telnyx.requests if path.endswith("send_dtmf")]
    assert len(commands) == 2
    assert len(set(commands)) == 1


async def test_an_unreachable_telnyx_has_placed_no_call(telnyx: TelnyxServer) -> None:
    unreachable = TelnyxTelephony(TelnyxSettings.model_validate({**telnyx.settings, "base_url": "http://127.0.0.1:9"}))
    await unreachable.open()
    with pytest.raises(ProviderError, match="cannot be reached") as failure:
        await unreachable.place_call(CALL)
    assert (failure.value.retryable, isinstance(failure.value, OutcomeUnknown)) == (True, False)
    await unreachable.close()


async def test_a_call_is_found_by_its_reference(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    telnyx.failures["POST", "calls"] = [BROKEN]
    with pytest.raises(OutcomeUnknown):
        await carrier.place_call(CALL)
    await carrier.place_call(dataclasses.replace(CALL, reference="another"))
    call_id = await carrier.find_call(REFERENCE)
    assert call_id in telnyx.legs
    assert call_id != await carrier.find_call("another")
    assert await carrier.find_call("a third") is None


async def test_telnyx_errors_keep_their_code_and_message(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
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


async def test_account_restrictions_allow_failover(carrier: TelnyxTelephony) -> None:
    with pytest.raises(ProviderError, match="not one of the account's") as refusal:
        await carrier.place_call(dataclasses.replace(CALL, from_number="+15550100009"))
    assert (refusal.value.code, refusal.value.retryable) == ("10010", True)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"api_key": "wrong"}, "Authentication failed"), ({"connection_id": "7"}, "Resource not found")],
)
async def test_check_reports_settings_that_do_not_work(
    telnyx: TelnyxServer, change: dict[str, str], words: str
) -> None:
    stranger = TelnyxTelephony(TelnyxSettings.model_validate({**telnyx.settings, **change}))
    await stranger.open()
    with pytest.raises(ProviderError, match=words) as refusal:
        await stranger.check()
    assert not refusal.value.retryable
    await stranger.close()


async def test_credentials_in_the_environment_are_ignored(
    telnyx: TelnyxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "CLIENT_ID", "CLIENT_SECRET", "BASE_URL"):
        monkeypatch.setenv(f"TELNYX_{name}", "http://127.0.0.1:9")
    carrier = TelnyxTelephony(TelnyxSettings.model_validate(telnyx.settings))
    await carrier.open()
    await carrier.check()
    await carrier.close()


async def test_check_costs_nothing(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    await carrier.check()
    assert [method for method, _, _ in telnyx.requests] == ["GET"]


@pytest.mark.parametrize(
    "settings",
    [
        {"public_key": "x"}, {"public_key": b64encode(b"x" * 31).decode()}, {"connection_id": "app"},
        {"messaging_profile_id": "1"},
        {"credential_connection_id": ""}, {"base_url": "ftp://x"}, {"nonsense": 1}, {"api_key": ""},
    ],
)  # fmt: skip
def test_invalid_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TelnyxSettings.model_validate(
            {"api_key": "KEY", "public_key": b64encode(bytes(32)).decode(), "connection_id": "1", **settings}
        )


async def test_a_call_without_audio_fails_and_is_hung_up(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    record, _ = announce_call(telnyx)
    received = await carrier.receive(
        sign_webhook(telnyx, "streaming.failed", record.payload(failure_reason="connection_failed"))
    )
    reason = "Telnyx could not stream the call's audio: it could not connect to the platform"
    assert received.events == (CallEnded(record.id, "failed", error_message=reason, error_code="connection_failed"),)
    assert telnyx.requests[-1][1].endswith("/actions/hangup")
