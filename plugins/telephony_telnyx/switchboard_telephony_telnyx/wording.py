"""Explanations of Telnyx's codes that come without one
(https://developers.telnyx.com/docs/messaging/messages/error-codes).
"""

from collections.abc import Mapping
from typing import Final

from switchboard.plugin_sdk import describe_sip_failure

_HANGUP: Final[Mapping[str, str]] = {
    "call_rejected": "the destination rejected the call",
    "not_found": "the number is not in service",
    "unspecified": "Telnyx did not say why the call failed",
}
_STREAM: Final[Mapping[str, str]] = {"connection_failed": "it could not connect to the platform"}


def describe_telnyx_call_failure(hangup_cause: str, sip_code: str) -> str:
    """Return the reason why a call failed, by its SIP response code, else by Telnyx's cause."""
    if sip_code.isdecimal():
        return describe_sip_failure(sip_code)
    return _HANGUP.get(hangup_cause, f"Telnyx ended the call: {hangup_cause or 'no cause'}")


def describe_stream_failure(reason: str) -> str:
    """Return the reason why a call's audio was not connected."""
    return f"Telnyx could not stream the call's audio: {_STREAM.get(reason, reason or 'no reason')}"
