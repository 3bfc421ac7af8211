"""Changes that people make to appointments in the calendar itself.

A calendar with coming appointments is asked each minute whether something has changed, or when its vendor reports a
change. If something has, the events of its appointments are compared with their entries: an event that is gone cancels
its appointment, and one at another time moves it. An event that has the version that the platform has seen last was not
touched by anybody: if its entry has another time, because the appointment was moved in another of its calendars, the
event follows.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.plugin_sdk import CalendarEvent, CalendarProvider, ProviderError, ProviderSettings
from switchboard.resources.appointments.booking import (
    ASK_SECONDS,
    AppointmentBook,
    get_event_version,
    record_cancellation,
    record_move,
)
from switchboard.resources.appointments.calendars import CalendarConnections, describe_failure
from switchboard.resources.appointments.models import Appointment, AppointmentType, Calendar, CalendarEntry
from switchboard.resources.appointments.queries import list_coming_entries, lock_calendar_entries
from switchboard.resources.appointments.watches import CalendarWatches

logger = structlog.get_logger()
LOOK_EVERY: Final = timedelta(seconds=60)
LOOK_AT_WATCHED_EVERY: Final = timedelta(minutes=15)
"""How often a calendar is asked whose changes are reported: the vendors say that reports may be lost."""
WINDOW: Final = timedelta(days=31)
"""Longest period that is read at once."""


@dataclass(frozen=True, slots=True)
class CalendarWatcher:
    """Looks for what people have changed in calendars."""

    database: Database
    connections: CalendarConnections
    watches: CalendarWatches
    book: AppointmentBook

    async def look(self, organization_id: UUID, calendar_id: UUID) -> None:
        """Look for changes in a calendar, unless another process does.

        What cannot be compared now, because the calendar cannot be reached or an appointment is being changed, is
        compared with the next look.
        """
        async with self.database.write(organization_id) as session:
            calendar = await session.lock(Calendar, calendar_id)
            if calendar is None or calendar.changes_due_at is None or calendar.changes_due_at > now():
                return
            has_entries = bool(await list_coming_entries(session, calendar_id, 1))
            wait = LOOK_AT_WATCHED_EVERY if calendar.watch_id else LOOK_EVERY
            calendar.changes_due_at = now() + wait if has_entries else None
        if not has_entries or calendar.status == "disconnected":
            return
        try:
            async with asyncio.timeout(ASK_SECONDS), self.connections.open(calendar) as provider:
                if provider is None:
                    return
                changes = await provider.find_changes(calendar.remote_id, calendar.changes_cursor)
                is_complete = not changes.has_changed or await self._compare(provider, calendar)
        except (ProviderError, TimeoutError) as error:
            logger.warning(
                "calendar cannot be asked for changes", calendar_id=str(calendar_id), reason=describe_failure(error)
            )
            return
        if is_complete and changes.cursor != calendar.changes_cursor:
            async with self.database.write(organization_id) as session:
                asked = await lock_row(session, Calendar, calendar_id)
                # Unless an appointment that was moved in another of its calendars wants another look.
                if asked.changes_due_at == calendar.changes_due_at:
                    asked.changes_cursor = changes.cursor
        await self.watches.keep(calendar)

    async def _compare(self, provider: CalendarProvider[ProviderSettings], calendar: Calendar) -> bool:
        """Compare the events of a calendar's coming entries with them, and apply what people have changed; return
        whether that is done for all of them.

        The entries are read after the cursor: a change of one that is booked meanwhile is found by the next look.
        """
        async with self.database.read(calendar.organization_id) as session:
            entries = await list_coming_entries(session, calendar.id)
        is_complete = True
        zone = calendar.time_zone or "UTC"
        for group in _group_by_time(entries):
            begin, end = group[0].starts_at, max(entry.ends_at for entry in group)
            busy = await provider.list_busy(calendar.remote_id, begin, end, time_zone=zone)
            known = {(time.event_key, time.starts_at, time.ends_at) for time in busy}
            for entry in group:
                if (entry.id, entry.starts_at, entry.ends_at) in known:
                    continue
                try:
                    event = await self._find_event(provider, calendar, entry)
                except ProviderError as error:
                    if error.retryable:
                        raise
                    # One event that cannot be read, or be moved, does not hide the others.
                    logger.warning("event cannot be compared", entry_id=str(entry.id), reason=error.message)
                    is_complete = False
                    continue
                is_complete &= await self._apply(entry, event)
        return is_complete

    async def _find_event(
        self, provider: CalendarProvider[ProviderSettings], calendar: Calendar, entry: CalendarEntry
    ) -> CalendarEvent | None:
        """Return the event of an entry; None if it is gone. One that nobody has touched gets the entry's time."""
        event = await provider.find_event(calendar.remote_id, entry.id)
        if event is None or get_event_version(event) != entry.event_version:
            return event
        if (event.starts_at, event.ends_at) == (entry.starts_at, entry.ends_at):
            return event
        return await provider.move_event(calendar.remote_id, event, entry.starts_at, entry.ends_at)

    async def _apply(self, seen: CalendarEntry, event: CalendarEvent | None) -> bool:
        """Apply the state of an event to its appointment; return False if the appointment is being changed."""
        async with self.database.write(seen.organization_id) as session:
            appointment = await lock_row(session, Appointment, seen.appointment_id)
            entries = {entry.id: entry for entry in await lock_calendar_entries(session, appointment.id)}
            entry = entries.get(seen.id)
            if entry is None or appointment.status != "booked":
                return True
            state = (entry.starts_at, entry.ends_at, entry.event_version)
            if state != (seen.starts_at, seen.ends_at, seen.event_version) or any(
                each.state != "booked" for each in entries.values()
            ):
                return False
            if event is None:
                await record_cancellation(session, appointment, changed_in="calendar")
            else:
                entry.event_version = get_event_version(event)
                if (event.starts_at, event.ends_at) != (entry.starts_at, entry.ends_at):
                    kind = await get_row(session, AppointmentType, appointment.appointment_type_id)
                    for each in entries.values():
                        each.starts_at, each.ends_at = event.starts_at, event.ends_at
                        if each.id != entry.id:
                            await _look_again(session, each.calendar_id)
                    await record_move(session, appointment, kind, event.starts_at, event.ends_at, changed_in="calendar")
        if event is None:
            await self.book.settle(seen.organization_id, seen.appointment_id)
        return True


async def _look_again(session: WriteSession, calendar_id: UUID) -> None:
    """Have the events of a calendar compared at the next look, whether something has changed in it or not."""
    calendar = await lock_row(session, Calendar, calendar_id)
    if calendar.changes_due_at is not None:
        calendar.changes_due_at, calendar.changes_cursor = now(), ""


def _group_by_time(entries: Sequence[CalendarEntry]) -> Iterator[list[CalendarEntry]]:
    """Split entries, in the order of their beginnings, into groups that begin within one window."""
    group: list[CalendarEntry] = []
    for entry in entries:
        if group and entry.starts_at - group[0].starts_at > WINDOW:
            yield group
            group = []
        group.append(entry)
    if group:
        yield group
