"""Rules of browser calling: the organization's first carrier that can do it does it, with its own numbers."""

from datetime import timedelta
from uuid import UUID

from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.browser_calls.schemas import BrowserTokenOut, Platform
from switchboard.database import now
from switchboard.plugins import BrowserPhone, BrowserToken, ProviderError, ProviderSettings, TelephonyProvider
from switchboard.plugins.registry import Capability, Registry
from switchboard.providers.service import configured_names
from switchboard.runtime import Runtime
from switchboard.settings import Settings
from switchboard.web.errors import ProviderFailed

PREFIX = "/browser-calls/"


def connection_of(settings: Settings, organization_id: UUID, carrier: TelephonyProvider[ProviderSettings], minted: BrowserToken) -> dict[str, str]:
    """What a client needs beside its token: where a carrier's browsers call over our socket, its address too."""
    connection = dict(minted.connection)
    if isinstance(carrier, BrowserPhone):
        scheme, _, rest = settings.base_url.partition("://")
        connection["url"] = f"{'wss' if scheme == 'https' else 'ws'}://{rest}{PREFIX}{carrier.name}/{organization_id}"
    return connection


async def mint(runtime: Runtime, organization_id: UUID, carrier_name: str, *, identity: str, platform: Platform) -> BrowserTokenOut:
    """A token of one of the organization's carriers for who calls from a browser or an app. Raises `ProviderFailed`."""
    try:
        async with runtime.providers.telephony(organization_id, carrier_name) as carrier:
            minted = await carrier.browser_token(identity=identity, platform=platform)
            connection = connection_of(runtime.settings, organization_id, carrier, minted)
    except ProviderError as error:
        raise ProviderFailed(error.message) from error
    return BrowserTokenOut(
        token=minted.token,
        provider=carrier_name,
        platform=platform,
        identity=minted.identity,
        expires_at=now() + timedelta(seconds=minted.expires_in_seconds),
        connection=connection,
    )


async def own_socket_carrier(session: AsyncSession, registry: Registry) -> str | None:
    """The organization's first carrier whose browsers call over our own socket, so that a page needs no vendor's SDK."""
    for name in await configured_names(session, Capability.TELEPHONY):
        kind = registry.provider(Capability.TELEPHONY, name)
        if kind is not None and issubclass(kind, BrowserPhone):
            return name
    return None


async def carrier_of(session: AsyncSession, registry: Registry) -> str | None:
    """The organization's first carrier that has browser calling."""
    for name in await configured_names(session, Capability.TELEPHONY):
        kind = registry.provider(Capability.TELEPHONY, name)
        if kind is not None and kind.capabilities.browser_calling:
            return name
    return None
