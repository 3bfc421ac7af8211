"""The SDK's requests, with deadlines, and repeated only where that cannot do anything twice."""

import asyncio
import importlib
import operator
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from switchboard.plugin_sdk import OutcomeUnknown, ProviderError
from switchboard.plugin_sdk.retries import (
    ALL_SECONDS,
    ATTEMPT_SECONDS,
    ATTEMPTS,
    CONNECT_SECONDS,
    LONGEST_WAIT_SECONDS,
    pause,
    retry_after,
)

from switchboard_telephony_telnyx.errors import refusal

API: Final = "https://api.telnyx.com/v2"
Answer = TypeVar("Answer")
_USED: Final = (
    "available_phone_numbers", "call_control_applications", "calls.actions", "connections", "messages", "messaging_profiles", "number_orders",
    "phone_numbers.messaging", "recordings", "telephony_credentials",
)  # fmt: skip


def load() -> Any:
    """The SDK: a second or two and 65 MB, which no process pays that uses no Telnyx."""
    return importlib.import_module("telnyx")


def connect(api_key: str, base_url: str | None) -> Any:
    """A client, with what is used of it imported, so that no call has to wait for that. Slow the first time: not for the event loop."""
    sdk = load()
    timeout = sdk.Timeout(ATTEMPT_SECONDS, connect=CONNECT_SECONDS)
    # What is not told it would read from the environment, though an organization's settings are all that counts.
    unused = {"client_id": "", "client_secret": "", "public_key": ""}
    client = sdk.AsyncTelnyx(api_key=api_key, base_url=base_url or API, timeout=timeout, max_retries=0, **unused)
    for used in _USED:
        operator.attrgetter(used)(client)
    return client


async def asked(request: Callable[[], Awaitable[Answer]], *, creates: bool = False) -> Answer:
    """The answer to a request of the SDK's. `creates` says that the same request, sent again, would make something anew.

    Raises `OutcomeUnknown` where Telnyx may have made something and did not say so, else `ProviderError`.
    """
    lost = OutcomeUnknown if creates else ProviderError
    try:
        async with asyncio.timeout(ALL_SECONDS):
            return await _persist(request, creates)
    except TimeoutError:
        raise lost("Telnyx did not answer in time") from None
    except ValueError as error:
        raise lost("Telnyx's answer was not understood") from error


async def _persist(request: Callable[[], Awaitable[Answer]], creates: bool) -> Answer:
    sdk = load()
    for attempt in range(1, ATTEMPTS + 1):
        wait = 0.0
        failure: ProviderError
        try:
            return await request()
        except sdk.APIStatusError as error:
            # A 429 has done nothing; a 5xx may have.
            again = error.status_code == 429 or (error.status_code >= 500 and not creates)
            failure, wait = refusal(error), retry_after(error.response.headers)
        except sdk.APIConnectionError as error:
            # No connection, so Telnyx has heard nothing.
            unheard = type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")
            again = unheard or not creates
            reason = error.__cause__ or error
            if unheard:
                failure = ProviderError(f"Telnyx cannot be reached: {reason}")
            else:
                failure = (OutcomeUnknown if creates else ProviderError)(
                    f"Telnyx did not answer: {str(reason) or type(reason).__name__}"
                )
        if not again or attempt == ATTEMPTS or wait > LONGEST_WAIT_SECONDS:
            raise failure
        await pause(attempt, wait)
    raise AssertionError  # pragma: no cover  the last attempt returns or raises
