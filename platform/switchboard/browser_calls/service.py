"""Rules of browser calling: the organization's first carrier that can do it does it, with its own numbers."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.browser_calls.schemas import BrowserTokenOut, Platform
from switchboard.database import now
from switchboard.plugins import BrowserPhone, BrowserToken, Provider, ProviderError, ProviderSettings, TelephonyProvider
from switchboard.plugins.registry import Capability, Registry
from switchboard.providers.service import configured_names
from switchboard.runtime import Runtime
from switchboard.settings import Settings
from switchboard.web.errors import InvalidState, ProviderFailed

PREFIX = "/browser-calls/"
NO_SOCKET = "Talking in the browser needs the loopback carrier among the organization's; it may be the last of them, for browsers only."


async def carrier_of(session: AsyncSession, registry: Registry) -> str | None:
    """The organization's first carrier that has browser calling."""
    return await _first(session, registry, lambda kind: issubclass(kind, TelephonyProvider) and kind.capabilities.browser_calling)


async def mint(runtime: Runtime, organization_id: UUID, carrier: str, identity: str, platform: Platform) -> BrowserTokenOut:
    """A token of a carrier of the organization's. Raises `ProviderFailed`."""
    try:
        async with runtime.providers.telephony(organization_id, carrier) as provider:
            minted = await provider.browser_token(identity=identity, platform=platform)
            connection = _connection(runtime.settings, organization_id, provider, minted)
    except ProviderError as error:
        raise ProviderFailed(error.message) from error
    return BrowserTokenOut(
        token=minted.token,
        provider=carrier,
        platform=platform,
        identity=minted.identity,
        expires_at=now() + timedelta(seconds=minted.expires_in_seconds),
        connection=connection,
    )


async def talk_token(runtime: Runtime, session: AsyncSession, identity: str) -> BrowserTokenOut:
    """A token with which a page of ours talks to an agent, whatever carrier the agent's calls go over: it dials `agent:<id>` by `browser-call.js`.

    Over the first carrier whose browsers call over our own socket, because our pages load no carrier's SDK. `identity` has letters, digits and
    underscores. Raises `InvalidState` where there is no such carrier.
    """
    carrier = await _first(session, runtime.registry, lambda kind: issubclass(kind, BrowserPhone))
    if carrier is None:
        raise InvalidState(NO_SOCKET)
    return await mint(runtime, session.info["organization_id"], carrier, identity, "web")


async def _first(session: AsyncSession, registry: Registry, suits: Callable[[type[Provider[ProviderSettings]]], bool]) -> str | None:
    for name in await configured_names(session, Capability.TELEPHONY):
        kind = registry.provider(Capability.TELEPHONY, name)
        if kind is not None and suits(kind):
            return name
    return None


def _connection(settings: Settings, organization_id: UUID, carrier: TelephonyProvider[ProviderSettings], minted: BrowserToken) -> dict[str, str]:
    """What a client needs beside its token: where a carrier's browsers call over our socket, its address too."""
    connection = dict(minted.connection)
    if isinstance(carrier, BrowserPhone):
        scheme, _, rest = settings.base_url.partition("://")
        connection["url"] = f"{'wss' if scheme == 'https' else 'ws'}://{rest}{PREFIX}{carrier.name}/{organization_id}"
    return connection
