"""Callbacks of vendors: requests without a credential, which a provider verifies and translates."""

from collections.abc import Awaitable, Callable

import structlog
from quart import Response, request

from switchboard.foundation.web.errors import Forbidden, ProviderFailed
from switchboard.plugin_sdk import CallbackReply, CallbackRequest, InvalidCallback, ProviderError

logger = structlog.get_logger()


async def serve_callback(
    base_url: str, answer: Callable[[CallbackRequest], Awaitable[CallbackReply]], *, path: str = ""
) -> Response:
    """Answer the current request, which `answer` translates. `path` is the part after the organization's own address.

    Raises `Forbidden` for `InvalidCallback`, and `ProviderFailed` for `ProviderError`.
    """
    query = request.query_string.decode("latin-1")
    callback = CallbackRequest(
        method=request.method,
        url=f"{base_url}{request.path}{'?' + query if query else ''}",
        path=path,
        headers={name.lower(): value for name, value in request.headers.items()},
        body=await request.get_data(as_text=False, cache=False, parse_form_data=False),
    )
    try:
        reply = await answer(callback)
    except InvalidCallback as error:
        logger.warning("callback refused", reason=str(error))
        raise Forbidden("The callback's signature is not valid.") from None
    except ProviderError as error:
        raise ProviderFailed(error.message) from error
    return Response(reply.body, reply.status, content_type=reply.content_type)
