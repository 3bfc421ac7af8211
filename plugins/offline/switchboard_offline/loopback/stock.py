"""The carrier's numbers for sale: fixed ones, from ranges that regulators reserve for fiction."""

import re
from itertools import islice
from typing import Final

from switchboard.plugin_sdk import AvailableNumber, BoughtNumber, ProviderError

# Per country: prefix, monthly cost in US dollars, and per area code the digits before the last two, and the city.
_RANGES: Final[dict[str, tuple[str, float, dict[str, tuple[str, str]]]]] = {
    "US": (
        "+1",
        1.15,
        {
            "212": ("55501", "New York"),
            "312": ("55501", "Chicago"),
            "415": ("55501", "San Francisco"),
            "512": ("55501", "Austin"),
        },
    ),
    "CA": ("+1", 1.15, {"416": ("55501", "Toronto"), "514": ("55501", "Montreal"), "604": ("55501", "Vancouver")}),
    "GB": ("+44", 1.30, {"20": ("794600", "London"), "121": ("49600", "Birmingham"), "161": ("49600", "Manchester")}),
    "DE": ("+49", 1.40, {"30": ("231250", "Berlin"), "40": ("669690", "Hamburg"), "89": ("999980", "Munich")}),
    "FR": ("+33", 1.40, {"1": ("990000", "Paris"), "4": ("657100", "Lyon"), "5": ("364900", "Bordeaux")}),
    "AU": ("+61", 2.00, {"2": ("555000", "Sydney"), "3": ("555000", "Melbourne")}),
}
_E164: Final = re.compile(r"\+[1-9][0-9]{6,14}")


def search_stock(country: str, area_code: str | None, limit: int) -> tuple[AvailableNumber, ...]:
    """List at most 99 numbers per area; none for a country or an area that the carrier does not serve."""
    if country not in _RANGES:
        return ()
    prefix, cost, areas = _RANGES[country]
    if area_code is not None:
        # Every North American area code has 555 numbers, so any valid one is served, without a city.
        fallback = ("55501", "") if prefix == "+1" and re.fullmatch(r"[2-9][0-9]{2}", area_code) else None
        area = areas.get(area_code.lstrip("0"), fallback)
        areas = {} if area is None else {area_code.lstrip("0"): area}
    numbers = (
        (f"{prefix}{area_code}{middle}{last:02}", locality)
        for last in range(99)
        for area_code, (middle, locality) in areas.items()
    )
    return tuple(
        AvailableNumber(number, number, country, locality=locality or None, monthly_cost=cost, setup_cost=0.0)
        for number, locality in islice(numbers, limit)
    )


def buy_from_stock(phone_number: str) -> BoughtNumber:
    """Buy a number.

    Raises `ProviderError` for an invalid number, and for a number that ends in 99, which is always taken.
    """
    if not _E164.fullmatch(phone_number):
        raise ProviderError(f"{phone_number!r} is not a phone number", code="invalid_number", retryable=False)
    if phone_number.endswith("99"):
        raise ProviderError(f"{phone_number} is taken", code="number_taken", retryable=False)
    return BoughtNumber(f"ln-{phone_number[1:]}", phone_number)
