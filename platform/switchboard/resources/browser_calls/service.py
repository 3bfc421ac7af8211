"""Business rules of browser calls: the organization's first capable carrier serves them, with its own phone numbers."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from switchboard.engine.providers.instances import Providers, find_first_provider
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import InvalidState, ProviderFailed
from switchboard.plugin_sdk import BrowserPhone, ProviderError, TelephonyProvider
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.browser_calls.schemas import BrowserTokenOut, Platform

PREFIX = "/browser-calls/"
NO_SOCKET = (
    "Talking in the browser needs the loopback carrier among the organization's carriers. It may be the last one, "
    "for browsers only."
)


async def find_browser_carrier(session: ReadSession, registry: Registry) -> str | None:
    """Return the name of the organization's first carrier that supports browser calls."""
    return await find_first_provider(
        session, registry, TelephonyProvider, lambda carrier: carrier.capabilities.browser_calling
    )


@dataclass(frozen=True, slots=True)
class BrowserTokenMint:
    """Mints the tokens of browser calls, and finds the carrier over which the platform's own pages call."""

    settings: Settings
    registry: Registry
    providers: Providers

    async def mint_token(
        self, session: WriteSession, *, carrier: str, identity: str, platform: Platform
    ) -> BrowserTokenOut:
        """Mint a token of one of the organization's carriers. Raises `ProviderFailed`."""
        try:
            async with self.providers.use(session.organization_id, TelephonyProvider, carrier) as provider:
                minted = await provider.create_browser_token(identity=identity, platform=platform)
                connection = dict(minted.connection)
                if isinstance(provider, BrowserPhone):  # its calls use the platform's WebSocket
                    connection["url"] = self.settings.build_socket_url(f"{PREFIX}{carrier}/{session.organization_id}")
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

    async def find_talk_carrier(self, session: ReadSession, with_sdk: Collection[str]) -> str:
        """Return the carrier over which the dashboard's pages talk to agents by dialing `agent:<id>`, whatever carrier
        the agent's phone numbers use.

        The organization's first carrier with browser calls, if it is set up and among `with_sdk`, the carriers whose
        client SDKs the page has; otherwise the first one over the platform's WebSocket. Raises `InvalidState` if the
        organization has neither.
        """
        first = await find_browser_carrier(session, self.registry)
        if first is not None and first in with_sdk:
            with suppress(ProviderError):
                async with self.providers.use(session.organization_id, TelephonyProvider, first) as provider:
                    if provider.has_browser_calling:
                        return first
        own = await find_first_provider(
            session, self.registry, TelephonyProvider, lambda carrier: issubclass(carrier, BrowserPhone)
        )
        if own is None:
            raise InvalidState(NO_SOCKET)
        return own
