"""Alphanumeric senders of text messages, by the country of the recipient: a setting that carriers share.

The rules are those that the carriers agree on: 1 to 11 letters, digits, and spaces, at least one of them a letter, and
not to North American numbers (https://developers.telnyx.com/docs/messaging/messages/alphanumeric-sender-id,
https://www.twilio.com/docs/glossary/what-alphanumeric-sender-id, and
https://www.plivo.com/docs/messaging/api/message/send-a-message, read in November 2026).
"""

import re
from typing import Annotated, Final, TypeAlias

from phonenumbers import (
    SUPPORTED_REGIONS,
    NumberParseException,
    parse,
    region_code_for_country_code,
    region_code_for_number,
)
from pydantic import AfterValidator

from switchboard.plugin_sdk.telephony import OutboundTextMessage

WITHOUT_SENDER_IDS: Final = frozenset(("CA", "PR", "US"))
"""Countries whose networks take phone numbers only, at every carrier. Others are closed at some carriers, which then
refuse the message.
"""
_SENDER_ID: Final = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9](?:[A-Za-z0-9 ]{0,9}[A-Za-z0-9])?")


def _validate_sender_ids(value: dict[str, str]) -> dict[str, str]:
    for country, sender_id in value.items():
        if country not in SUPPORTED_REGIONS:
            raise ValueError(f"{country!r} is not an ISO 3166-1 alpha-2 code of a country, such as GB")
        if country in WITHOUT_SENDER_IDS:
            raise ValueError(f"phones in {country} take text messages from phone numbers only")
        if not _SENDER_ID.fullmatch(sender_id):
            raise ValueError(
                f"the sender of {country} must have 1 to 11 letters, digits, and inner spaces, and at least one letter"
            )
    return value


SenderIds: TypeAlias = Annotated[dict[str, str], AfterValidator(_validate_sender_ids)]
"""Senders by ISO 3166-1 alpha-2 code of the recipient's country, for a field of a carrier's settings."""


def choose_sender(order: OutboundTextMessage, sender_ids: SenderIds) -> str:
    """Return the alphanumeric sender for a text message, else its phone number.

    A message of a conversation comes from the number, because the contact could not answer any more, and so does one
    with files, which networks take from numbers only.
    """
    if order.in_conversation or order.media_urls:
        return order.from_number
    return sender_ids.get(_find_country(order.to_number), order.from_number)


def _find_country(number: str) -> str:
    """Return the country of a number in E.164; that of its country code for a number outside the numbering plans."""
    try:
        parsed = parse(number)
    except NumberParseException:
        return ""
    return region_code_for_number(parsed) or region_code_for_country_code(parsed.country_code or 0)
