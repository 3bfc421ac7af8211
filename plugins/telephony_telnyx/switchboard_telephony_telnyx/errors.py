"""Translation of Telnyx's errors, with its own codes and messages
(https://developers.telnyx.com/development/api-fundamentals/api-errors).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from switchboard.plugin_sdk import INVALID_NUMBER, OutcomeUnknown, ProviderError, UnsubscribedRecipient
from switchboard.plugin_sdk.retries import CarrierRefusal, allow_another_carrier, is_missing

CALL_OVER: Final = frozenset(("90015", "90018"))
"""The call is over, or no call has the id."""
OPTED_OUT: Final = "40300"
"""The recipient replied STOP. Other blocks have this code too; only the message distinguishes them."""
NO_SUCH_NUMBER: Final = frozenset(("10002", "10016"))
"""The number to call is not a valid number."""


def translate_status_error(error: Any) -> ProviderError:
    """Translate the SDK's `APIStatusError`."""
    status, body = error.status_code, error.body
    problems = body.get("errors") if isinstance(body, dict) else None
    if not isinstance(problems, list) or not problems or not isinstance(problems[0], dict):
        return CarrierRefusal(f"Telnyx answered {status}", status)
    problem = problems[0]
    code, title, detail = (str(problem.get(name) or "") for name in ("code", "title", "detail"))
    message = f"Telnyx: {title}{f': {detail}' if detail else ''} (error {code})"
    if is_opt_out(code, message):
        return UnsubscribedRecipient(message, code=OPTED_OUT, retryable=False)
    return CarrierRefusal(message, status, code)


def is_opt_out(code: str, message: str) -> bool:
    """Return whether a text message was refused because of a STOP; the code alone is ambiguous."""
    return code == OPTED_OUT and "stop" in message.lower()


@contextmanager
def ignore_ended_call() -> Iterator[None]:
    """Ignore the error of a command to an ended call."""
    try:
        yield
    except ProviderError as error:
        if error.code not in CALL_OVER and not is_missing(error):
            raise


@contextmanager
def ignore_refusal() -> Iterator[None]:
    """Ignore an error that a repetition of the request would not change."""
    try:
        yield
    except ProviderError as error:
        if error.retryable:
            raise


def translate_dial_error(error: ProviderError, to_number: str) -> ProviderError:
    """Return the platform's error for a call that was not placed."""
    if error.code in NO_SUCH_NUMBER and ("'to'" in error.message or to_number in error.message):
        return ProviderError(error.message, code=INVALID_NUMBER, retryable=False)
    return allow_another_carrier(error)


def read_field(answer: Any, name: str = "") -> Any:
    """Return a response's data, or a field of it.

    Raises `ProviderError` for a response that is not Telnyx's, for example a proxy's page.
    """
    data = getattr(answer, "data", None)
    found = getattr(data, name, None) if name else data
    if found is None or found == "":
        raise ProviderError("Telnyx's answer was not understood")
    return found


def require_created_id(answer: Any, name: str) -> str:
    """Return the id of the created object. Raises `OutcomeUnknown` for a response without it."""
    try:
        return str(read_field(answer, name))
    except ProviderError as error:
        raise OutcomeUnknown(error.message) from error
