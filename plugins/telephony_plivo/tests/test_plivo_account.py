"""Phone numbers, text messages, and files of a Plivo account."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from switchboard.plugin_sdk import NumberOrder, OutboundTextMessage, ProviderError, TextMessageStatus
from switchboard_telephony_plivo.provider import PlivoTelephony
from switchboard_telephony_plivo.settings import PlivoSettings

from tests.carriers.plivo.samples import CALLBACKS, TEXT
from tests.carriers.plivo.server import APPLICATION, PlivoServer
from tests.carriers.vendor import BROKEN, OURS

pytest_plugins = ["tests.carriers.plivo.fixtures"]
pytestmark = pytest.mark.usefixtures("short_pauses")


@asynccontextmanager
async def open_carrier(plivo: PlivoServer, **settings: str) -> AsyncIterator[PlivoTelephony]:
    """Open the plugin with further settings."""
    carrier = PlivoTelephony(PlivoSettings.model_validate({**plivo.settings, **settings}))
    await carrier.open()
    yield carrier
    await carrier.close()


async def test_numbers_are_searched_by_location(carrier: PlivoTelephony, plivo: PlivoServer) -> None:
    (british,) = await carrier.search_numbers(country="GB", area_code="020", limit=1)
    assert british.phone_number.startswith("+4420")
    assert (british.country, british.sms, british.mms, british.monthly_cost) == ("GB", True, False, 1.3)
    ((_, _, query),) = plivo.requests
    assert query == {
        "country_iso": "GB",
        "type": "local",
        "services": "voice",
        "pattern": "20",
        "limit": "1",
        "offset": "0",
    }
    assert await carrier.search_numbers(country="FR", area_code=None, limit=5) == []


async def test_a_long_search_reads_several_pages(carrier: PlivoTelephony, plivo: PlivoServer) -> None:
    found = await carrier.search_numbers(country="US", area_code="212", limit=50)
    assert len({number.phone_number for number in found}) == 50
    assert [(query["limit"], query["offset"]) for _, _, query in plivo.requests] == [
        ("20", "0"),
        ("20", "20"),
        ("10", "40"),
    ]


async def test_a_number_of_the_account_is_directed_to_the_platform_and_not_bought(
    carrier: PlivoTelephony, plivo: PlivoServer
) -> None:
    number = plivo.numbers[OURS]
    number.application = "1"
    own_number = await carrier.buy_number(NumberOrder(OURS, CALLBACKS))
    assert (own_number.carrier_number_id, plivo.purchases) == (OURS.removeprefix("+"), 0)
    assert number.application == APPLICATION
    assert (plivo.application.answer_url, plivo.application.hangup_url, plivo.application.message_url) == tuple(
        f"{CALLBACKS.events}/{path}" for path in ("call", "status", "message")
    )


async def test_a_purchase_with_a_lost_response_is_found_again(carrier: PlivoTelephony, plivo: PlivoServer) -> None:
    plivo.failures["POST", "12125550103"] = [BROKEN]
    with pytest.raises(ProviderError) as error:
        await carrier.buy_number(NumberOrder("+12125550103", CALLBACKS))
    assert error.value.retryable
    number = await carrier.buy_number(NumberOrder("+12125550103", CALLBACKS))
    assert (number.phone_number, plivo.purchases) == ("+12125550103", 1)


async def test_a_number_is_bought_with_what_its_country_demands(plivo: PlivoServer) -> None:
    own, other = str(uuid4()), str(uuid4())
    async with open_carrier(plivo, compliance_application_id=own) as carrier:
        await carrier.buy_number(NumberOrder("+12125550103", CALLBACKS))
        await carrier.buy_number(NumberOrder("+12125550104", CALLBACKS, carrier_requirements=other))
        with pytest.raises(ProviderError, match="compliance application only") as refusal:
            await carrier.buy_number(NumberOrder("+12125550105", CALLBACKS, carrier_address="an address"))
    assert (refusal.value.code, refusal.value.retryable) == ("unsupported", False)
    orders = [given for _, path, given in plivo.requests if "/PhoneNumber/" in path]
    assert orders == [{"app_id": APPLICATION, "compliance_application_id": given} for given in (own, other)]


async def test_a_number_that_waits_for_documents_is_not_ours_yet(carrier: PlivoTelephony) -> None:
    with pytest.raises(ProviderError, match="wants the documents") as refusal:
        await carrier.buy_number(NumberOrder("+12125550197", CALLBACKS))
    assert (refusal.value.code, refusal.value.retryable) == ("order_pending", False)


async def test_us_numbers_join_the_campaign(plivo: PlivoServer) -> None:
    async with open_carrier(plivo, campaign_id="CABC123") as carrier:
        number = await carrier.buy_number(NumberOrder("+12125550103", CALLBACKS))
        assert await carrier.buy_number(NumberOrder("+12125550103", CALLBACKS)) == number, "already linked"
        assert (await carrier.buy_number(NumberOrder("+16045550103", CALLBACKS))).sms
        plivo.failures["POST", "Number"] = [400]
        assert not (await carrier.buy_number(NumberOrder("+12125550104", CALLBACKS))).sms, "the campaign refuses it"
    assert (number.sms, plivo.campaign) == (True, ["12125550103"])


async def test_a_text_message_has_its_sender_and_names_its_files(carrier: PlivoTelephony, plivo: PlivoServer) -> None:
    urls = ("https://example.com/a.jpg", "https://example.com/b.jpg")
    await carrier.send_text_message(TEXT)
    await carrier.send_text_message(OutboundTextMessage("t", OURS, "+15550100001", "Look", CALLBACKS, urls))
    common = {
        "src": OURS.removeprefix("+"),
        "dst": "15550100001",
        "url": f"{CALLBACKS.events}/text",
        "method": "POST",
    }
    assert [given for _, _, given in plivo.requests] == [
        {**common, "text": "Hello", "type": "sms"},
        {**common, "text": "Look", "type": "mms", "media_urls": list(urls)},
    ]


async def test_the_status_of_a_text_message_is_retrieved(carrier: PlivoTelephony, plivo: PlivoServer) -> None:
    delivered, lost = str(uuid4()), str(uuid4())
    plivo.texts[delivered] = {"message_state": "delivered", "error_code": "000", "units": 2, "total_amount": "0.00280"}
    plivo.texts[lost] = {"message_state": "failed", "error_code": "200", "units": 1, "total_amount": "0.00000"}
    assert await carrier.find_text_status(delivered) == TextMessageStatus(
        delivered, "delivered", segments=2, cost=0.0028
    )
    found = await carrier.find_text_status(lost)
    assert found is not None
    assert (found.status, found.error_code, found.opted_out) == ("failed", "200", True)
    for unknown in (str(uuid4()), ""):
        with pytest.raises(ProviderError):
            await carrier.find_text_status(unknown)
    assert not any(path.endswith("/Message/") for _, path, _ in plivo.requests), "without an id Plivo lists all of them"


async def test_a_file_is_fetched_with_the_credential_from_plivo_alone(
    carrier: PlivoTelephony, plivo: PlivoServer
) -> None:
    media_id = str(uuid4())
    plivo.recordings[media_id] = b"a file"
    path = f"Account/{plivo.auth_id}/Message/{uuid4()}/Media/{media_id}"
    file = await carrier.fetch_media(f"https://media.plivo.com/{path}")
    assert (file.content_type, b"".join([chunk async for chunk in file.chunks])) == ("audio/x-wav", b"a file")
    with pytest.raises(ProviderError, match="not at Plivo"):
        await carrier.fetch_media(f"https://media.plivo.com.example/{path}")
