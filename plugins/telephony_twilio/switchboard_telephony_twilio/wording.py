"""What Twilio's numbers mean, where a callback has the number alone (https://www.twilio.com/docs/api/errors and SIP's own, RFC 3261)."""

from collections.abc import Mapping
from typing import Final

_SIP: Final[Mapping[str, str]] = {
    "400": "the destination's network did not understand the call",
    "401": "the destination's network refused the call",
    "403": "the destination's network does not allow the call",
    "404": "the number is not in service",
    "407": "the destination's network refused the call",
    "408": "the destination did not answer in time",
    "410": "the number is not in service any more",
    "415": "the destination cannot take this kind of call",
    "480": "the destination cannot be reached at the moment",
    "481": "the destination's network has lost the call",
    "482": "the call went round in a circle",
    "484": "the number is not complete",
    "486": "the destination is busy",
    "487": "the call was given up before it was answered",
    "488": "the destination cannot take this kind of call",
    "500": "the destination's network failed",
    "502": "the destination's network failed",
    "503": "the destination's network is not available",
    "504": "the destination's network did not answer in time",
    "600": "the destination is busy",
    "603": "the person declined the call",
    "604": "the number does not exist",
    "606": "the destination cannot take this kind of call",
    "607": "the person does not want such calls",
    "608": "the destination's network rejected the call as unwanted",
}
_TEXT: Final[Mapping[str, str]] = {
    "21211": "the recipient's number is not valid",
    "21408": "texts to that country are not enabled in the Twilio account",
    "21610": "the recipient has opted out of texts from this number",
    "21611": "too many texts wait at this number",
    "21612": "Twilio cannot carry texts between these two numbers",
    "21614": "the recipient's number is no mobile number",
    "21617": "the text is too long",
    "30001": "too many texts wait at this number",
    "30002": "the Twilio account is suspended",
    "30003": "the recipient's phone cannot be reached",
    "30004": "the recipient does not take texts from this number",
    "30005": "the recipient's number is unknown",
    "30006": "the recipient's number is a landline, or its network cannot be reached",
    "30007": "the text was filtered as unwanted",
    "30008": "the recipient's network gave no reason",
    "30009": "a part of the text was lost",
    "30010": "the text would cost more than allowed",
    "30011": "the recipient's network takes no pictures",
    "30017": "the recipient's network is congested",
    "30019": "the text is larger than the recipient's network allows",
    "30022": "the sender has exceeded its registered rate",
    "30023": "the sender has reached its daily limit",
    "30024": "the sender's number is being set up",
    "30032": "the toll-free sender has not been verified",
    "30033": "the sender's campaign is suspended",
    "30034": "the sender's number is not registered for texts to the United States (A2P 10DLC)",
    "30035": "the sender's number is still being registered",
    "30036": "the text was not delivered within its time",
    "30037": "texts from this account are disabled",
    "30038": "the one-time password was not sent",
    "30039": "the text is part of a loop",
    "30040": "the recipient's network needs the sender to be registered",
    "30410": "the recipient's network did not answer in time",
    "30450": "texts of this kind are blocked by Twilio's protection against fraud",
    "30453": "the text was blocked by Twilio's protection against fraud",
    "30454": "the number has got too many texts today",
    "30500": "Twilio failed",
}


def sip_failure(code: str) -> str:
    """Why a call failed, by the SIP response that Twilio tells."""
    if not code:
        return "Twilio did not say why the call failed"
    return _SIP.get(code, f"the destination's network answered with SIP code {code}")


def text_failure(code: str, status: str) -> str:
    """Why a text was not delivered, by Twilio's error code."""
    if not code:
        return f"Twilio did not say why the text is {status}"
    return f"{_TEXT[code]} (error {code})" if code in _TEXT else f"Twilio error {code}"
