"""Business rules of browser calls: the organization's first capable carrier serves them, with its own phone numbers."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from switchboard.engine.providers.instances import Providers, find_first_provider
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession, now
from switchboard.foundation.web.errors import InvalidState, ProviderFailed
from switchboard.plugin_sdk import (
    BrowserPhone,
    BrowserToken,
    ProviderError,
    ProviderSettings,
    TelephonyProvider,
)
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.browser_calls.schemas import BrowserTokenOut, Platform

PREFIX = "/browser-calls/"
NO_SOCKET = (
    "Talking in the browser needs the loopback carrier among the organization's carriers. It may be the last one, "
    "for browsers only."
)


async def find_browser_carrier(session: TenantSession, registry: Registry) -> str | None:
    """Return the name of the organization's first carrier that supports browser calls."""
    return await find_first_provider(
        session, registry, TelephonyProvider, lambda carrier: carrier.capabilities.browser_calling
    )


async def create_browser_token(
    session: TenantSession, providers: Providers, base_url: str, *, carrier: str, identity: str, platform: Platform
) -> BrowserTokenOut:
    """Create a token of one of the organization's carriers. Raises `ProviderFailed`."""
    try:
        async with providers.use(session.organization_id, TelephonyProvider, carrier) as provider:
            minted = await provider.create_browser_token(identity=identity, platform=platform)
            connection = _connection(base_url, session.organization_id, provider, minted)
    except ProviderError as error:
        raise ProviderFailed(error.message) from error
    record_audit(session, AuditAction.BROWSER_CALL_TOKEN_CREATED, carrier)
    return BrowserTokenOut(
        token=minted.token,
        provider=carrier,
        platform=platform,
        identity=minted.identity,
        expires_at=now() + timedelta(seconds=minted.expires_in_seconds),
        connection=connection,
    )


async def find_talk_carrier(
    session: TenantSession, providers: Providers, registry: Registry, with_sdk: Collection[str]
) -> str:
    """Return the carrier over which the dashboard's pages talk to agents by dialing `agent:<id>`, whatever carrier
    the agent's phone numbers use.

    The organization's first carrier with browser calls, if it is set up and among `with_sdk`, the carriers whose client
    SDKs the page has; otherwise the first one over the platform's WebSocket. Raises `InvalidState` if there is none.
    """
    first = await find_browser_carrier(session, registry)
    if first is not None and first in with_sdk and await _is_set_up(providers, session.organization_id, first):
        return first
    own = await find_first_provider(
        session, registry, TelephonyProvider, lambda carrier: issubclass(carrier, BrowserPhone)
    )
    if own is None:
        raise InvalidState(NO_SOCKET)
    return own


async def _is_set_up(providers: Providers, organization_id: UUID, carrier: str) -> bool:
    try:
        async with providers.use(organization_id, TelephonyProvider, carrier) as provider:
            return provider.has_browser_calling
    except ProviderError:
        return False


def _connection(
    base_url: str, organization_id: UUID, carrier: TelephonyProvider[ProviderSettings], minted: BrowserToken
) -> dict[str, str]:
    """Return what a client needs besides its token: the address, for a carrier that uses the platform's WebSocket."""
    connection = dict(minted.connection)
    if isinstance(carrier, BrowserPhone):
        scheme, _, rest = base_url.partition("://")
        connection["url"] = f"{'wss' if scheme == 'https' else 'ws'}://{rest}{PREFIX}{carrier.name}/{organization_id}"
    return connection
