"""Phone numbers for sale and the account's own (https://www.plivo.com/docs/numbers/phone-numbers and
https://www.plivo.com/docs/numbers/api/account-phone-number). Plivo's id of a number is the number without its plus.
"""

from typing import Final

import msgspec
from phonenumbers import parse, region_code_for_number
from switchboard.plugin_sdk import AvailableNumber, BoughtNumber, CallbackUrls, NumberOrder, ProviderError
from switchboard.plugin_sdk.phone_numbers import NumberType

from switchboard_telephony_plivo import callbacks as paths
from switchboard_telephony_plivo.addresses import strip_plus
from switchboard_telephony_plivo.errors import is_missing
from switchboard_telephony_plivo.settings import PlivoSettings
from switchboard_telephony_plivo.transport import Parameter, PlivoClient, PlivoDone

PAGE: Final = 20
"""The most numbers that Plivo returns at once."""
# In order of preference, with Plivo's names.
_TYPES: Final[tuple[tuple[NumberType, str], ...]] = (
    ("local", "local"),
    ("mobile", "mobile"),
    ("national", "national"),
    ("toll_free", "tollfree"),
)


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
    found: list[AvailableNumber] = []
    for number_type, type_name in _TYPES:
        if len(found) >= limit or (area_code is not None and number_type == "toll_free"):
            break
        query: dict[str, str | int] = {"country_iso": country, "type": type_name, "services": "voice"}
        if area_code is not None:
            # The national form of an area code begins with a 0, which E.164 does not have.
            query["pattern"] = area_code.lstrip("0")
        numbers = await _list_numbers(client, query, limit - len(found))
        found += [_available(number, country, number_type) for number in numbers]
    return found


async def _list_numbers(client: PlivoClient, query: dict[str, str | int], limit: int) -> list[PlivoStockNumber]:
    numbers: list[PlivoStockNumber] = []
    while len(numbers) < limit:
        size = min(PAGE, limit - len(numbers))
        try:
            page = await client.get("PhoneNumber/", PlivoStock, {**query, "limit": size, "offset": len(numbers)})
        except ProviderError as error:
            if is_missing(error):  # the country has no numbers of this type
                break
            raise
        numbers += page.objects[:size]
        if len(page.objects) < size:
            break
    return numbers


def _available(number: PlivoStockNumber, country: str, number_type: NumberType) -> AvailableNumber:
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
        raise ProviderError(
            "Plivo takes an address as a part of a compliance application only", code="unsupported", retryable=False
        )
    number_id = strip_plus(order.phone_number)
    await _direct_application(client, settings.application_id, order.callbacks)
    number = await _find_own_number(client, number_id)
    if number is None:
        await _order(client, settings, order, number_id)
        number = await client.get(f"Number/{number_id}/", PlivoNumber)
    elif not (number.application or "").rstrip("/").endswith(f"/{settings.application_id}"):
        await client.post(f"Number/{number_id}/", PlivoDone, {"app_id": settings.application_id})
    texts = number.sms_enabled and await _join_campaign(client, settings.campaign_id, order.phone_number)
    return BoughtNumber(number_id, order.phone_number, sms=texts)


async def release_plivo_number(client: PlivoClient, number_id: str) -> None:
    """Release a number; no effect on one that the account no longer has. Raises `ProviderError`."""
    try:
        await client.delete(f"Number/{number_id}/")
    except ProviderError as error:
        if not is_missing(error):
            raise


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


async def _find_own_number(client: PlivoClient, number_id: str) -> PlivoNumber | None:
    try:
        return await client.get(f"Number/{number_id}/", PlivoNumber)
    except ProviderError as error:
        if is_missing(error):
            return None
        raise


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
