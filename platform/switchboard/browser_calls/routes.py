"""Endpoints of browser calling."""

from datetime import timedelta

from quart import Blueprint
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.browser_calls import service as browser_calls
from switchboard.browser_calls.schemas import BrowserTokenOut, CallerIdOut, CallerIds, TokenQuery
from switchboard.database import now
from switchboard.phone_numbers import service as numbers
from switchboard.plugins import ProviderError
from switchboard.runtime import current_runtime
from switchboard.web.endpoint import endpoint
from switchboard.web.errors import InvalidState, ProviderFailed
from switchboard.web.principal import Principal

blueprint = Blueprint("browser_calls", __name__)


@blueprint.post("/v1/browser-call/token")
@endpoint(scope="calls:write", query=TokenQuery, answer=BrowserTokenOut, errors=[InvalidState, ProviderFailed])
async def create_browser_call_token(session: AsyncSession, principal: Principal, query: TokenQuery) -> BrowserTokenOut:
    """Mint a token for calling from a browser or a phone app.

    For the client SDK of the organization's carrier. A call to one of the organization's own numbers reaches that number's agent, any other is
    dialled with one of the numbers of `GET /v1/browser-call/phone-numbers` as the caller id.
    """
    runtime = current_runtime()
    name = await browser_calls.carrier_of(session, runtime.registry)
    if name is None:
        raise InvalidState("None of the organization's carriers has browser calling.")
    try:
        async with runtime.providers.telephony(principal.organization_id, name) as carrier:
            # Letters, digits and underscores are what every carrier takes.
            minted = await carrier.browser_token(identity=f"credential_{principal.credential_id.hex}", platform=query.platform)
            connection = browser_calls.connection_of(runtime.settings, principal.organization_id, carrier, minted)
    except ProviderError as error:
        raise ProviderFailed(error.message) from error
    return BrowserTokenOut(
        token=minted.token,
        provider=name,
        platform=query.platform,
        identity=minted.identity,
        expires_at=now() + timedelta(seconds=minted.expires_in_seconds),
        connection=connection,
    )


@blueprint.get("/v1/browser-call/phone-numbers")
@endpoint(scope="phone-numbers:read", answer=CallerIds)
async def list_browser_call_phone_numbers(session: AsyncSession) -> CallerIds:
    """List the numbers that a browser can call from.

    Those of the carrier that `POST /v1/browser-call/token` mints tokens for.
    """
    name = await browser_calls.carrier_of(session, current_runtime().registry)
    found = [] if name is None else await numbers.at_carrier(session, name)
    return CallerIds(items=[CallerIdOut.of(number) for number in found])
