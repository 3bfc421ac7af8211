"""Telnyx's errors as ours: its own code and words (https://developers.telnyx.com/development/api-fundamentals/api-errors)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from switchboard.plugin_sdk import INVALID_NUMBER, OutcomeUnknown, ProviderError, UnsubscribedRecipient

NOT_FOUND: Final = 404
CALL_OVER: Final = frozenset(("90015", "90018"))
"""The call is nobody's, or over."""
OPTED_OUT: Final = "40300"
"""The recipient has replied STOP; also other blocks, which say so in words."""
NO_SUCH_NUMBER: Final = frozenset(("10002", "10016"))
"""What is to be called is no number."""
ANOTHER_CARRIER_STATUS: Final = frozenset((401, 402, 403))
"""Calls that fail because of the account: its credential, its balance, its permissions. Another carrier may well place them."""
RETRYABLE: Final = frozenset((408, 429))


class TelnyxRefusal(ProviderError):
    """An answer of 400 or more, with its status."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message, code=code, retryable=status >= 500 or status in RETRYABLE)
        self.status = status


def translate_status_error(error: Any) -> ProviderError:
    """The SDK's `APIStatusError`."""
    status, body = error.status_code, error.body
    problems = body.get("errors") if isinstance(body, dict) else None
    if not isinstance(problems, list) or not problems or not isinstance(problems[0], dict):
        return TelnyxRefusal(f"Telnyx answered {status}", status, str(status))
    problem = problems[0]
    code, title, detail = (str(problem.get(name) or "") for name in ("code", "title", "detail"))
    message = f"Telnyx: {title}{f': {detail}' if detail else ''} (error {code})"
    if is_opt_out(code, message):
        return UnsubscribedRecipient(message, code=OPTED_OUT, retryable=False)
    return TelnyxRefusal(message, status, code or str(status))


def is_opt_out(code: str, message: str) -> bool:
    """Whether a text was refused because of a STOP; the code alone does not tell."""
    return code == OPTED_OUT and "stop" in message.lower()


@contextmanager
def ignore_ended_call() -> Iterator[None]:
    """Commands to a call that is over do no harm."""
    try:
        yield
    except ProviderError as error:
        if error.code not in CALL_OVER and not is_gone(error):
            raise


def is_gone(error: ProviderError) -> bool:
    """Whether what was asked about is not there (any more)."""
    return isinstance(error, TelnyxRefusal) and error.status == NOT_FOUND


def translate_dial_error(error: ProviderError, to_number: str) -> ProviderError:
    """Why a call was not placed, as the platform wants to know it."""
    if error.code in NO_SUCH_NUMBER and ("'to'" in error.message or to_number in error.message):
        return ProviderError(error.message, code=INVALID_NUMBER, retryable=False)
    if isinstance(error, TelnyxRefusal) and error.status in ANOTHER_CARRIER_STATUS:
        return ProviderError(error.message, code=error.code)
    return error


def read_field(answer: Any, name: str = "") -> Any:
    """What an answer holds, or the named part of it. Raises `ProviderError` for an answer that is none of Telnyx's, a proxy's page say."""
    data = getattr(answer, "data", None)
    found = getattr(data, name, None) if name else data
    if found is None or found == "":
        raise ProviderError("Telnyx's answer was not understood")
    return found


def require_created_id(answer: Any, name: str) -> str:
    """The id of what was made. Raises `OutcomeUnknown` where the answer has none."""
    try:
        return str(read_field(answer, name))
    except ProviderError as error:
        raise OutcomeUnknown(error.message) from error
