"""Requests of the Telnyx SDK, with deadlines, repeated only where that cannot create anything twice."""

import importlib
import operator
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from switchboard.plugin_sdk import OutcomeUnknown, ProviderError
from switchboard.plugin_sdk.retries import (
    ATTEMPT_SECONDS,
    CONNECT_SECONDS,
    ConnectionFailed,
    NoResponse,
    Response,
    send_with_retries,
)

from switchboard_telephony_telnyx.errors import read_field, translate_status_error

API: Final = "https://api.telnyx.com/v2"
ResultT = TypeVar("ResultT")
_USED: Final = (
    "available_phone_numbers",
    "call_control_applications",
    "calls.actions",
    "connections",
    "messages",
    "messaging_profiles",
    "number_orders",
    "phone_numbers.messaging",
    "recordings",
    "telephony_credentials",
)


def load_sdk() -> Any:
    """Import the SDK. It takes a second or two and 65 MB, which processes that use no Telnyx do not pay."""
    return importlib.import_module("telnyx")


def create_client(api_key: str, base_url: str | None) -> Any:
    """Create a client and import the parts of the SDK in use, so that no call waits for them.

    Slow the first time: do not call it in the event loop.
    """
    sdk = load_sdk()
    timeout = sdk.Timeout(ATTEMPT_SECONDS, connect=CONNECT_SECONDS)
    # The SDK would read absent values from the environment, but an organization's settings are all that counts.
    unused = {"client_id": "", "client_secret": "", "public_key": ""}
    client = sdk.AsyncTelnyx(api_key=api_key, base_url=base_url or API, timeout=timeout, max_retries=0, **unused)
    for used in _USED:
        operator.attrgetter(used)(client)
    return client


async def call_telnyx(request: Callable[[], Awaitable[ResultT]], *, creates: bool = False) -> ResultT:
    """Return the result of a request of the SDK. `creates`: the same request, sent again, would create a second object.

    Raises `OutcomeUnknown` where Telnyx may have created something and did not say so, else `ProviderError`.
    """
    sdk = load_sdk()

    async def send() -> Response[ResultT | ProviderError]:
        try:
            result = await request()
        except sdk.APIStatusError as error:
            return Response(error.status_code, error.response.headers, translate_status_error(error))
        except sdk.APIConnectionError as error:
            reason = error.__cause__ or error
            # Without a connection Telnyx has not seen the request.
            is_unseen = type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")
            failure = ConnectionFailed if is_unseen else NoResponse
            raise failure(str(reason) or type(reason).__name__) from error
        return Response(200, {}, result)

    try:
        result = await send_with_retries("Telnyx", send, creates=creates)
    except ValueError as error:
        message = "Telnyx's answer was not understood"
        raise (OutcomeUnknown if creates else ProviderError)(message) from error
    if isinstance(result, ProviderError):
        raise result
    return result


async def read_telnyx(request: Callable[[], Awaitable[Any]], name: str = "") -> Any:
    """Return the data of a response, or a field of it. Raises `ProviderError`."""
    return read_field(await call_telnyx(request), name)
