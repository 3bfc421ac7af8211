"""Phone numbers in SIP: users of URIs to E.164, and back, and the parties of a call that a trunk brings."""

import re
from typing import Final

from aiosipua.headers import Address
from aiosipua.message import SipRequest
from phonenumbers import NumberParseException, PhoneNumberFormat, format_number, parse
from switchboard.plugin_sdk import read_verstat

from switchboard_telephony_sip.gateway.directory import TrunkLine
from switchboard_telephony_sip.settings import SipTrunk
from switchboard_telephony_sip.signaling.messages import read_address, read_uri_text

ANONYMOUS: Final = "anonymous"
_SEPARATORS: Final = re.compile(r"[\s().-]")
_VERSTAT: Final = re.compile(r";\s*verstat=([A-Za-z-]+)")
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


def read_attestation(request: SipRequest) -> dict[str, str]:
    """Return the metadata for what the trunk has found out about the number that it asserts. The caller writes From and
    display names, so they say nothing.
    """
    asserted = request.headers.get("P-Asserted-Identity")
    found = _VERSTAT.search(read_uri_text(asserted[0])) if asserted else None
    return {} if found is None else read_verstat(found[1])


def read_parties(line: TrunkLine, request: SipRequest) -> tuple[str, str]:
    """Return caller and callee. A registered trunk calls the user of the registration, and names the number in To."""
    country = line.trunk.country
    asserted = request.headers.get("P-Asserted-Identity")
    caller = read_address(asserted[0] if asserted else request.headers.get("From")[0])
    called = read_address(request.uri).uri.user or ""
    if line.trunk.registers and called == line.trunk.username:
        called = read_address(request.headers.get("To")[0]).uri.user or called
    return read_caller(caller, country), normalize_number(called, country)
