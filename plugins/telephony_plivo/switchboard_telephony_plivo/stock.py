"""Phone numbers for sale and the account's own (https://www.plivo.com/docs/numbers/phone-numbers and
https://www.plivo.com/docs/numbers/api/account-phone-number). Plivo's id of a number is the number without its plus.
"""

from typing import Final

import msgspec
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

from switchboard_telephony_plivo import callbacks as paths
from switchboard_telephony_plivo.addresses import strip_plus
from switchboard_telephony_plivo.settings import PlivoSettings
from switchboard_telephony_plivo.transport import Parameter, PlivoClient, PlivoDone

PAGE: Final = 20
"""The most numbers that Plivo returns at once."""


class PlivoStockNumber(msgspec.Struct):
    """A number for sale."""

    number: str
    city: str | None = None
    region: str | None = None
    monthly_rental_rate: str = "0"
    setup_rate: str = "0"
    voice_enabled: bool = False
    sms_enabled: bool = False
    mms_enabled: bool = False


class PlivoStock(msgspec.Struct):
    objects: list[PlivoStockNumber]


class PlivoNumber(msgspec.Struct):
    """A number of the account. `application` is the path of its application."""

    number: str
    application: str | None = None
    sms_enabled: bool = False


class PlivoOrderedNumber(msgspec.Struct):
    status: str


class PlivoOrder(msgspec.Struct):
    numbers: list[PlivoOrderedNumber]


async def search_plivo_numbers(
    client: PlivoClient, country: str, area_code: str | None, limit: int
) -> list[AvailableNumber]:
    """List numbers with voice, local ones first, then other types up to `limit`. Raises `ProviderError`."""
    # The national form of an area code begins with a 0, which E.164 does not have.
    pattern = {} if area_code is None else {"pattern": area_code.lstrip("0")}

    async def search(number_type: NumberType, most: int) -> list[AvailableNumber]:
        numbers: list[PlivoStockNumber] = []
        query = {"country_iso": country, "type": number_type.replace("_", ""), "services": "voice", **pattern}
        with ignore_missing():  # the country has no numbers of this type
            while len(numbers) < most:
                size = min(PAGE, most - len(numbers))
                page = await client.get("PhoneNumber/", PlivoStock, {**query, "limit": size, "offset": len(numbers)})
                numbers += page.objects[:size]
                if len(page.objects) < size:
                    break
        return [_convert(number, country, number_type) for number in numbers]

    return await search_by_type(area_code, limit, search)


def _convert(number: PlivoStockNumber, country: str, number_type: NumberType) -> AvailableNumber:
    phone_number = f"+{strip_plus(number.number)}"
    return AvailableNumber(
        phone_number=phone_number,
        friendly_name=phone_number,
        country=country,
        region=number.region or None,
        locality=number.city or None,
        number_type=number_type,
        voice=number.voice_enabled,
        sms=number.sms_enabled,
        mms=number.mms_enabled,
        monthly_cost=float(number.monthly_rental_rate),
        setup_cost=float(number.setup_rate),
    )


async def buy_plivo_number(client: PlivoClient, settings: PlivoSettings, order: NumberOrder) -> BoughtNumber:
    """Buy a number unless the account has it, and direct it to the platform. Raises `ProviderError`."""
    if order.carrier_address is not None:
        raise UnsupportedRequest("Plivo takes an address as a part of a compliance application only")
    number_id = strip_plus(order.phone_number)
    await _direct_application(client, settings.application_id, order.callbacks)
    number: PlivoNumber | None = None
    with ignore_missing():
        number = await client.get(f"Number/{number_id}/", PlivoNumber)
    if number is None:
        await _order(client, settings, order, number_id)
        number = await client.get(f"Number/{number_id}/", PlivoNumber)
    elif not (number.application or "").rstrip("/").endswith(f"/{settings.application_id}"):
        await client.post(f"Number/{number_id}/", PlivoDone, {"app_id": settings.application_id})
    texts = number.sms_enabled and await _join_campaign(client, settings.campaign_id, order.phone_number)
    return BoughtNumber(number_id, order.phone_number, sms=texts)


async def _direct_application(client: PlivoClient, application_id: str, callbacks: CallbackUrls) -> None:
    """Set the callback addresses, which Plivo stores with the application, not with numbers."""
    given: dict[str, Parameter] = {
        "answer_url": f"{callbacks.events}/{paths.CALL}",
        "answer_method": "POST",
        "hangup_url": f"{callbacks.events}/{paths.STATUS}",
        "hangup_method": "POST",
        "message_url": f"{callbacks.events}/{paths.MESSAGE}",
        "message_method": "POST",
    }
    await client.post(f"Application/{application_id}/", PlivoDone, given)


async def _order(client: PlivoClient, settings: PlivoSettings, order: NumberOrder, number_id: str) -> None:
    given: dict[str, Parameter] = {"app_id": settings.application_id}
    requirements = order.carrier_requirements or settings.compliance_application_id
    if requirements is not None:
        given["compliance_application_id"] = requirements
    bought = await client.post(f"PhoneNumber/{number_id}/", PlivoOrder, given, creates=True)
    if any(number.status.lower() == "pending" for number in bought.numbers):
        raise ProviderError(
            f"Plivo has reserved {order.phone_number} and wants the documents that its country demands: see the "
            "e-mail to the account",
            code="order_pending",
            retryable=False,
        )


async def _join_campaign(client: PlivoClient, campaign: str | None, phone_number: str) -> bool:
    """Link a US number to the 10DLC campaign, if there is one; return whether it can send texts then.

    The number is bought by now, so a refusal does not undo the purchase. Raises `ProviderError` if it is worth a
    repetition (https://www.plivo.com/docs/messaging/api/10dlc/campaign).
    """
    if campaign is None or region_code_for_number(parse(phone_number)) != "US":
        return True
    try:
        await client.post(f"10dlc/Campaign/{campaign}/Number/", PlivoDone, {"numbers": [strip_plus(phone_number)]})
    except ProviderError as error:
        if error.retryable:
            raise
        return "already" in error.message
    return True
