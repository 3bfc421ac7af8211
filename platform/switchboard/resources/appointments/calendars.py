"""Connected calendars, and the use of their providers."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pydantic import JsonValue

from switchboard.engine.providers.connected_accounts import OAuthTokens
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, ReadSession, now
from switchboard.foundation.web.errors import FieldError, Forbidden, NotFound, ProviderFailed, ValidationFailed
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk import AccountRefused, CalendarProvider, ProviderError, ProviderSettings, RemoteCalendar
from switchboard.plugin_sdk.registry import InvalidSettings, Registry
from switchboard.resources.appointments.calendar_accounts import (
    ACCESS_TOKEN,
    CalendarAccounts,
    mark_connected,
    require_connected,
)
from switchboard.resources.appointments.models import LOCAL, Calendar
from switchboard.resources.appointments.queries import list_calendars_by_id, list_coming_entries
from switchboard.resources.appointments.schemas import CalendarCreate, CalendarUpdate
from switchboard.resources.identity.queries import find_membership

ITSELF: Final = RemoteCalendar("", LOCAL)
CONNECT_SECONDS: Final = 30.0
MOST_COMPARED: Final = 3
"""Coming events that are looked for in another account: more than one, because a person may have deleted one."""
MOST_NAME: Final = 255
"""Characters of a calendar's name."""


async def require_calendars(session: ReadSession, calendar_ids: Sequence[str], *, field: str) -> list[Calendar]:
    """Return the calendars in a request. Raises `ValidationFailed`, with the same message for an unknown calendar and
    one of another organization.
    """
    wanted = [parse_id(calendar_id) for calendar_id in calendar_ids]
    found = {calendar.id: calendar for calendar in await list_calendars_by_id(session, [key for key in wanted if key])}
    for place, key in enumerate(wanted):
        if key not in found:
            raise ValidationFailed.field(f"{field}.{place}", "is not a calendar of the organization")
    return list(found.values())


async def require_owner(session: ReadSession, principal: Principal) -> None:
    """Raise `Forbidden` for a user who is not an owner of the organization. An API key may do what its scopes allow."""
    if principal.user_id is None:
        return
    membership = await find_membership(session, principal.user_id, session.organization_id)
    if membership is None or membership.role != "owner":
        raise Forbidden("Only owners of the organization configure calendars.")


@dataclass(frozen=True, slots=True)
class CalendarConnections:
    """Connects calendars, and opens their providers."""

    database: Database
    providers: Providers
    registry: Registry
    accounts: CalendarAccounts

    async def connect(self, principal: Principal, data: CalendarCreate) -> Calendar:
        """Connect a calendar whose provider accepts the account.

        Raises `Forbidden`, `ValidationFailed` for an unknown provider, for one whose accounts are connected by OAuth,
        and for an account that it refuses, and `ProviderFailed` for a provider that cannot be reached.
        """
        async with self.database.read(principal.organization_id) as session:
            await require_owner(session, principal)
        if self.accounts.needs_oauth(data.provider):
            raise ValidationFailed.field("provider", "is connected in the dashboard")
        remote = await self._try_account(principal.organization_id, data.provider, data.settings)
        calendar = self.build_calendar(principal.organization_id, data, remote)
        async with self.database.write(principal.organization_id, actor=principal.actor) as session:
            session.add(calendar)
            record_audit(session, AuditAction.CALENDAR_CONNECTED, calendar.id, fields=data.model_fields_set)
        return calendar

    async def connect_account(self, principal: Principal, provider: str, tokens: OAuthTokens) -> Calendar:
        """Connect the first calendar of an account whose user has consented, under the name that it has there.

        Raises as `connect` does.
        """
        organization_id = principal.organization_id
        async with self.database.read(organization_id) as session:
            await require_owner(session, principal)
        settings: dict[str, JsonValue] = {ACCESS_TOKEN: tokens.access_token}
        remote = await self._try_account(organization_id, provider, settings)
        data = CalendarCreate(provider=provider, name=remote.name[:MOST_NAME] or provider, settings=settings)
        calendar = self.build_calendar(organization_id, data, remote, tokens)
        async with self.database.write(organization_id, actor=principal.actor) as session:
            session.add(calendar)
            record_audit(session, AuditAction.CALENDAR_CONNECTED, calendar.id, fields=("provider", "name"))
        return calendar

    async def reconnect_account(
        self, principal: Principal, calendar_id: UUID, provider: str, tokens: OAuthTokens
    ) -> Calendar:
        """Replace the account of a calendar by one whose user has consented; everything else of the calendar stays.

        Raises `NotFound`, and as `connect` does.
        """
        organization_id = principal.organization_id
        async with self.database.read(organization_id) as session:
            await require_owner(session, principal)
            calendar = await get_row(session, Calendar, calendar_id)
            coming = [entry.id for entry in await list_coming_entries(session, calendar_id, MOST_COMPARED)]
        if calendar.provider != provider:
            raise NotFound
        settings = {**self.accounts.read_settings(calendar), ACCESS_TOKEN: tokens.access_token}
        remote = await self._try_account(organization_id, provider, settings, coming)
        async with self.database.write(organization_id, actor=principal.actor) as session:
            calendar = await lock_row(session, Calendar, calendar_id)
            self._replace_account(calendar, settings, remote, tokens)
            record_audit(session, AuditAction.CALENDAR_CONNECTED, calendar.id)
        return calendar

    def build_calendar(
        self,
        organization_id: UUID,
        data: CalendarCreate,
        remote: RemoteCalendar = ITSELF,
        tokens: OAuthTokens | None = None,
    ) -> Calendar:
        """Build the row of a calendar, `remote` of its account."""
        calendar = Calendar(
            organization_id=organization_id,
            provider=data.provider,
            name=data.name,
            secrets="",
            remote_id=remote.id,
            time_zone=remote.time_zone,
        )
        self.accounts.write_settings(calendar, data.settings, tokens)
        return calendar

    async def update(self, principal: Principal, calendar_id: UUID, data: CalendarUpdate) -> Calendar:
        """Change the given fields that differ; settings are merged, and tried before they are saved.

        Raises `NotFound`, and as `connect` does.
        """
        organization_id = principal.organization_id
        async with self.database.read(organization_id) as session:
            await require_owner(session, principal)
            calendar = await get_row(session, Calendar, calendar_id)
            coming = [entry.id for entry in await list_coming_entries(session, calendar_id, MOST_COMPARED)]
        if ACCESS_TOKEN in data.settings and self.accounts.needs_oauth(calendar.provider):
            raise ValidationFailed.field(f"settings.{ACCESS_TOKEN}", "is set when the account is connected")
        known = self.accounts.read_settings(calendar)
        changed_settings = {name: value for name, value in {**known, **data.settings}.items() if value is not None}
        has_new_settings = changed_settings != known or calendar.status != "connected"
        remote = None
        if "settings" in data.model_fields_set and has_new_settings:
            settings = {**changed_settings, **await self._read_fresh_token(calendar)}
            remote = await self._try_account(organization_id, calendar.provider, settings, coming)
        async with self.database.write(organization_id, actor=principal.actor) as session:
            calendar = await lock_row(session, Calendar, calendar_id)
            changed = set()
            if "name" in data.model_fields_set and data.name != calendar.name:
                calendar.name = data.name
                changed.add("name")
            if remote is not None:
                # The tokens may have been refreshed meanwhile.
                self._replace_account(calendar, changed_settings, remote, self.accounts.read_tokens(calendar))
                changed.add("settings")
            if changed:
                calendar.updated_at = now()
                record_audit(session, AuditAction.CALENDAR_UPDATED, calendar.id, fields=changed)
            return calendar

    @asynccontextmanager
    async def open(self, calendar: Calendar) -> AsyncIterator[CalendarProvider[ProviderSettings] | None]:
        """Open a calendar's provider and yield it; None for a calendar of the built-in one.

        A calendar whose account is refused, here or while it is used, is marked as disconnected. Raises
        `ProviderError`.
        """
        if calendar.provider == LOCAL:
            yield None
            return
        require_connected(calendar)
        current = await self.accounts.freshen(calendar)
        try:
            settings = self.accounts.read_settings(current)
            opened = self.providers.open_calendar(calendar.organization_id, calendar.provider, settings)
            async with opened as provider:
                yield provider
        except InvalidSettings as error:
            raise ProviderError(f"the settings of the calendar {calendar.name} cannot be used: {error}") from None
        except AccountRefused as error:
            await self.accounts.record_refusal(current, error.message)
            raise
        await self.accounts.record_use(current)

    async def _read_fresh_token(self, calendar: Calendar) -> dict[str, JsonValue]:
        """Return the setting with the access token of an account that was connected by OAuth; nothing for another."""
        if not self.accounts.needs_oauth(calendar.provider):
            return {}
        try:
            tokens = self.accounts.read_tokens(await self.accounts.freshen(calendar))
        except ProviderError as error:
            raise _refuse(error) from error
        return {ACCESS_TOKEN: tokens.access_token} if tokens is not None else {}

    def _replace_account(
        self,
        calendar: Calendar,
        settings: Mapping[str, JsonValue],
        remote: RemoteCalendar,
        tokens: OAuthTokens | None,
    ) -> None:
        """Write an account that the provider has accepted into the locked row of a calendar."""
        if calendar.remote_id != remote.id:
            calendar.watch_id = ""
        calendar.remote_id, calendar.time_zone, calendar.watch_due_at = remote.id, remote.time_zone, None
        calendar.updated_at = now()
        mark_connected(calendar)
        self.accounts.write_settings(calendar, settings, tokens)

    async def _try_account(
        self, organization_id: UUID, provider: str, settings: Mapping[str, JsonValue], coming: Sequence[UUID] = ()
    ) -> RemoteCalendar:
        """Return the calendar of an account that its provider accepts, and which has one of the `coming` events, if
        there are any: in another calendar all appointments would seem to be canceled.
        """
        if provider == LOCAL:
            if settings:
                raise ValidationFailed.field(
                    f"settings.{next(iter(settings))}", "the built-in provider has no settings"
                )
            return ITSELF
        if self.registry.find_provider_class(CalendarProvider, provider) is None:
            names = [LOCAL, *(kind.name for kind in self.registry.list_provider_classes(CalendarProvider))]
            raise ValidationFailed.field("provider", f"must be one of {', '.join(names)}")
        try:
            async with (
                asyncio.timeout(CONNECT_SECONDS),
                self.providers.open_calendar(organization_id, provider, settings) as opened,
            ):
                await opened.check()
                found = [calendar for calendar in await opened.list_calendars() if calendar.is_writable]
                kept = [key for key in coming if found and await opened.find_event(found[0].id, key)]
        except InvalidSettings as error:
            faults: list[FieldError] = [
                {"field": f"settings.{name}", "message": message.removeprefix("Value error, ")}
                for name, message in error.faults
            ]
            raise ValidationFailed(f"settings.{error}", errors=faults) from None
        except ProviderError as error:
            raise _refuse(error) from error
        except TimeoutError as error:
            raise ProviderFailed("the calendar's server did not answer in time") from error
        if not found:
            raise ValidationFailed.field("settings", "the account has no calendar that events can be written to")
        if coming and not kept:
            raise ValidationFailed.field(
                "settings", "this calendar does not have the coming appointments; connect it as another calendar"
            )
        return found[0]


def describe_failure(error: ProviderError | TimeoutError) -> str:
    """Return the reason why a calendar could not be used, for people and for logs."""
    return error.message if isinstance(error, ProviderError) else "it did not answer in time"


def _refuse(error: ProviderError) -> ProviderFailed | ValidationFailed:
    """Return the refusal of an account that the provider does not accept, or cannot judge now."""
    return ProviderFailed(error.message) if error.retryable else ValidationFailed.field("settings", error.message)
