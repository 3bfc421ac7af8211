"""Rules of browser calling: the organization's first carrier that can do it does it, with its own numbers."""

from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.plugins.registry import Capability, Registry
from switchboard.providers.service import configured_names


async def carrier_of(session: AsyncSession, registry: Registry) -> str | None:
    """The organization's first carrier that has browser calling."""
    for name in await configured_names(session, Capability.TELEPHONY):
        kind = registry.provider(Capability.TELEPHONY, name)
        if kind is not None and kind.capabilities.browser_calling:
            return name
    return None
