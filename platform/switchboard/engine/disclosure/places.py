"""The country or region of a phone number.

`phonenumbers.geocoder` finds regions as well, and takes 190 MB of memory in each process (9.0.33, measured). The area
codes are therefore a table of this package.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

import phonenumbers

NORTH_AMERICA: Final = 1


def find_place(phone_number: str) -> str | None:
    """Return the ISO 3166 code of an E.164 number's country (`DE`), or of its region in the US and Canada (`US-CA`).

    None if there is no number, as in calls from browsers. A number that does not tell its country has the code's main
    country: `US` for `+1`.
    """
    if not phone_number.startswith("+"):
        return None
    try:
        number = phonenumbers.parse(phone_number)
    except phonenumbers.NumberParseException:
        return None
    if number.country_code == NORTH_AMERICA:
        region = _load_regions().get(str(number.national_number)[:3])
        if region is not None:
            return region
    code = phonenumbers.region_code_for_number(number)
    return code or phonenumbers.region_code_for_country_code(number.country_code or 0)


def is_place(code: str) -> bool:
    """Return whether a code is a country with phone numbers, or a region of the US or Canada with area codes."""
    return code in phonenumbers.SUPPORTED_REGIONS or code in set(_load_regions().values())


@cache
def _load_regions() -> Mapping[str, str]:
    content = tomllib.loads(files(__package__).joinpath("area_codes.toml").read_text("utf-8"))
    return {str(code): region for region, codes in content.items() for code in codes}
