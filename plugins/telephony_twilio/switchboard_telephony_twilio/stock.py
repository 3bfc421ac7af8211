"""Phone numbers for sale, and their prices (https://www.twilio.com/docs/phone-numbers/api)."""

from collections.abc import Mapping
from typing import Any, Final

from phonenumbers import country_code_for_region
from switchboard.plugin_sdk import AvailableNumber, ProviderError
from switchboard.plugin_sdk.phone_numbers import NumberType

from switchboard_telephony_twilio.errors import NOT_FOUND, call_twilio

AREA_CODES: Final = ("US", "CA")
"""Countries in which Twilio searches by area code."""
# In order of preference: the SDK's type, its resource, and the type in the price list.
_TYPES: Final[tuple[tuple[NumberType, str, str], ...]] = (
    ("local", "local", "local"),
    ("mobile", "mobile", "mobile"),
    ("national", "national", "national"),
    ("toll_free", "toll_free", "toll free"),
)


async def search_twilio_numbers(client: Any, country: str, area_code: str | None, limit: int) -> list[AvailableNumber]:
    """List numbers with voice, local ones first, then other types up to `limit`. Raises `ProviderError`."""
    prices = await _prices(client, country)
    found: list[AvailableNumber] = []
    for number_type, resource, priced_as in _TYPES:
        if len(found) >= limit or (area_code is not None and number_type == "toll_free"):
            break
        numbers = await _of_type(
            getattr(client.available_phone_numbers(country), resource), country, area_code, limit - len(found)
        )
        found += [_number(number, number_type, prices.get(priced_as, 0.0)) for number in numbers]
    return found


async def _of_type(resource: Any, country: str, area_code: str | None, limit: int) -> list[Any]:
    given: dict[str, Any] = {"voice_enabled": True, "limit": limit, "page_size": limit}
    if area_code is not None and country in AREA_CODES:
        given["area_code"] = area_code
    elif area_code is not None:
        # A pattern that begins with + matches from the start of the number. The national form of an area code begins
        # with a 0, which E.164 does not have.
        given["contains"] = f"+{country_code_for_region(country)}{area_code.lstrip('0')}%"
    try:
        return list(await call_twilio(resource.list_async(**given)))
    except ProviderError as error:
        if error.code == NOT_FOUND:  # the country has no numbers of this type
            return []
        raise


async def _prices(client: Any, country: str) -> Mapping[str, float]:
    """Return monthly prices in US dollars by number type. Raises `ProviderError`."""
    try:
        answer = await call_twilio(client.pricing.v1.phone_numbers.countries(country).fetch_async())
    except ProviderError as error:
        if error.code == NOT_FOUND:
            return {}
        raise
    return {price["number_type"]: float(price["current_price"]) for price in answer.phone_number_prices or ()}


def _number(number: Any, number_type: NumberType, monthly_cost: float) -> AvailableNumber:
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
