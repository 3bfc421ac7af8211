"""Explanations of Plivo's codes that come without one (https://www.plivo.com/docs/messaging/troubleshooting/error-codes
and https://www.plivo.com/docs/voice/troubleshooting/hangup-causes, read in November 2026).
"""

from collections.abc import Mapping
from typing import Final

_TEXT: Final[Mapping[str, str]] = {
    "10": "the recipient's network found the text message invalid",
    "20": "the recipient's network failed",
    "30": "the text message was filtered as unwanted",
    "40": "the sender's number is not valid, or cannot send text messages",
    "50": "the recipient's number is not valid, or cannot receive text messages",
    "60": "the text message went round in a circle",
    "70": "the recipient's phone cannot be reached any more",
    "80": "the recipient's phone cannot be reached at the moment",
    "90": "Plivo has no route to the recipient's network",
    "100": "the recipient's network does not take the text message",
    "110": "the text message is too long",
    "200": "the recipient has opted out of text messages from this number",
    "201": "toll-free numbers of the United States cannot send text messages to Canada",
    "300": "Plivo failed to pass the text message on",
    "420": "the text message expired before it could be sent",
    "450": "text messages to that country are not enabled in the Plivo account",
    "900": "the Plivo account has no balance",
    "910": "the Plivo account is disabled",
    "1000": "the recipient's network gave no reason",
}


def describe_plivo_call_failure(code: str, name: str) -> str:
    """Return the reason why a call failed, by the name and code of Plivo's hang-up cause."""
    if not name:
        return f"Plivo ended the call with cause {code}" if code else "Plivo did not say why the call failed"
    return f"Plivo: {name} (cause {code})" if code else f"Plivo: {name}"


def describe_plivo_text_failure(code: str, status: str) -> str:
    """Return the reason why a text message was not delivered, by Plivo's error code."""
    if not code:
        return f"Plivo did not say why the text message is {status}"
    return f"{_TEXT[code]} (error {code})" if code in _TEXT else f"Plivo error {code}"
