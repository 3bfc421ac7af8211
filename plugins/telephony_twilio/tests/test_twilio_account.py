"""Phone numbers, recordings, and browser tokens of a Twilio account."""

import json
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from switchboard.plugin_sdk import (
    NumberOrder,
    OutboundTextMessage,
    ProviderError,
    TextMessageStatus,
)
from switchboard_telephony_twilio.provider import TwilioTelephony
from switchboard_telephony_twilio.settings import TwilioSettings

from tests.carriers.twilio.samples import CALLBACKS, OTHER_SID
from tests.carriers.twilio.server import TwilioServer, new_sid
from tests.carriers.vendor import BROKEN, OURS

pytest_plugins = ["tests.carriers.twilio.fixtures"]
pytestmark = pytest.mark.usefixtures("short_pauses")


async def test_numbers_are_searched_by_location(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    (british,) = await carrier.search_numbers(country="GB", area_code="020", limit=1)
    assert british.phone_number.startswith("+4420")
    assert (british.sms, british.mms, british.monthly_cost) == (True, False, 1.15)
    assert await carrier.search_numbers(country="FR", area_code=None, limit=5) == []
    queries = [dict(form) for _, path, form in twilio.requests if "AvailablePhoneNumbers/GB/Local" in path]
    assert queries == [{"Contains": "+4420%", "VoiceEnabled": "true", "PageSize": "1"}]


async def test_a_number_of_the_account_is_directed_to_the_platform_and_not_bought(
    carrier: TwilioTelephony, twilio: TwilioServer
) -> None:
    number = twilio.numbers[OURS]
    number.elsewhere = {
        "VoiceApplicationSid": new_sid("AP"),
        "SmsApplicationSid": new_sid("AP"),
        "TrunkSid": new_sid("TK"),
    }
    own_number = await carrier.buy_number(NumberOrder(OURS, CALLBACKS))
    assert (own_number.carrier_number_id, twilio.purchases) == (number.sid, 0)
    assert (number.voice_url, number.elsewhere) == (f"{CALLBACKS.events}/call", {})


async def test_a_purchase_with_a_lost_response_is_found_again(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    twilio.failures["POST", "IncomingPhoneNumbers"] = [BROKEN]
    with pytest.raises(ProviderError) as error:
        await carrier.buy_number(NumberOrder("+12125550103", CALLBACKS))
    assert error.value.retryable
    number = await carrier.buy_number(NumberOrder("+12125550103", CALLBACKS))
    assert (number.phone_number, twilio.purchases) == ("+12125550103", 1)


@asynccontextmanager
async def open_carrier(twilio: TwilioServer, **settings: str) -> AsyncIterator[TwilioTelephony]:
    """Open the plugin with further settings."""
    account = {"account_sid": twilio.account_sid, "auth_token": twilio.auth_token, "base_url": twilio.address}
    carrier = TwilioTelephony(TwilioSettings.model_validate({**account, **settings}))
    await carrier.open()
    yield carrier
    await carrier.close()


async def test_a_number_is_bought_with_what_its_country_demands(twilio: TwilioServer) -> None:
    address, bundle, other = new_sid("AD"), new_sid("BU"), new_sid("BU")
    async with open_carrier(twilio, address_sid=address, bundle_sid=bundle) as carrier:
        await carrier.buy_number(NumberOrder("+12125550103", CALLBACKS))
        await carrier.buy_number(NumberOrder("+12125550104", CALLBACKS, carrier_requirements=other))
    orders = [
        dict(form)
        for method, path, form in twilio.requests
        if method == "POST" and path.endswith("/IncomingPhoneNumbers.json")
    ]
    assert [(order["AddressSid"], order["BundleSid"]) for order in orders] == [(address, bundle), (address, other)]


async def test_numbers_join_the_messaging_service_that_sends_their_texts(twilio: TwilioServer) -> None:
    service = new_sid("MG")
    async with open_carrier(twilio, messaging_service_sid=service) as carrier:
        number = await carrier.buy_number(NumberOrder("+12125550103", CALLBACKS))
        assert await carrier.buy_number(NumberOrder("+12125550103", CALLBACKS)) == number
        await carrier.send_text_message(OutboundTextMessage("t", "+12125550103", "+15550100001", "Hello", CALLBACKS))
    assert (number.sms, twilio.senders) == (True, {number.carrier_number_id: service})
    sent = dict(twilio.requests[-1][2])
    assert (sent["From"], sent["MessagingServiceSid"]) == ("+12125550103", service)


async def test_a_number_that_the_messaging_service_refuses_sends_no_texts(twilio: TwilioServer) -> None:
    twilio.senders[twilio.numbers[OURS].sid] = new_sid("MG")
    async with open_carrier(twilio, messaging_service_sid=new_sid("MG")) as carrier:
        assert not (await carrier.buy_number(NumberOrder(OURS, CALLBACKS))).sms


async def test_a_recording_is_streamed_from_its_storage(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    twilio.recordings[OTHER_SID] = bytes(range(256)) * 1000
    whole = await carrier.fetch_recording(OTHER_SID, None)
    assert (whole.status, whole.content_type, whole.content_length) == (200, "audio/x-wav", 256_000)
    assert b"".join([chunk async for chunk in whole.chunks]) == twilio.recordings[OTHER_SID]
    part = await carrier.fetch_recording(OTHER_SID, "bytes=256-511")
    assert (part.status, part.content_range, part.content_length) == (206, "bytes 256-511/256000", 256)
    assert b"".join([chunk async for chunk in part.chunks]) == bytes(range(256))
    with pytest.raises(ProviderError, match="does not have the recording") as error:
        await carrier.fetch_recording(new_sid("RE"), None)
    assert not error.value.retryable


async def test_a_text_message_names_its_files(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    urls = ("https://example.com/a.jpg", "https://example.com/b.jpg")
    await carrier.send_text_message(OutboundTextMessage("t", OURS, "+15550100001", "Hello", CALLBACKS, urls))
    assert [value for name, value in twilio.requests[-1][2] if name == "MediaUrl"] == list(urls)


async def test_the_status_of_a_text_message_is_fetched(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    delivered, lost = new_sid("SM"), new_sid("SM")
    twilio.texts[delivered] = {"status": "delivered", "error_code": None, "error_message": None}
    twilio.texts[lost] = {"status": "undelivered", "error_code": 30003, "error_message": None}
    assert await carrier.find_text_status(delivered) == TextMessageStatus(delivered, "delivered")
    reason = "the recipient's phone cannot be reached (error 30003)"
    assert await carrier.find_text_status(lost) == TextMessageStatus(lost, "undelivered", reason, "30003")
    with pytest.raises(ProviderError, match="not found"):
        await carrier.find_text_status(new_sid("SM"))


async def test_a_file_is_fetched_with_the_credential_from_twilio_alone(
    carrier: TwilioTelephony, twilio: TwilioServer
) -> None:
    twilio.recordings[OTHER_SID] = b"a file"
    path = f"2010-04-01/Accounts/{twilio.account_sid}/Messages/{new_sid('MM')}/Media/{OTHER_SID}"
    file = await carrier.fetch_media(f"https://api.twilio.com/{path}")
    assert (file.content_type, b"".join([chunk async for chunk in file.chunks])) == ("audio/x-wav", b"a file")
    with pytest.raises(ProviderError, match="not at Twilio"):
        await carrier.fetch_media(f"https://api.twilio.com.example/{path}")


def create_browser_carrier(**settings: object) -> TwilioTelephony:
    return TwilioTelephony(
        TwilioSettings.model_validate({"account_sid": "AC" + "a" * 32, "auth_token": "secret", **settings})
    )


@pytest.mark.parametrize(("platform", "push"), [("web", None), ("ios", "CR" + "1" * 32), ("android", "CR" + "2" * 32)])
async def test_a_browser_token_has_twilios_format_and_grants(platform: Any, push: str | None) -> None:
    carrier = create_browser_carrier(
        api_sid="SK" + "b" * 32, api_secret="c" * 32, application_sid="AP" + "d" * 32,
        ios_push_credential_sid="CR" + "1" * 32, android_push_credential_sid="CR" + "2" * 32,
    )  # fmt: skip
    token = await carrier.create_browser_token(identity="key_1", platform=platform)
    header, payload = (json.loads(urlsafe_b64decode(part + "==")) for part in token.token.split(".")[:2])
    assert header == {"typ": "JWT", "alg": "HS256", "cty": "twilio-fpa;v=1"}
    assert (payload["iss"], payload["sub"], payload["exp"] - payload["nbf"]) == (
        "SK" + "b" * 32,
        "AC" + "a" * 32,
        token.expires_in_seconds,
    )
    voice = {
        "incoming": {"allow": True},
        "outgoing": {"application_sid": "AP" + "d" * 32},
        **({"push_credential_sid": push} if push else {}),
    }
    assert payload["grants"] == {"identity": "key_1", "voice": voice}


async def test_a_token_requires_its_settings() -> None:
    with pytest.raises(ProviderError, match="api_sid") as refusal:
        await create_browser_carrier().create_browser_token(identity="x", platform="web")
    assert not refusal.value.retryable
