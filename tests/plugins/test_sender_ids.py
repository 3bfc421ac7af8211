"""Alphanumeric senders of text messages: the rules of the setting, and the messages that have them."""

from dataclasses import replace

import pytest
from pydantic import TypeAdapter, ValidationError
from switchboard.plugin_sdk import CallbackUrls, OutboundTextMessage
from switchboard.plugin_sdk.sender_ids import SenderIds, choose_sender

SETTING: TypeAdapter[SenderIds] = TypeAdapter(SenderIds)
MESSAGE = OutboundTextMessage("text", "+12125550100", "+447700900123", "Hello", CallbackUrls("https://voice.example"))
SENDERS = {"GB": "ACME", "DE": "ACME GmbH", "JM": "ACME JM"}


@pytest.mark.parametrize("sender_id", ["A", "ACME", "1and1", "ACME Ltd 24", "abcdefghijk", "24h"])
def test_senders_have_letters_digits_and_spaces(sender_id: str) -> None:
    assert SETTING.validate_python({"GB": sender_id}) == {"GB": sender_id}


@pytest.mark.parametrize(
    "sender_id",
    ["", " ", "12345", "+447700900123", "abcdefghijkl", "ACME!", "A_B", "Zoë", " ACME", "ACME ", "ACME\n", "1 2 3"],
)
def test_other_senders_are_refused(sender_id: str) -> None:
    with pytest.raises(ValidationError, match="the sender of GB must have 1 to 11 letters"):
        SETTING.validate_python({"GB": sender_id})


@pytest.mark.parametrize("country", ["US", "CA", "PR"])
def test_countries_without_senders_are_refused(country: str) -> None:
    with pytest.raises(ValidationError, match=f"phones in {country} take text messages from phone numbers only"):
        SETTING.validate_python({country: "ACME"})


@pytest.mark.parametrize("country", ["", "UK", "gb", "GBR", "+44"])
def test_unknown_countries_are_refused(country: str) -> None:
    with pytest.raises(ValidationError, match="is not an ISO 3166-1 alpha-2 code"):
        SETTING.validate_python({country: "ACME"})


@pytest.mark.parametrize(
    ("to_number", "sender"),
    [
        ("+447700900123", "ACME"),
        ("+442079460000", "ACME"),
        ("+4915112345678", "ACME GmbH"),
        ("+18765550100", "ACME JM"),
        ("+33612345678", "+12125550100"),
        ("+15550100001", "+12125550100"),
        ("+999", "+12125550100"),
    ],
)
def test_the_recipients_country_decides(to_number: str, sender: str) -> None:
    assert choose_sender(replace(MESSAGE, to_number=to_number), SENDERS) == sender


def test_conversations_and_files_come_from_the_number() -> None:
    assert choose_sender(replace(MESSAGE, in_conversation=True), SENDERS) == "+12125550100"
    assert choose_sender(replace(MESSAGE, media_urls=("https://example.com/a.jpg",)), SENDERS) == "+12125550100"
    assert choose_sender(MESSAGE, {}) == "+12125550100"
