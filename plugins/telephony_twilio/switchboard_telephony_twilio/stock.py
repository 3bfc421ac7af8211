"""Phone numbers for sale, their prices, and the account's own (https://www.twilio.com/docs/phone-numbers/api)."""

from typing import Any, Final

from phonenumbers import country_code_for_region
from switchboard.plugin_sdk import AvailableNumber, BoughtNumber, NumberOrder, ProviderError
from switchboard.plugin_sdk.phone_numbers import NumberType, search_by_type
from switchboard.plugin_sdk.retries import ignore_missing

from switchboard_telephony_twilio import callbacks as paths
from switchboard_telephony_twilio.errors import call_twilio, require_sid
from switchboard_telephony_twilio.settings import TwilioSettings

AREA_CODES: Final = ("US", "CA")
"""Countries in which Twilio searches by area code."""
IN_SERVICE: Final = "21710"
"""Error of a number that the messaging service has already (https://www.twilio.com/docs/api/errors/21710)."""


async def search_twilio_numbers(client: Any, country: str, area_code: str | None, limit: int) -> list[AvailableNumber]:
    """List numbers with voice, local ones first, then other types up to `limit`. Raises `ProviderError`."""
    monthly_prices: dict[str, float] = {}
    with ignore_missing():
        priced = await call_twilio(client.pricing.v1.phone_numbers.countries(country).fetch_async())
        prices = priced.phone_number_prices or ()
        monthly_prices = {price["number_type"]: float(price["current_price"]) for price in prices}
    given: dict[str, Any] = {"voice_enabled": True}
    if area_code is not None and country in AREA_CODES:
        given["area_code"] = area_code
    elif area_code is not None:
        # A pattern that begins with + matches from the start of the number. The national form of an area code begins
        # with a 0, which E.164 does not have.
        given["contains"] = f"+{country_code_for_region(country)}{area_code.lstrip('0')}%"

    async def search(number_type: NumberType, most: int) -> list[AvailableNumber]:
        resource = getattr(client.available_phone_numbers(country), number_type)
        numbers: list[Any] = []
        with ignore_missing():  # the country has no numbers of this type
            numbers = await call_twilio(resource.list_async(**given, limit=most, page_size=most))
        monthly_cost = monthly_prices.get(number_type.replace("_", " "), 0.0)
        return [_convert(number, number_type, monthly_cost) for number in numbers]

    return await search_by_type(area_code, limit, search)


def _convert(number: Any, number_type: NumberType, monthly_cost: float) -> AvailableNumber:
    able = read_capabilities(number)
    return AvailableNumber(
        phone_number=number.phone_number,
        friendly_name=number.friendly_name or number.phone_number,
        country=number.iso_country,
        region=number.region or None,
        locality=number.locality or None,
        postal_code=number.postal_code or None,
        number_type=number_type,
        voice=able["voice"],
        sms=able["sms"],
        mms=able["mms"],
        monthly_cost=monthly_cost,
    )


def read_capabilities(number: Any) -> dict[str, bool]:
    """Return a number's capabilities. Twilio's spelling of the names differs between resources."""
    able = {name.lower(): bool(value) for name, value in (number.capabilities or {}).items()}
    return {name: able.get(name, False) for name in ("voice", "sms", "mms")}


async def buy_twilio_number(client: Any, settings: TwilioSettings, order: NumberOrder) -> BoughtNumber:
    """Buy a number, or take one that the account already has, and direct it to the platform either way.

    Raises `ProviderError`.
    """
    events = order.callbacks.events
    directed = {
        "voice_url": f"{events}/{paths.CALL}",
        "voice_method": "POST",
        "status_callback": f"{events}/{paths.STATUS}",
        "status_callback_method": "POST",
        "sms_url": f"{events}/{paths.TEXT}",
        "sms_method": "POST",
    }
    numbers, wanted = client.incoming_phone_numbers, order.phone_number
    ours = await call_twilio(numbers.list_async(phone_number=wanted, limit=20))
    known = next((number for number in ours if number.phone_number == wanted), None)
    if known is None:
        requirements = {
            "address_sid": order.carrier_address or settings.address_sid,
            "bundle_sid": order.carrier_requirements or settings.bundle_sid,
        }
        demanded = {name: sid for name, sid in requirements.items() if sid is not None}
        bought = await call_twilio(numbers.create_async(phone_number=wanted, **directed, **demanded))
    else:
        # A number with one of these ignores its webhook addresses.
        elsewhere = {"voice_application_sid": "", "sms_application_sid": "", "trunk_sid": ""}
        bought = await call_twilio(numbers(known.sid).update_async(**directed, **elsewhere))
    number_id = require_sid(bought.sid)
    texts = read_capabilities(bought)["sms"] and await _join_messaging_service(client, settings, number_id)
    return BoughtNumber(number_id, bought.phone_number, sms=texts)


async def _join_messaging_service(client: Any, settings: TwilioSettings, number_id: str) -> bool:
    """Add a number to the messaging service, if there is one; return whether it can send texts then.

    The number is bought by now, so a refusal does not undo the purchase. Raises `ProviderError` if it is worth a
    repetition.
    """
    if settings.messaging_service_sid is None:
        return True
    senders = client.messaging.v1.services(settings.messaging_service_sid).phone_numbers
    try:
        await call_twilio(senders.create_async(phone_number_sid=number_id))
    except ProviderError as error:
        if error.retryable:
            raise
        return error.code == IN_SERVICE
    return True
