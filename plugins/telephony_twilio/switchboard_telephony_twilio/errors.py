"""Translation of Twilio's errors, with its own codes and messages."""

from collections.abc import Awaitable
from typing import Final, TypeVar

from switchboard.plugin_sdk import INVALID_NUMBER, OutcomeUnknown, ProviderError, UnsubscribedRecipient
from switchboard.plugin_sdk.retries import CarrierRefusal
from twilio.base.exceptions import TwilioException, TwilioRestException, TwilioServiceException

CALL_OVER: Final = frozenset(("20404", "21220"))
"""The call does not exist, or its state does not allow the request (https://www.twilio.com/docs/api/errors)."""
OPTED_OUT: Final = "21610"
"""The recipient replied STOP to this sender."""
NO_SUCH_NUMBER: Final = frozenset(("13223", "13226", "21211", "21217"))
"""The number to call is invalid or not assigned."""
ANOTHER_CARRIER: Final = frozenset(
    (
        "10001", "10004", "13224", "13227", "20003", "20005", "20006", "21203", "21210", "21212", "21215", "21216",
        "21219",
    )
)  # fmt: skip
"""Failures because of the account, its limits, its lists, a caller id of another account, or the carriers behind
Twilio: 13224 also means that none of them can deliver the call
(https://www.twilio.com/docs/api/errors/13224). Another carrier may be able to place it.
"""

Answer = TypeVar("Answer")


async def call_twilio(request: Awaitable[Answer]) -> Answer:
    """Return the result of the SDK's request.

    Raises `ProviderError`, or `OutcomeUnknown` for a response that is not Twilio's, for example a proxy's page.
    """
    try:
        return await request
    except TwilioException as error:
        raise translate_sdk_error(error) from error
    except ValueError as error:
        raise OutcomeUnknown("Twilio's answer was not understood") from error


def require_sid(sid: str | None) -> str:
    """Return the id of the created object. Raises `OutcomeUnknown` if the response has none."""
    if not sid:
        raise OutcomeUnknown("Twilio did not return the id of the created object")
    return sid


def translate_call_error(error: ProviderError) -> ProviderError:
    """Return the platform's error for a call that was not placed."""
    if error.code in NO_SUCH_NUMBER:
        return ProviderError(error.message, code=INVALID_NUMBER, retryable=False)
    if error.code in ANOTHER_CARRIER:
        return ProviderError(error.message, code=error.code)
    return error


def translate_sdk_error(error: TwilioException) -> ProviderError:
    """Translate a response of 400 or more. Requests without a response are handled by `TwilioHttpClient`."""
    if type(error) is TwilioException and len(error.args) > 1:
        # Raised by a list, whose response the SDK has not parsed.
        from twilio.base.version import Version

        error = Version.exception("GET", "", error.args[1], str(error.args[0]))
    if isinstance(error, TwilioRestException):
        # The SDK puts its own action before Twilio's message: "Unable to create record: …".
        message, code, status = error.msg.partition(": ")[2] or error.msg, error.code, error.status
    elif isinstance(error, TwilioServiceException):
        message, code, status = error.detail or error.title, error.code, error.status
    else:
        return ProviderError(str(error), retryable=False)
    message = f"Twilio: {message}" if code == status else f"Twilio: {message} (error {code})"
    if str(code) == OPTED_OUT:
        return UnsubscribedRecipient(message, code=OPTED_OUT, retryable=False)
    return CarrierRefusal(message, status, str(code))
