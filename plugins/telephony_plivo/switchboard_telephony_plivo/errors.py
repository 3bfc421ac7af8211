"""Translation of Plivo's errors, which have a message and no code (https://www.plivo.com/docs/voice/api/response)."""

from typing import Final

import msgspec
from switchboard.plugin_sdk import ProviderError

NOT_FOUND: Final = 404
ANOTHER_CARRIER: Final = frozenset((401, 402, 403))
"""Failures because of the account: its credential, its balance, or a country that it may not call. Another carrier may
be able to place the call.
"""
RETRYABLE: Final = frozenset((408, 429))


class _Problem(msgspec.Struct):
    error: str = ""


class PlivoRefusal(ProviderError):
    """A response with a status of 400 or more."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, code=str(status), retryable=status >= 500 or status in RETRYABLE)
        self.status = status


def translate_refusal(status: int, body: bytes) -> PlivoRefusal:
    """Translate a response of 400 or more."""
    try:
        message = msgspec.json.decode(body, type=_Problem).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        message = ""
    return PlivoRefusal(f"Plivo: {message} ({status})" if message else f"Plivo answered {status}", status)


def translate_placement_error(error: ProviderError) -> ProviderError:
    """Return the platform's error for a call that was not placed."""
    if isinstance(error, PlivoRefusal) and error.status in ANOTHER_CARRIER:
        return ProviderError(error.message, code=error.code)
    return error


def is_missing(error: ProviderError) -> bool:
    """Return whether the object of a request does not exist, or no longer does."""
    return isinstance(error, PlivoRefusal) and error.status == NOT_FOUND
