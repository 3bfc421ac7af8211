"""Phone numbers in SIP: users of URIs to E.164, and back."""

import re
from typing import Final

from aiosipua.headers import Address
from phonenumbers import NumberParseException, PhoneNumberFormat, format_number, parse

from switchboard_telephony_sip.settings import SipTrunk

ANONYMOUS: Final = "anonymous"
_SEPARATORS: Final = re.compile(r"[\s().-]")
_INTERNATIONAL: Final = re.compile(r"\+[1-9][0-9]{6,14}")


def normalize_number(user: str, country: str | None) -> str:
    """Return a dialed or calling number in E.164, or as it came if it is not a phone number, such as an extension.

    Digits without a plus are national with a country, and international without one.
    """
    digits = _SEPARATORS.sub("", user.partition(";")[0])
    if digits.startswith("00"):
        digits = f"+{digits[2:]}"
    if _INTERNATIONAL.fullmatch(digits):
        return digits
    if not digits.isdecimal():
        return user.partition(";")[0]
    if country is None:
        return f"+{digits}" if _INTERNATIONAL.fullmatch(f"+{digits}") else digits
    try:
        return format_number(parse(digits, country), PhoneNumberFormat.E164)
    except NumberParseException:
        return digits


def read_caller(address: Address, country: str | None) -> str:
    """Return a caller's number; `anonymous` for one that is withheld (RFC 3323, section 4.1)."""
    user = address.uri.user or (address.uri.host if address.uri.scheme == "tel" else "")
    if not user or user.lower() == ANONYMOUS or address.uri.host.endswith(".invalid"):
        return ANONYMOUS
    return normalize_number(user, country)


def write_number(number: str, trunk: SipTrunk) -> str:
    """Return a number as a trunk wants it dialed."""
    return number if trunk.plus else number.removeprefix("+")
