"""Phone numbers for sale and the account's own
(https://developers.telnyx.com/docs/numbers/phone-numbers/number-search).
"""

import asyncio
from typing import Any, Final

from phonenumbers import parse, region_code_for_number
from switchboard.plugin_sdk import (
    AvailableNumber,
    BoughtNumber,
    CallbackUrls,
    NumberOrder,
    ProviderError,
    UnsupportedRequest,
)
from switchboard.plugin_sdk.phone_numbers import NumberType, search_by_type
from switchboard.plugin_sdk.retries import ignore_missing

from switchboard_telephony_telnyx.errors import ignore_refusal, read_field
from switchboard_telephony_telnyx.settings import TelnyxSettings
from switchboard_telephony_telnyx.transport import call_telnyx, read_telnyx

_COMING: Final = ("purchase-pending", "provision-pending", "requirement-info-pending", "requirement-info-under-review")
ARRIVAL_SECONDS: Final = 15.0
LOOK_SECONDS: Final = 0.5


async def search_telnyx_numbers(client: Any, country: str, area_code: str | None, limit: int) -> list[AvailableNumber]:
    """List numbers with voice, local ones first, then other types up to `limit`. Raises `ProviderError`."""

    async def search(number_type: NumberType, most: int) -> list[AvailableNumber]:
        wanted = {
            "country_code": country,
            "features": ["voice"],
            "limit": most,
            "phone_number_type": number_type,
            # The national form of an area code begins with a 0, which E.164 does not have.
            **({"national_destination_code": area_code.lstrip("0")} if area_code is not None else {}),
        }
        numbers: list[Any] = []
        with ignore_missing():  # the country has no numbers of this type
            numbers = await read_telnyx(lambda: client.available_phone_numbers.list(filter=wanted))
        return [_convert(number, country, number_type) for number in numbers]

    return await search_by_type(area_code, limit, search)


def _convert(number: Any, country: str, number_type: NumberType) -> AvailableNumber:
    regions = {region.region_type: region.region_name for region in number.region_information or ()}
    able = {feature.name for feature in number.features or ()}
    cost = number.cost_information
    return AvailableNumber(
        phone_number=number.phone_number,
        friendly_name=number.phone_number,
        country=country,
        region=regions.get("state"),
        locality=regions.get("location") or regions.get("rate_center"),
        number_type=number_type,
        voice="voice" in able,
        sms="sms" in able,
        mms="mms" in able,
        monthly_cost=float(cost.monthly_cost or 0) if cost else 0.0,
        setup_cost=float(cost.upfront_cost or 0) if cost else 0.0,
    )


async def buy_telnyx_number(client: Any, settings: TelnyxSettings, order: NumberOrder) -> BoughtNumber:
    """Order a number unless the account has or has ordered it, and direct it to the platform.

    Raises `ProviderError`.
    """
    if order.carrier_address is not None:
        raise UnsupportedRequest("Telnyx takes an address as a part of a requirement group only")
    phone_number = order.phone_number
    await _direct_account(client, settings, order.callbacks)
    number = await _find_own_number(client, phone_number)
    if number is None:
        wanted = {"customer_reference": phone_number, "status": "pending"}
        if not await read_telnyx(lambda: client.number_orders.list(filter=wanted)):
            await _order(client, phone_number, order.carrier_requirements or settings.requirement_group_id)
        number = await _wait_until_active(client, phone_number)
    elif number.status in _COMING:
        number = await _wait_until_active(client, phone_number)
    texts = await _direct(client, settings, number.id) and await _join_campaign(client, settings, phone_number)
    return BoughtNumber(number.id, number.phone_number, sms=texts)


async def _find_own_number(client: Any, phone_number: str) -> Any | None:
    """Return the account's number, active or pending."""
    found = await read_telnyx(
        lambda: client.phone_numbers.list(filter={"phone_number": phone_number.removeprefix("+")})
    )
    return next(
        (number for number in found if number.phone_number == phone_number and number.status in ("active", *_COMING)),
        None,
    )


async def _order(client: Any, phone_number: str, requirements: str | None) -> None:
    wanted = [{"phone_number": phone_number, **({"requirement_group_id": requirements} if requirements else {})}]
    order = await call_telnyx(
        lambda: client.number_orders.create(phone_numbers=wanted, customer_reference=phone_number), creates=True
    )
    if read_field(order, "status") == "failure":
        raise ProviderError(f"Telnyx did not sell {phone_number}", code="order_failed", retryable=False)


async def _wait_until_active(client: Any, phone_number: str) -> Any:
    """Return an ordered number once it is active. Orders take seconds, or days in countries that require documents."""
    try:
        async with asyncio.timeout(ARRIVAL_SECONDS):
            while True:
                number = await _find_own_number(client, phone_number)
                if number is not None and number.status == "active":
                    return number
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise ProviderError(
            f"Telnyx has accepted the order of {phone_number} but not delivered it yet", code="order_pending"
        ) from None


async def _direct(client: Any, settings: TelnyxSettings, number_id: str) -> bool:
    """Direct a number's calls and text messages to the platform; returns whether it supports text messages."""
    await call_telnyx(lambda: client.phone_numbers.update(number_id, connection_id=settings.connection_id))
    profile = settings.messaging_profile_id
    if profile is None:
        return False
    with ignore_refusal():
        texting = await call_telnyx(
            lambda: client.phone_numbers.messaging.update(number_id, messaging_profile_id=profile)
        )
        features = read_field(texting).features
        return features is None or features.sms is not None
    return False  # a number without text messages cannot be in a profile


async def _join_campaign(client: Any, settings: TelnyxSettings, phone_number: str) -> bool:
    """Assign a US number to the 10DLC campaign, if there is one; return whether it can send texts then.

    The number is bought by now, so a refusal does not undo the purchase. Raises `ProviderError` if it is worth a
    repetition (https://developers.telnyx.com/api-reference/phone-number-campaigns/create-new-phone-number-campaign).
    """
    campaign = settings.campaign_id
    if campaign is None or region_code_for_number(parse(phone_number)) != "US":
        return True
    campaigns = client.messaging_10dlc.phone_number_campaigns
    with ignore_refusal():
        await call_telnyx(lambda: campaigns.create(campaign_id=campaign, phone_number=phone_number))
        return True
    with ignore_refusal():  # of a number that may be in the campaign already
        found = await call_telnyx(lambda: campaigns.retrieve(phone_number))
        return bool(found.campaign_id == campaign)
    return False


async def _direct_account(client: Any, settings: TelnyxSettings, callbacks: CallbackUrls) -> None:
    """Set the webhook addresses, which Telnyx stores with the application and the messaging profile, not with
    numbers.
    """
    connection_id, profile_id, url = settings.connection_id, settings.messaging_profile_id, callbacks.events
    application = await read_telnyx(lambda: client.call_control_applications.retrieve(connection_id))
    if application.webhook_event_url != url or application.webhook_api_version != "2":
        given = {"application_name": application.application_name, "webhook_event_url": url, "webhook_api_version": "2"}
        await call_telnyx(lambda: client.call_control_applications.update(connection_id, **given))
    if profile_id is None:
        return
    profile = await read_telnyx(lambda: client.messaging_profiles.retrieve(profile_id))
    if profile.webhook_url != url or profile.webhook_api_version != "2":
        await call_telnyx(
            lambda: client.messaging_profiles.update(profile_id, webhook_url=url, webhook_api_version="2")
        )
