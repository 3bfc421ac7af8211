"""Phone numbers, recordings, and browser tokens of a Telnyx account."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from pydantic import JsonValue, ValidationError
from switchboard.plugin_sdk import (
    NumberOrder,
    OutboundTextMessage,
    ProviderError,
    TextMessageStatus,
)
from switchboard_telephony_telnyx.provider import TelnyxTelephony
from switchboard_telephony_telnyx.settings import TelnyxSettings

from tests.carriers.telnyx.samples import (
    CALL,
    EVENTS,
    LEG,
)
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.vendor import BROKEN, OURS

pytest_plugins = ["tests.carriers.telnyx.fixtures"]
pytestmark = pytest.mark.usefixtures("short_pauses")


async def test_numbers_are_searched_by_location(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
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
    types = [
        query["filter[phone_number_type]"] for _, _, query in telnyx.requests if query["filter[country_code]"] == "FR"
    ]
    assert types == ["local", "mobile", "national", "toll_free"]


async def test_a_number_of_the_account_is_directed_to_the_platform_and_not_bought(
    carrier: TelnyxTelephony, telnyx: TelnyxServer
) -> None:
    own_number = await carrier.buy_number(NumberOrder(OURS, EVENTS))
    number = telnyx.numbers[OURS]
    assert (own_number.carrier_number_id, own_number.sms, telnyx.purchases) == (number.id, True, 0)
    assert (number.connection_id, number.messaging_profile_id) == (telnyx.connection_id, telnyx.profile_id)
    assert (telnyx.application["webhook_event_url"], telnyx.application["webhook_api_version"]) == (EVENTS.events, "2")
    assert telnyx.profile["webhook_url"] == EVENTS.events
    changes = [path for method, path, _ in telnyx.requests if method == "PATCH"]
    await carrier.buy_number(NumberOrder(OURS, EVENTS))
    again = [path for method, path, _ in telnyx.requests if method == "PATCH"][len(changes) :]
    assert [path for path in again if "phone_numbers" not in path] == [], (
        "an account that tells us already is left alone"
    )


async def test_a_number_without_text_messages_needs_no_messaging_profile(telnyx: TelnyxServer) -> None:
    settings = TelnyxSettings.model_validate({**telnyx.settings, "messaging_profile_id": None})
    voice = TelnyxTelephony(settings)
    await voice.open()
    assert not (await voice.buy_number(NumberOrder(OURS, EVENTS))).sms
    assert telnyx.profile["webhook_url"] is None
    await voice.close()


@asynccontextmanager
async def open_carrier(telnyx: TelnyxServer, **settings: JsonValue) -> AsyncIterator[TelnyxTelephony]:
    """Open the plugin with further settings."""
    carrier = TelnyxTelephony(TelnyxSettings.model_validate({**telnyx.settings, **settings}))
    await carrier.open()
    yield carrier
    await carrier.close()


async def test_a_number_is_bought_with_what_its_country_demands(telnyx: TelnyxServer) -> None:
    group, other = str(uuid4()), str(uuid4())
    async with open_carrier(telnyx, requirement_group_id=group) as carrier:
        await carrier.buy_number(NumberOrder("+12125550103", EVENTS))
        await carrier.buy_number(NumberOrder("+12125550104", EVENTS, carrier_requirements=other))
        with pytest.raises(ProviderError, match="requirement group") as refused:
            await carrier.buy_number(NumberOrder("+12125550105", EVENTS, carrier_address="1"))
    assert not refused.value.retryable
    orders = [
        body["phone_numbers"]
        for method, path, body in telnyx.requests
        if (method, path) == ("POST", "/v2/number_orders")
    ]
    assert orders == [
        [{"phone_number": "+12125550103", "requirement_group_id": group}],
        [{"phone_number": "+12125550104", "requirement_group_id": other}],
    ]


async def test_numbers_of_the_united_states_join_the_campaign(telnyx: TelnyxServer) -> None:
    telnyx.campaigns["+12125550104"] = "another"
    async with open_carrier(telnyx, campaign_id="C1") as carrier:
        bought = [
            (await carrier.buy_number(NumberOrder(number, EVENTS))).sms
            for number in ("+12125550103", "+12125550103", "+12125550104", "+442071838750")
        ]
    assert bought == [True, True, False, True]
    assert telnyx.campaigns == {"+12125550103": "C1", "+12125550104": "another"}


async def test_a_campaign_and_alphanumeric_senders_need_a_messaging_profile(telnyx: TelnyxServer) -> None:
    with pytest.raises(ValidationError, match="campaign_id needs messaging_profile_id"):
        TelnyxSettings.model_validate({**telnyx.settings, "campaign_id": "C1", "messaging_profile_id": None})
    with pytest.raises(ValidationError, match="sender_ids need messaging_profile_id"):
        TelnyxSettings.model_validate({**telnyx.settings, "sender_ids": {"GB": "A"}, "messaging_profile_id": None})


async def test_a_purchase_with_a_lost_response_is_found_again(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    telnyx.failures["POST", "number_orders"] = [BROKEN]
    with pytest.raises(ProviderError) as error:
        await carrier.buy_number(NumberOrder("+12125550103", EVENTS))
    assert error.value.retryable
    number = await carrier.buy_number(NumberOrder("+12125550103", EVENTS))
    assert (number.phone_number, telnyx.purchases) == ("+12125550103", 1)


async def test_a_slow_order_is_awaited_and_not_repeated(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    telnyx.looks_until_active = 3
    assert (await carrier.buy_number(NumberOrder("+12125550103", EVENTS))).phone_number == "+12125550103"
    telnyx.looks_until_active = 10_000
    for _ in range(2):
        with pytest.raises(ProviderError, match="not delivered it yet") as pending:
            await carrier.buy_number(NumberOrder("+12125550104", EVENTS))
        assert pending.value.retryable
    assert telnyx.purchases == 2


async def test_a_recording_is_streamed_from_its_storage(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    telnyx.recordings[LEG] = bytes(range(256)) * 1000
    whole = await carrier.fetch_recording(LEG, None)
    assert (whole.status, whole.content_type, whole.content_length) == (200, "audio/x-wav", 256_000)
    assert b"".join([chunk async for chunk in whole.chunks]) == telnyx.recordings[LEG]
    part = await carrier.fetch_recording(LEG, "bytes=256-511")
    assert (part.status, part.content_range, part.content_length) == (206, "bytes 256-511/256000", 256)
    assert b"".join([chunk async for chunk in part.chunks]) == bytes(range(256))
    with pytest.raises(ProviderError, match="does not have the recording") as error:
        await carrier.fetch_recording("another", None)
    assert not error.value.retryable


@pytest.mark.parametrize("platform", ["web", "ios", "android"])
async def test_a_browser_token_is_a_telnyx_token(carrier: TelnyxTelephony, telnyx: TelnyxServer, platform: Any) -> None:
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


async def test_tokens_of_one_identity_share_a_credential(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    await carrier.create_browser_token(identity="key_1", platform="web")
    (first,) = telnyx.credentials
    telnyx.credentials[first]["expires_at"] = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    await carrier.create_browser_token(identity="key_1", platform="web")
    await carrier.create_browser_token(identity="key_10", platform="web")
    assert [credential["name"] for credential in telnyx.credentials.values()] == ["key_1", "key_10"]
    ends = datetime.fromisoformat(str(telnyx.credentials[first]["expires_at"]))
    assert ends > datetime.now(UTC) + timedelta(minutes=59)


async def test_an_expired_credential_is_replaced_and_deleted(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    await carrier.create_browser_token(identity="key_1", platform="web")
    (first,) = telnyx.credentials
    telnyx.credentials[first] |= {"expires_at": "2026-01-02T03:04:05", "expired": True}
    await carrier.create_browser_token(identity="key_1", platform="web")
    (second,) = telnyx.credentials
    assert second != first


async def test_a_token_requires_its_settings(telnyx: TelnyxServer) -> None:
    settings = TelnyxSettings.model_validate({**telnyx.settings, "credential_connection_id": None})
    with pytest.raises(ProviderError, match="credential_connection_id") as refusal:
        await TelnyxTelephony(settings).create_browser_token(identity="x", platform="web")
    assert not refusal.value.retryable


async def test_many_calls_share_one_client(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    orders = [dataclasses.replace(CALL, reference=str(number)) for number in range(20)]
    assert len(set(await asyncio.gather(*(carrier.place_call(order) for order in orders)))) == 20


async def test_a_file_is_fetched_from_its_storage(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    telnyx.recordings[LEG] = b"a file"
    file = await carrier.fetch_media(telnyx.storage_url(LEG))
    assert (file.content_type, b"".join([chunk async for chunk in file.chunks])) == ("audio/x-wav", b"a file")


async def test_a_text_message_names_its_files(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    urls = ("https://example.com/a.jpg", "https://example.com/b.jpg")
    await carrier.send_text_message(OutboundTextMessage("t", OURS, "+15550100001", "Hello", EVENTS, urls))
    assert telnyx.requests[-1][2]["media_urls"] == list(urls)


async def test_the_status_of_a_text_message_is_retrieved(carrier: TelnyxTelephony, telnyx: TelnyxServer) -> None:
    to = {"phone_number": "+15550100001", "carrier": "T-MOBILE", "line_type": "Wireless"}
    problem = {"code": "40008", "title": "Undeliverable", "detail": "The recipient server is unavailable."}
    cost = {"amount": "0.0051", "currency": "USD"}
    telnyx.texts["delivered"] = {"to": [{**to, "status": "delivered"}], "parts": 2, "cost": cost, "errors": []}
    telnyx.texts["lost"] = {"to": [{**to, "status": "delivery_failed"}], "errors": [problem]}
    assert await carrier.find_text_status("delivered") == TextMessageStatus(
        "delivered", "delivered", segments=2, cost=0.0051
    )
    reason = "Undeliverable: The recipient server is unavailable."
    assert await carrier.find_text_status("lost") == TextMessageStatus("lost", "undelivered", reason, "40008")
    with pytest.raises(ProviderError):
        await carrier.find_text_status(str(uuid4()))
