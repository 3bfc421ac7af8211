"""Explanations of SIP response codes for people who place calls (RFC 3261; 607 and 608: RFC 8197 and RFC 8688)."""

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


def describe_sip_failure(code: str) -> str:
    """Return the reason why a call failed, by its SIP response code."""
    return _SIP.get(code, f"the destination's network answered with SIP code {code}")
