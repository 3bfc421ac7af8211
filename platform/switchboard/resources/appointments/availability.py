"""Free times of an appointment type, and the tokens by which they are booked."""

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog

from switchboard.foundation.database import Database, ReadSession, now
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.foundation.web.errors import ProviderFailed, ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.plugin_sdk import BusyTime, ProviderError
from switchboard.resources.appointments import queries
from switchboard.resources.appointments.calendars import CalendarConnections, describe_failure
from switchboard.resources.appointments.models import AppointmentType, Calendar, CalendarEntry
from switchboard.resources.appointments.schemas import AvailabilityOut, AvailabilityQuery, SlotOut
from switchboard.resources.appointments.slots import BookingRules, FreeSlot, Occupancy, find_free_slots
from switchboard.resources.appointments.type_settings import AppointmentTypeSettings

logger = structlog.get_logger()
TOKEN_LIFETIME: Final = timedelta(minutes=30)
DEFAULT_PERIOD: Final = timedelta(days=7)
LONGEST_PERIOD: Final = timedelta(days=62)


@dataclass(frozen=True, slots=True)
class OfferedTime:
    """A time that was offered: an appointment type, the beginning (UTC), and when its token expires."""

    appointment_type_id: UUID
    starts_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SlotTokens:
    """Tokens of free times: opaque, and bound to the organization and the appointment type."""

    keyring: KeyRing

    def issue(self, organization_id: UUID, type_id: UUID, starts_at: datetime) -> str:
        """Return the token of a free time that is offered now."""
        expires_at = int((now() + TOKEN_LIFETIME).timestamp())
        content = json.dumps([str(type_id), int(starts_at.timestamp()), expires_at])
        return self.keyring.encrypt(content, _format_place(organization_id))

    def read(self, organization_id: UUID, token: str) -> OfferedTime:
        """Return the time of a token.

        Raises `ValidationFailed` for a token that has expired, or was not issued for the organization.
        """
        try:
            type_id, starts_at, expires_at = json.loads(self.keyring.decrypt(token, _format_place(organization_id)))
        except SecretError:
            raise ValidationFailed.field("slot_token", "is not a token of a free time of the organization") from None
        offered = OfferedTime(
            UUID(type_id), datetime.fromtimestamp(starts_at, UTC), datetime.fromtimestamp(expires_at, UTC)
        )
        if offered.expires_at <= now():
            raise ValidationFailed.field("slot_token", "has expired; ask for the free times again")
        return offered


def _format_place(organization_id: UUID) -> str:
    return f"slot_token|{organization_id}"


def build_rules(settings: AppointmentTypeSettings) -> BookingRules:
    """Build the rules by which free times are found from the settings of a type."""
    hours = settings.hours
    return BookingRules(
        duration=timedelta(minutes=settings.duration_minutes),
        grid=timedelta(minutes=settings.grid_minutes or settings.duration_minutes),
        buffer_before=timedelta(minutes=settings.buffer_before_minutes),
        buffer_after=timedelta(minutes=settings.buffer_after_minutes),
        zone=ZoneInfo(hours.timezone),
        hours=hours.slots,
        closed_days=frozenset(map(date.fromisoformat, hours.holidays)),
        special_hours={
            date.fromisoformat(day.date): [(part.start, part.end) for part in day.hours] for day in hours.special_days
        },
        lead=timedelta(minutes=settings.lead_minutes),
        horizon=timedelta(days=settings.horizon_days),
        daily_limit=settings.daily_limit,
        needs_all=settings.calendar_mode == "all",
    )


async def read_occupancy(
    session: ReadSession,
    kind: AppointmentType,
    calendar_ids: Collection[UUID],
    *,
    after: datetime,
    until: datetime,
    without: UUID | None = None,
) -> Occupancy:
    """Read the times that the platform's own appointments take in calendars between two moments.

    `without` is an appointment that is about to be moved, whose present time is free for itself.
    """
    settings = kind.settings
    margin = timedelta(days=2)  # an appointment with its buffers, and the local day, may begin before the period
    busy: dict[UUID, list[BusyTime]] = {calendar_id: [] for calendar_id in calendar_ids}
    for entry in await queries.list_taking_entries(
        session, calendar_ids, after - margin, until + margin, without=without
    ):
        busy[entry.calendar_id].append(_widen(entry, settings))
    zone = ZoneInfo(settings.hours.timezone)
    starts = await queries.list_taken_starts(session, kind.id, after - margin, until + margin, without=without)
    days = Counter(starts_at.astimezone(zone).date() for starts_at in starts)
    return Occupancy(busy, days)


def _widen(entry: CalendarEntry, settings: AppointmentTypeSettings) -> BusyTime:
    """Return the period that an entry blocks for appointments of a type, whose own buffers are added to it later.

    Between two appointments the longer buffer of both counts, and not the sum.
    """
    before = max(entry.minutes_before - settings.buffer_after_minutes, 0)
    after = max(entry.minutes_after - settings.buffer_before_minutes, 0)
    return BusyTime(entry.starts_at - timedelta(minutes=before), entry.ends_at + timedelta(minutes=after))


@dataclass(frozen=True, slots=True)
class Availability:
    database: Database
    connections: CalendarConnections
    keyring: KeyRing

    async def list_slots(self, organization_id: UUID, type_id: UUID, query: AvailabilityQuery) -> AvailabilityOut:
        """List free times with their tokens, earliest first.

        Raises `NotFound`, and `ProviderFailed` if no calendar of the type could be read.
        """
        async with self.database.read(organization_id) as session:
            kind = await get_row(session, AppointmentType, type_id)
        after = max(query.from_ or now(), now())
        until = min(query.to or after + DEFAULT_PERIOD, after + LONGEST_PERIOD)
        found = await self.find_slots(kind, after=after, until=until, limit=query.limit)
        return AvailabilityOut(items=self.offer(kind, found, time_zone=query.time_zone))

    def offer(self, kind: AppointmentType, slots: Sequence[FreeSlot], *, time_zone: str | None = None) -> list[SlotOut]:
        """Return free times with their tokens."""
        zone, tokens = ZoneInfo(time_zone or kind.settings.hours.timezone), SlotTokens(self.keyring)
        return [
            SlotOut(
                starts_at=slot.starts_at,
                ends_at=slot.ends_at,
                local_starts_at=slot.starts_at.astimezone(zone).isoformat(),
                slot_token=tokens.issue(kind.organization_id, kind.id, slot.starts_at),
            )
            for slot in slots
        ]

    async def find_slots(
        self, kind: AppointmentType, *, after: datetime, until: datetime, limit: int
    ) -> list[FreeSlot]:
        """Find free times by the platform's appointments and by the calendars themselves.

        A calendar that cannot be read is not free. Raises `ProviderFailed` if that leaves none, or if the type needs
        all.
        """
        async with self.database.read(kind.organization_id) as session:
            calendar_ids = [UUID(calendar_id) for calendar_id in kind.settings.calendar_ids]
            connected = await queries.list_calendars_by_id(session, calendar_ids)
            occupancy = await read_occupancy(session, kind, calendar_ids, after=after, until=until)
        rules = build_rules(kind.settings)
        begin, end = after - rules.buffer_before, until + rules.duration + rules.buffer_after
        busy = await asyncio.gather(
            *(self.read_busy(calendar, kind, begin, end) for calendar in connected),
            return_exceptions=True,
        )
        readable: dict[UUID, Sequence[BusyTime]] = {}
        failure: ProviderFailed | None = None
        for calendar, periods in zip(connected, busy, strict=True):
            if isinstance(periods, ProviderFailed):
                failure = periods
            elif isinstance(periods, BaseException):
                raise periods
            else:
                readable[calendar.id] = [*occupancy.busy[calendar.id], *periods]
        if failure is not None and (not readable or kind.settings.calendar_mode == "all"):
            raise failure
        known = Occupancy(readable, occupancy.appointments_by_day)
        return find_free_slots(rules, known, after=after, until=until, now=now(), limit=limit)

    async def read_busy(
        self,
        calendar: Calendar,
        kind: AppointmentType,
        after: datetime,
        until: datetime,
        *,
        without: Collection[UUID] = (),
    ) -> list[BusyTime]:
        """Return the periods in which a calendar is busy by its own account.

        The events of appointments that are being canceled are left out, and those of the entries `without`. Raises
        `ProviderFailed`.
        """
        try:
            async with self.connections.open(calendar) as provider:
                if provider is None:
                    return []
                zone = calendar.time_zone or kind.settings.hours.timezone
                found = await provider.list_busy(calendar.remote_id, after, until, time_zone=zone)
        except (ProviderError, TimeoutError) as error:
            message = describe_failure(error)
            logger.warning("calendar cannot be read", calendar_id=str(calendar.id), reason=message)
            raise ProviderFailed(f"The calendar {calendar.name} cannot be read: {message}") from error
        keys = {time.event_key for time in found if time.event_key is not None}
        async with self.database.read(calendar.organization_id) as session:
            freed = await queries.list_releasing_entries(session, keys)
        ignored = freed | set(without)
        return [BusyTime(time.starts_at, time.ends_at) for time in found if time.event_key not in ignored]
