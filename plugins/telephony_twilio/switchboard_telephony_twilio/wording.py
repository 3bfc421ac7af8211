"""Explanations of Twilio's error codes, for callbacks that contain only the code
(https://www.twilio.com/docs/api/errors).
"""

from collections.abc import Mapping
from typing import Final

from switchboard.plugin_sdk import describe_sip_failure

_TEXT: Final[Mapping[str, str]] = {
    "21211": "the recipient's number is not valid",
    "21408": "text messages to that country are not enabled in the Twilio account",
    "21610": "the recipient has opted out of text messages from this number",
    "21611": "too many text messages are queued for this number",
    "21612": "Twilio cannot send text messages between these two numbers",
    "21614": "the recipient's number is not a mobile number",
    "21617": "the text message is too long",
    "30001": "too many text messages are queued for this number",
    "30002": "the Twilio account is suspended",
    "30003": "the recipient's phone cannot be reached",
    "30004": "the recipient does not accept text messages from this number",
    "30005": "the recipient's number is unknown",
    "30006": "the recipient's number is a landline, or its network cannot be reached",
    "30007": "the text message was filtered as unwanted",
    "30008": "the recipient's network gave no reason",
    "30009": "a segment of the text message was lost",
    "30010": "the text message would exceed the maximum price",
    "30011": "the recipient's network does not support media",
    "30012": "the validity period of the text message is too short",
    "30013": "the validity period of the text message is too long",
    "30014": "the recipient's number is not valid",
    "30015": "the recipient is on a channel that Twilio does not serve",
    "30016": "sender and recipient are on different channels",
    "30017": "the recipient's network is congested",
    "30018": "the recipient's network accepts registered senders only",
    "30019": "the text message is larger than the recipient's network allows",
    "30020": "Twilio failed to schedule the text message",
    "30021": "Twilio failed to choose a sender",
    "30022": "the sender has exceeded its registered rate",
    "30023": "the sender has reached its daily limit",
    "30024": "the sender's number is not set up at the recipient's network",
    "30027": "the sender has reached the daily limit of the recipient's network",
    "30032": "the toll-free sender has not been verified",
    "30033": "the sender's campaign is suspended",
    "30034": "the sender's number is not registered for text messages to the United States (A2P 10DLC)",
    "30035": "the sender's number is still being registered",
    "30041": "the sender's number is not registered for text messages to the United Kingdom",
    "30410": "the recipient's network did not answer in time",
    "30450": "the text message was blocked",
}


def describe_twilio_call_failure(error_code: str, sip_code: str) -> str:
    """Return the reason why a call failed, by Twilio's error code, else by its SIP response code."""
    if error_code:
        return _link_to_documentation(error_code)
    if not sip_code:
        return "Twilio did not say why the call failed"
    return describe_sip_failure(sip_code)


def describe_text_failure(error_code: str, status: str) -> str:
    """Return the reason why a text message was not delivered, by Twilio's error code."""
    if not error_code:
        return f"Twilio did not say why the text message is {status}"
    return f"{_TEXT[error_code]} (error {error_code})" if error_code in _TEXT else _link_to_documentation(error_code)


def _link_to_documentation(code: str) -> str:
    return f"Twilio error {code}, see https://www.twilio.com/docs/errors/{code}"
