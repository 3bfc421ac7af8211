"""Twilio's errors as ours: its own code and words."""

from collections.abc import Awaitable
from typing import Final, TypeVar

from switchboard.plugins import ProviderError, RecipientOptedOut
from twilio.base.exceptions import TwilioException, TwilioRestException, TwilioServiceException

NOT_FOUND: Final = "20404"
CALL_OVER: Final = frozenset((NOT_FOUND, "21220", "21221"))
"""The call is not there, or not in a state that allows it (https://www.twilio.com/docs/api/errors)."""
OPTED_OUT: Final = "21610"
"""The recipient has replied STOP to this sender."""
RETRYABLE: Final = frozenset((408, 429))

Answer = TypeVar("Answer")


async def asked(request: Awaitable[Answer]) -> Answer:
    """The SDK's answer. Raises `ProviderError`."""
    try:
        return await request
    except TwilioException as error:
        raise provider_error(error) from error


def provider_error(error: TwilioException) -> ProviderError:
    """An answer of 400 or more; what never got an answer is told by `Http`."""
    if type(error) is TwilioException and len(error.args) > 1:
        # A list's: the SDK has not read the answer that it raises.
        from twilio.base.version import Version

        error = Version.exception("GET", "", error.args[1], str(error.args[0]))
    if isinstance(error, TwilioRestException):
        # The SDK puts what it was doing before Twilio's words: "Unable to create record: …".
        message, code, status = error.msg.partition(": ")[2] or error.msg, error.code, error.status
    elif isinstance(error, TwilioServiceException):
        message, code, status = error.detail or error.title, error.code, error.status
    else:
        return ProviderError(str(error), retryable=False)
    told = f"Twilio: {message}" if code == status else f"Twilio: {message} (error {code})"
    if str(code) == OPTED_OUT:
        return RecipientOptedOut(told, code=OPTED_OUT, retryable=False)
    return ProviderError(told, code=str(code), retryable=status >= 500 or status in RETRYABLE)
