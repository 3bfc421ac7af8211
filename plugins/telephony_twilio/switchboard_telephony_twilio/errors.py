"""Twilio's errors as ours: its own code and words."""

from collections.abc import Awaitable
from typing import Final, TypeVar

from switchboard.plugin_sdk import INVALID_NUMBER, OutcomeUnknown, ProviderError, UnsubscribedRecipient
from twilio.base.exceptions import TwilioException, TwilioRestException, TwilioServiceException

NOT_FOUND: Final = "20404"
CALL_OVER: Final = frozenset((NOT_FOUND, "21220"))
"""The call is not there, or not in a state that allows it (https://www.twilio.com/docs/api/errors)."""
OPTED_OUT: Final = "21610"
"""The recipient has replied STOP to this sender."""
NO_SUCH_NUMBER: Final = frozenset(("13223", "13224", "13226", "21211", "21217"))
"""What is to be called is no number, or nobody's."""
ANOTHER_CARRIER: Final = frozenset(
    ("10001", "10004", "13227", "20003", "20005", "20006", "21203", "21210", "21212", "21215", "21216", "21219")
)
"""Calls that fail because of the account, its limits, its lists, or a caller id that is not its own: another carrier may well place them."""
RETRYABLE: Final = frozenset((408, 429))

Answer = TypeVar("Answer")


async def call_twilio(request: Awaitable[Answer]) -> Answer:
    """The SDK's answer. Raises `ProviderError`; `OutcomeUnknown` for an answer that is none of Twilio's, a proxy's page say."""
    try:
        return await request
    except TwilioException as error:
        raise translate_sdk_error(error) from error
    except ValueError as error:
        raise OutcomeUnknown("Twilio's answer was not understood") from error


def require_sid(sid: str | None) -> str:
    """The id of what was made. Raises `OutcomeUnknown` where the answer has none."""
    if not sid:
        raise OutcomeUnknown("Twilio did not name what it made")
    return sid


def translate_call_error(error: ProviderError) -> ProviderError:
    """Why a call was not placed, as the platform wants to know it."""
    if error.code in NO_SUCH_NUMBER:
        return ProviderError(error.message, code=INVALID_NUMBER, retryable=False)
    if error.code in ANOTHER_CARRIER:
        return ProviderError(error.message, code=error.code)
    return error


def translate_sdk_error(error: TwilioException) -> ProviderError:
    """An answer of 400 or more; what never got an answer is told by `TwilioHttpClient`."""
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
        return UnsubscribedRecipient(told, code=OPTED_OUT, retryable=False)
    return ProviderError(told, code=str(code), retryable=status >= 500 or status in RETRYABLE)
