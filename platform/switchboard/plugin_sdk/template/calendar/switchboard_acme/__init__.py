"""Acme: a calendar. Replace the requests with your vendor's."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic import Field
from switchboard.plugin_sdk import (
    BusyTime,
    CalendarEvent,
    CalendarProvider,
    EventChanged,
    EventDraft,
    ProviderError,
    ProviderSettings,
    RemoteCalendar,
    hookimpl,
)

from switchboard_acme.client import AcmeProvider, AcmeSettings

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""
CHANGED = ("404", "412")


class AcmeAccount(ProviderSettings):
    """Access to a user's calendars at Acme."""

    user: str = Field(description="User whose calendars are connected.")


class AcmeCalendar(AcmeProvider, CalendarProvider[AcmeSettings]):
    """Calendars of a user. Acme decides conflicts: the key is the id of an event, and a change names its version."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings
    Account = AcmeAccount
    account: AcmeAccount

    async def list_calendars(self) -> Sequence[RemoteCalendar]:
        rows = await self._client.request("GET", f"/users/{self.account.user}/calendars")
        return [RemoteCalendar(row["id"], row["name"], row["time_zone"]) for row in rows]

    async def list_busy(
        self, calendar_id: str, starts_at: datetime, ends_at: datetime, *, time_zone: str
    ) -> Sequence[BusyTime]:
        window = {"from": starts_at.isoformat(), "to": ends_at.isoformat(), "time_zone": time_zone}
        rows = await self._client.request("GET", f"/calendars/{calendar_id}/busy", params=window)
        return [BusyTime(read_time(row["from"]), read_time(row["to"]), UUID(row["id"])) for row in rows]

    async def create_event(self, calendar_id: str, draft: EventDraft) -> CalendarEvent:
        body = {
            "id": str(draft.key),
            "from": draft.starts_at.isoformat(),
            "to": draft.ends_at.isoformat(),
            "time_zone": draft.time_zone,
            "title": draft.title,
            "description": draft.description,
        }
        return read_event(
            await self._client.request("POST", f"/calendars/{calendar_id}/events", creates=True, json=body)
        )

    async def find_event(self, calendar_id: str, key: UUID) -> CalendarEvent | None:
        try:
            return read_event(await self._client.request("GET", f"/calendars/{calendar_id}/events/{key}"))
        except ProviderError as error:
            if error.code == "404":
                return None
            raise

    async def move_event(
        self, calendar_id: str, event: CalendarEvent, starts_at: datetime, ends_at: datetime
    ) -> CalendarEvent:
        path, condition = f"/calendars/{calendar_id}/events/{event.id}", {"If-Match": event.version}
        body = {"from": starts_at.isoformat(), "to": ends_at.isoformat()}
        try:
            moved = await self._client.request("PATCH", path, creates=True, json=body, headers=condition)
        except ProviderError as error:
            if error.code in CHANGED:
                raise EventChanged from error
            raise
        return read_event(moved)

    async def cancel_event(self, calendar_id: str, event: CalendarEvent) -> None:
        await self._client.request("DELETE", f"/calendars/{calendar_id}/events/{event.id}", creates=True)


def read_time(text: str) -> datetime:
    """Return a time of Acme's in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


def read_event(row: dict[str, Any]) -> CalendarEvent:
    """Return an event of Acme's."""
    return CalendarEvent(UUID(row["id"]), row["id"], row["version"], read_time(row["from"]), read_time(row["to"]))


@hookimpl
def calendar_providers() -> Sequence[type[AcmeCalendar]]:
    return [AcmeCalendar]
