"""Rules of browser calling: the organization's first carrier that can do it does it, with its own numbers."""

from uuid import UUID

from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.plugins import BrowserPhone, BrowserToken, ProviderSettings, TelephonyProvider
from switchboard.plugins.registry import Capability, Registry
from switchboard.providers.service import configured_names
from switchboard.settings import Settings

PREFIX = "/browser-calls/"


def connection_of(settings: Settings, organization_id: UUID, carrier: TelephonyProvider[ProviderSettings], minted: BrowserToken) -> dict[str, str]:
    """What a client needs beside its token: where a carrier's browsers call over our socket, its address too."""
    connection = dict(minted.connection)
    if isinstance(carrier, BrowserPhone):
        scheme, _, rest = settings.base_url.partition("://")
        connection["url"] = f"{'wss' if scheme == 'https' else 'ws'}://{rest}{PREFIX}{carrier.name}/{organization_id}"
    return connection


async def carrier_of(session: AsyncSession, registry: Registry) -> str | None:
    """The organization's first carrier that has browser calling."""
    for name in await configured_names(session, Capability.TELEPHONY):
        kind = registry.provider(Capability.TELEPHONY, name)
        if kind is not None and kind.capabilities.browser_calling:
            return name
    return None
