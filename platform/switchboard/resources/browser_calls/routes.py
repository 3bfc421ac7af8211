"""Endpoints of browser calls."""

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import InvalidState, ProviderFailed
from switchboard.foundation.web.principal import Principal
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.browser_calls.schemas import BrowserTokenOut, CallerIdOut, CallerIds, TokenQuery
from switchboard.resources.browser_calls.service import BrowserTokenMint, find_browser_carrier
from switchboard.resources.destinations.clients import build_client_identity, find_client_carrier
from switchboard.resources.phone_numbers.queries import list_numbers_at_carrier

blueprint = ApiBlueprint(
    "browser_calls", __name__, tags={"browser-call": "Calls of the organization's users from a browser."}
)


@blueprint.post("/v1/browser-call/token")
@endpoint(scope="calls:write", errors=[InvalidState, ProviderFailed])
async def create_browser_call_token(
    session: WriteSession, principal: Principal, query: TokenQuery, mint: BrowserTokenMint
) -> BrowserTokenOut:
    """Create a token for calling from a browser or a phone app, and for being rung there.

    The token is for the client SDK in `connection.sdk`, or the platform's WebSocket at `connection.url`. A call to one
    of the organization's phone numbers reaches that number's agent, `agent:<id>` reaches an agent, and any other number
    is dialed with one of the numbers of `GET /v1/browser-call/phone-numbers` as the caller ID. With `identity`, calls
    that are forwarded or transferred to `client:<identity>` ring the client.
    """
    if query.identity is None:
        name = await find_browser_carrier(session, mint.registry)
        identity = f"credential_{principal.credential_id.hex}"
    else:
        name = await find_client_carrier(session, mint.registry)
        identity = build_client_identity(session.organization_id, query.identity)
    if name is None:
        unsupported = "supports browser calls" if query.identity is None else "can ring clients"
        raise InvalidState(f"None of the organization's carriers {unsupported}.")
    return await mint.mint_token(session, carrier=name, identity=identity, platform=query.platform)


@blueprint.get("/v1/browser-call/phone-numbers")
@endpoint(scope="phone-numbers:read")
async def list_browser_call_phone_numbers(session: ReadSession, registry: Registry) -> CallerIds:
    """List the phone numbers that a browser can call from.

    The numbers are those of the carrier that `POST /v1/browser-call/token` creates tokens for.
    """
    name = await find_browser_carrier(session, registry)
    found = [] if name is None else await list_numbers_at_carrier(session, name)
    return CallerIds(items=[CallerIdOut.model_validate(number) for number in found])
