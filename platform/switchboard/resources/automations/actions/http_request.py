"""Action `http_request`: call an HTTP endpoint."""

import json
import re
from collections.abc import Mapping
from time import monotonic
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, JsonValue

from switchboard.foundation.outbound import OutboundError, validate_public_url
from switchboard.plugin_sdk import ActionContext, ActionError, ActionParams, JsonObject
from switchboard.resources.automations.action_dependencies import OutboundAction

SECONDS: Final = 15.0
RETRYABLE: Final = (408, 425, 429)
MAX_HEADERS: Final = 20
# Headers that control the connection are not the tenant's to set.
OURS: Final = (
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
)


def _header_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", name):
        raise ValueError("is not a header name")
    if name.lower() in OURS or name.lower().startswith("proxy-"):
        raise ValueError("is set by the platform")
    return name


def _header_value(value: str) -> str:
    if not re.fullmatch(r"[\t\x20-\x7e]*", value):
        raise ValueError("must be printable ASCII, on one line")
    return value


def _content(body: JsonValue) -> tuple[dict[str, str], bytes | None]:
    if body is None:
        return {}, None
    if isinstance(body, str):
        return {"Content-Type": "text/plain; charset=utf-8"}, body.encode()
    return {"Content-Type": "application/json"}, json.dumps(body, ensure_ascii=False).encode()


HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, Field(max_length=4096), AfterValidator(_header_value)]


class HttpRequestParams(ActionParams):
    """Parameters of the request."""

    url: str = Field(
        min_length=1,
        max_length=2048,
        description="A public address; private, loopback, and reserved addresses are refused.",
    )
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field(
        "POST", description="GET, POST (the default), PUT, PATCH or DELETE."
    )
    headers: dict[HeaderName, HeaderValue] = Field(
        default_factory=dict, max_length=MAX_HEADERS, description="Header names and values, at most 20."
    )
    body: JsonValue = Field(
        None, description="A text is sent as is, an object or list as JSON; without it no body is sent."
    )


class HttpRequest(OutboundAction[HttpRequestParams]):
    """Send a request with an `Idempotency-Key`. A 2xx response succeeds; any other but 408, 425, 429, and 5xx fails
    permanently.

    The response is never stored: an automation could use it to read inside the network.
    """

    name, title, Params = "http_request", "Call an HTTP endpoint", HttpRequestParams
    scope = "webhooks:write"

    async def check_params(self, params: Mapping[str, JsonValue]) -> None:
        if "url" in params:
            validate_public_url(self.outbound, str(params["url"]), field="url")

    async def run(self, context: ActionContext, params: HttpRequestParams) -> JsonObject:
        headers, body = _content(params.body)
        headers |= {"User-Agent": "Switchboard/1.0", "Idempotency-Key": context.idempotency_key}
        given = {name.lower() for name in params.headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in given} | params.headers
        began = monotonic()
        try:
            answer = await self.outbound.request(
                params.method, params.url, body, headers=headers, seconds=SECONDS, read_limit=0
            )
        except OutboundError as error:
            raise ActionError(str(error), retryable=error.kind != "forbidden_address") from None
        if not 200 <= answer.status < 300:
            raise ActionError(
                f"the endpoint returned status {answer.status}",
                retryable=answer.status in RETRYABLE or answer.status >= 500,
            )
        return {"status_code": answer.status, "duration_ms": round((monotonic() - began) * 1000)}
