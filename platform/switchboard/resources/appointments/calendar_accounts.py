"""Accounts of calendars: their settings and tokens at rest, the refresh of tokens, and accounts that are refused.

`Calendar.secrets` is a JSON object: the secret settings by their names, and at `TOKENS` the tokens of an account that
was connected by OAuth.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

import structlog
from pydantic import JsonValue

from switchboard.engine.providers.configuration import find_secret_settings
from switchboard.engine.providers.connected_accounts import (
    REQUEST_SECONDS,
    GrantEnded,
    OAuthTokens,
    refresh_tokens,
    revoke_tokens,
)
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.events.catalog import CalendarDisconnected
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.plugin_sdk import AccountRefused, CalendarProvider, OAuthCalendarProvider, OAuthService, ProviderError
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.appointments.models import SECRETS_LABEL, Calendar
from switchboard.resources.appointments.queries import lock_free_calendar

logger = structlog.get_logger()
TOKENS: Final = "@tokens"
"""Name of the tokens among the secrets. No setting has such a name."""
ACCESS_TOKEN: Final = "access_token"  # noqa: S105 - the name of a setting
"""The setting of `OAuthAccount` that the platform fills in."""
LOCK_POLL_SECONDS: Final = 0.1
LOCK_SECONDS: Final = REQUEST_SECONDS + 5
"""Seconds to wait for the request of another process that refreshes the tokens."""
MOST_REASON: Final = 1000
"""Characters that are kept of a provider's reason."""
REFRESHES: Final[set[asyncio.Task[Calendar]]] = set()
"""Refreshes under way. The event loop itself keeps no task alive."""


@dataclass(frozen=True, slots=True)
class CalendarAccounts:
    database: Database
    providers: Providers
    registry: Registry
    keyring: KeyRing

    def needs_oauth(self, provider: str) -> bool:
        """Return whether accounts of a provider are connected by OAuth."""
        kind = self.registry.find_provider_class(CalendarProvider, provider)
        return kind is not None and issubclass(kind, OAuthCalendarProvider)

    def read_settings(self, calendar: Calendar) -> dict[str, JsonValue]:
        """Return the settings with the secrets, the access token included, without secrets whose key is gone."""
        secrets = self._read_secrets(calendar)
        secrets.pop(TOKENS, None)
        tokens = self.read_tokens(calendar)
        return {**calendar.settings, **secrets, **({ACCESS_TOKEN: tokens.access_token} if tokens else {})}

    def read_tokens(self, calendar: Calendar) -> OAuthTokens | None:
        """Return the tokens; None for an account without OAuth, and for one whose key is gone."""
        value = self._read_secrets(calendar).get(TOKENS)
        return OAuthTokens.from_json(value) if isinstance(value, dict) else None

    def write_settings(
        self, calendar: Calendar, settings: Mapping[str, JsonValue], tokens: OAuthTokens | None = None
    ) -> None:
        """Write the settings into the row, the secret ones and the tokens encrypted."""
        kind = self.registry.find_provider_class(CalendarProvider, calendar.provider)
        names = find_secret_settings(kind.Account) if kind is not None else frozenset()
        calendar.settings = {name: value for name, value in settings.items() if name not in names}
        secrets = {name: value for name, value in settings.items() if name in names}
        if tokens is not None:
            secrets.pop(ACCESS_TOKEN, None)
            secrets[TOKENS] = asdict(tokens)
        calendar.secrets = self.keyring.encrypt(json.dumps(secrets), _format_label(calendar))

    def list_secret_settings(self, calendar: Calendar) -> frozenset[str]:
        """Return the names of the secret settings that have a value."""
        return frozenset(self._read_secrets(calendar)) - {TOKENS}

    async def freshen(self, calendar: Calendar) -> Calendar:
        """Return the row of a calendar whose access token can be used, refreshed if it has less than two minutes left.

        Processes that need it at once send one request for a token. A refresh goes on if its caller is canceled: the
        earlier refresh token may not work any more. Raises `AccountRefused` for a grant that has ended, and
        `ProviderError`.
        """
        tokens = self.read_tokens(calendar)
        if tokens is None:
            if self.needs_oauth(calendar.provider):
                raise ProviderError(f"the calendar {calendar.name} has no tokens that can be read", retryable=False)
            return calendar
        if not tokens.must_be_refreshed():
            return calendar
        task = asyncio.create_task(self._refresh(calendar))
        REFRESHES.add(task)
        task.add_done_callback(_finish_refresh)
        return await asyncio.shield(task)

    async def _refresh(self, calendar: Calendar) -> Calendar:
        """Refresh the tokens, unless another process does."""
        service = await self.providers.describe_oauth(calendar.organization_id, calendar.provider)
        patience = asyncio.get_running_loop().time() + LOCK_SECONDS
        while (row := await self._refresh_if_free(calendar, service)) is None:
            if asyncio.get_running_loop().time() > patience:
                raise ProviderError(f"the tokens of the calendar {calendar.name} could not be refreshed in time")
            await asyncio.sleep(LOCK_POLL_SECONDS)
        return row

    async def _refresh_if_free(self, calendar: Calendar, service: OAuthService) -> Calendar | None:
        """Refresh the tokens under the lock of the row, and return it; None while another transaction has the lock.

        Who waits has no connection meanwhile. The lock leaves the row to the entries that refer to it.
        """
        fault: ProviderError | None = None
        async with self.database.write(calendar.organization_id) as session:
            if await session.find(Calendar, calendar.id) is None:
                raise ProviderError(f"the calendar {calendar.name} was removed", retryable=False)
            row = await lock_free_calendar(session, calendar.id)
            if row is None:
                return None
            require_connected(row)
            tokens = self.read_tokens(row)
            if tokens is None or not tokens.must_be_refreshed():
                return row
            try:
                fresh = await refresh_tokens(service, tokens)
            except GrantEnded as error:
                await _disconnect(session, row, error.message)
                fault = AccountRefused(error.message)
            except ProviderError as error:
                fault = error
            else:
                self._write_tokens(row, fresh)
        if fault is not None:
            raise fault
        return row

    async def record_refusal(self, calendar: Calendar, reason: str) -> None:
        """Mark a calendar whose provider has refused the account as disconnected.

        An access token that has not expired is refreshed once before, by the next use: it may have been revoked alone.
        A refusal of an account, or of a token, that was replaced meanwhile changes nothing.
        """
        used = self.read_tokens(calendar)
        async with self.database.write(calendar.organization_id) as session:
            row = await session.lock(Calendar, calendar.id)
            if row is None or row.status == "disconnected":
                return
            tokens = self.read_tokens(row)
            if tokens is None:
                if self.read_settings(row) == self.read_settings(calendar):
                    await _disconnect(session, row, reason)
            elif used is not None and tokens.access_token == used.access_token:
                if tokens.renewal == "done":
                    await _disconnect(session, row, reason)
                else:
                    self._write_tokens(row, replace(tokens, renewal="due"))

    async def record_use(self, calendar: Calendar) -> None:
        """Record that the provider has accepted the account, if a refusal preceded."""
        used = self.read_tokens(calendar)
        if used is None or not used.renewal:
            return
        async with self.database.write(calendar.organization_id) as session:
            row = await session.lock(Calendar, calendar.id)
            if row is not None and self.read_tokens(row) == used:
                self._write_tokens(row, replace(used, renewal=""))

    async def revoke(self, calendar: Calendar) -> None:
        """Revoke the tokens of a calendar that was removed. A failure is logged."""
        tokens = self.read_tokens(calendar)
        if tokens is None:
            return
        try:
            await revoke_tokens(
                await self.providers.describe_oauth(calendar.organization_id, calendar.provider), tokens
            )
        except ProviderError as error:
            logger.warning("tokens of a calendar were not revoked", calendar_id=str(calendar.id), reason=error.message)

    def _read_secrets(self, calendar: Calendar) -> dict[str, JsonValue]:
        try:
            secrets: dict[str, JsonValue] = json.loads(self.keyring.decrypt(calendar.secrets, _format_label(calendar)))
        except SecretError:
            return {}
        return secrets

    def _write_tokens(self, calendar: Calendar, tokens: OAuthTokens) -> None:
        secrets = {**self._read_secrets(calendar), TOKENS: asdict(tokens)}
        calendar.secrets = self.keyring.encrypt(json.dumps(secrets), _format_label(calendar))


def require_connected(calendar: Calendar) -> None:
    """Raise `ProviderError` for a calendar that is disconnected."""
    if calendar.status == "disconnected":
        raise ProviderError(f"the calendar {calendar.name} is disconnected: {calendar.error_message}", retryable=False)


def mark_connected(calendar: Calendar) -> None:
    """Mark a calendar whose provider has accepted the account."""
    calendar.status, calendar.error_message = "connected", None


async def _disconnect(session: WriteSession, calendar: Calendar, reason: str) -> None:
    """Mark a locked calendar as disconnected, and publish it."""
    moment, message = now(), reason.replace("\0", "")[:MOST_REASON]
    calendar.status, calendar.error_message, calendar.updated_at = "disconnected", message, moment
    record_audit_as(session, calendar.organization_id, "system", AuditAction.CALENDAR_DISCONNECTED, calendar.id)
    event = CalendarDisconnected(
        calendar_id=calendar.id,
        name=calendar.name,
        provider=calendar.provider,
        error_message=message,
        disconnected_at=moment,
    )
    await publish(session, event)


def _finish_refresh(task: "asyncio.Task[Calendar]") -> None:
    """Let go of a refresh; its error has been raised to its caller, if that still waits."""
    REFRESHES.discard(task)
    if not task.cancelled() and task.exception() is not None:
        logger.info("tokens of a calendar were not refreshed", reason=str(task.exception()))


def _format_label(calendar: Calendar) -> str:
    return SECRETS_LABEL.format(id=calendar.id, organization_id=calendar.organization_id)
