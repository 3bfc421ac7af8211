"""Free slots: a table of times, each checked against brute force, and random rules against the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from switchboard.plugin_sdk.calendars import BusyTime
from switchboard.resources.appointments import slots
from switchboard.resources.appointments.slots import (
    BookingRules,
    FreeSlot,
    Occupancy,
    find_free_calendars,
    find_free_slots,
)
from switchboard.resources.identity.weekly_hours import DAYS, Day

from tests.appointments.slot_oracle import SlotOracle

BERLIN, NEW_YORK, KATHMANDU, LORD_HOWE, HAVANA, APIA = (
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/Havana",
    "Pacific/Apia",
)
CALENDARS = (UUID(int=1), UUID(int=2), UUID(int=3))
LONG_AGO, FOR_GOOD = datetime(2000, 1, 1, tzinfo=UTC), timedelta(days=365 * 50)
ALWAYS = ("daily 00:00-00:00",)


@dataclass(frozen=True)
class WeekHours:
    days: Sequence[Day]
    start: str
    end: str


def parse_hours(text: str) -> WeekHours:
    """Read `tue,wed 09:00-12:00` or `daily 09:00-12:00`."""
    days, clocks = text.split()
    start, end = clocks.split("-")
    return WeekHours(DAYS if days == "daily" else [day for day in DAYS if day in days.split(",")], start, end)


@dataclass(frozen=True)
class Case:
    """A search between two local times, and the local starts that it finds.

    Durations are minutes. `busy` has a text of local periods per calendar, such as `1T09:00-1T10:00`, in the month of
    `after`. Days of `closed`, `special`, and `booked` are days of that month, too. In `expected` a day of the month is
    written before its first start, and `*` marks the second of two equal local times.
    """

    name: str
    expected: str
    hours: Sequence[str] = ("daily 09:00-12:00",)
    zone: str = BERLIN
    after: str = "2026-12-01T00:00"
    until: str = ""
    duration: int = 60
    grid: int = 60
    before: int = 0
    behind: int = 0
    busy: Sequence[str] = ("",)
    needs_all: bool = False
    closed: Sequence[int] = ()
    special: Mapping[int, Sequence[tuple[str, str]]] | None = None
    now: str = ""
    lead: int = 0
    horizon: int | None = None
    daily_limit: int | None = None
    booked: Mapping[int, int] | None = None
    limit: int = 1000

    def parse(self, text: str) -> datetime:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(self.zone)).astimezone(UTC)

    def get_now(self) -> datetime:
        return self.parse(self.now) if self.now else LONG_AGO

    def find_until(self) -> datetime:
        """Return the end of the search, which is the next midnight if the case says none."""
        if self.until:
            return self.parse(self.until)
        return self.parse(f"{datetime.fromisoformat(self.after).date() + timedelta(days=1)}T00:00")

    def find_day(self, day: int) -> date:
        return self.parse(self.after).astimezone(ZoneInfo(self.zone)).date().replace(day=day)

    def build_rules(self) -> BookingRules:
        return BookingRules(
            duration=timedelta(minutes=self.duration),
            grid=timedelta(minutes=self.grid),
            buffer_before=timedelta(minutes=self.before),
            buffer_after=timedelta(minutes=self.behind),
            zone=ZoneInfo(self.zone),
            hours=[parse_hours(text) for text in self.hours],
            closed_days=frozenset(self.find_day(day) for day in self.closed),
            special_hours={self.find_day(day): pairs for day, pairs in (self.special or {}).items()},
            lead=timedelta(minutes=self.lead),
            horizon=FOR_GOOD if self.horizon is None else timedelta(minutes=self.horizon),
            daily_limit=self.daily_limit,
            needs_all=self.needs_all,
        )

    def build_occupancy(self) -> Occupancy:
        return Occupancy(
            busy={key: self.parse_busy(text) for key, text in zip(CALENDARS, self.busy, strict=False)},
            appointments_by_day={self.find_day(day): number for day, number in (self.booked or {}).items()},
        )

    def parse_busy(self, text: str) -> list[BusyTime]:
        pairs = [period.split("-") for period in text.split()]
        return [BusyTime(self.parse_busy_end(start), self.parse_busy_end(end)) for start, end in pairs]

    def parse_busy_end(self, text: str) -> datetime:
        """Read `1T09:00`, or `1T02:00*` for the second of two equal local times."""
        day, clock = text.rstrip("*").split("T")
        local = datetime.fromisoformat(f"{self.find_day(int(day))}T{clock}")
        return local.replace(tzinfo=ZoneInfo(self.zone), fold=int(text.endswith("*"))).astimezone(UTC)

    def find(self) -> list[FreeSlot]:
        return find_free_slots(
            self.build_rules(),
            self.build_occupancy(),
            after=self.parse(self.after),
            until=self.find_until(),
            now=self.get_now(),
            limit=self.limit,
        )


def write_starts(found: Sequence[FreeSlot], zone: str) -> str:
    words: list[str] = []
    day = None
    for slot in found:
        local = slot.starts_at.astimezone(ZoneInfo(zone))
        prefix = "" if local.date() == day else f"{local.day}T"
        words.append(f"{prefix}{local:%H:%M}{'*' * local.fold}")
        day = local.date()
    return " ".join(words)


HOURS_AND_GRIDS = [
    Case("hours of a day", "1T09:00 10:00 11:00"),
    Case("a grid shorter than the duration", "1T09:00 09:30 10:00 10:30 11:00", grid=30),
    Case("a grid that does not divide the hours", "1T09:00 09:45 10:30", grid=45),
    Case("a grid longer than the hours", "1T09:00", grid=240),
    Case("a duration longer than the hours", "", duration=185),
    Case("a duration of the whole hours", "1T09:00", duration=180),
    Case("a grid from an odd beginning", "1T09:10 09:40 10:10", hours=("daily 09:10-11:00",), grid=30, duration=30),
    Case("hours that touch", "1T09:00 10:00 11:00 12:00", hours=("tue 09:00-12:00", "tue 12:00-14:00"), duration=120),
    Case("hours that overlap", "1T09:00 09:45 10:30", hours=("tue 10:00-12:00", "tue 09:00-11:00"), grid=45),
    Case("hours within hours", "1T09:00 10:00 11:00", hours=("daily 09:00-12:00", "tue 10:00-11:00")),
    Case("equal hours", "1T09:00 10:00 11:00", hours=("daily 09:00-12:00", "tue 09:00-12:00")),
    Case("a break", "1T09:00 09:30 10:05 10:35", hours=("tue 09:00-10:00", "tue 10:05-11:05"), grid=30, duration=30),
    Case("no slot over a break", "1T09:00 11:05", hours=("tue 09:00-11:00", "tue 11:05-13:05"), duration=120),
    Case("hours of another day", "", hours=("wed 09:00-12:00",)),
    Case("no hours", "", hours=()),
    Case("hours over midnight", "1T22:00 23:00 2T00:00 01:00", hours=("tue 22:00-02:00",), until="2026-12-03T00:00"),
    Case("a slot over midnight", "1T22:30 2T00:00", hours=("tue 22:30-02:00",), until="2026-12-03", duration=90,
         grid=90),
    Case("a search within hours over midnight", "2T01:00", hours=("tue 22:00-02:00",), after="2026-12-02T00:30",
         until="2026-12-03"),
    Case("hours to midnight", "1T22:00 23:00", hours=("tue 22:00-00:00",), until="2026-12-03"),
    Case("hours to midnight and from midnight", "1T22:00 23:30", hours=("tue 22:00-00:00", "wed 00:00-02:00"),
         until="2026-12-03", duration=90, grid=90),
    Case("a slot into hours after the search", "1T22:00 23:00", hours=("tue 22:00-00:00", "wed 00:00-02:00"),
         until="2026-12-01T23:30", duration=120),
    Case("a start at the beginning of the search", "1T10:00 11:00", after="2026-12-01T10:00"),
    Case("a beginning of the search off the grid", "1T10:00 11:00", after="2026-12-01T09:05"),
    Case("no start at the end of the search", "1T09:00 10:00", until="2026-12-01T11:00"),
    Case("a search that ends within a slot", "1T09:00 10:00 11:00", until="2026-12-01T11:05"),
    Case("an empty search", "", until="2026-12-01T00:00"),
    Case("a search that ends before its beginning", "", until="2026-11-30T00:00"),
    Case("two days", "1T09:00 10:00 11:00 2T09:00 10:00 11:00", until="2026-12-03T00:00"),
    Case("a limit", "1T09:00 10:00 11:00 2T09:00", until="2026-12-03T00:00", limit=4),
    Case("a limit of nothing", "", limit=0),
]  # fmt: skip
ALWAYS_OPEN = [
    Case("the grid counts from Monday", "1T04:00 11:00 18:00", hours=ALWAYS, grid=420),
    Case("the grid begins again on Monday", "6T16:00 21:00 7T00:00 05:00 10:00", hours=ALWAYS, grid=300,
         after="2026-12-06T12:00",
         until="2026-12-07T12:00"),
    Case("a slot over the new grid", "6T16:00 21:00 7T00:00 05:00 10:00", hours=ALWAYS, grid=300, duration=600,
         after="2026-12-06T12:00", until="2026-12-07T12:00"),
    Case("hours over Monday keep their grid", "6T20:00 7T03:00", hours=("sun 20:00-04:00",), grid=420,
         after="2026-12-06T12:00", until="2026-12-07T12:00"),
    Case("days on end keep their grid", "2T04:00 11:00 18:00", hours=("tue,wed 00:00-00:00",), grid=420,
         after="2026-12-02", until="2026-12-03"),
    Case("always open after a holiday", "2T00:00 07:00 14:00 21:00", hours=ALWAYS, grid=420, until="2026-12-03",
         closed=(1,)),
    Case("always open since a holiday in the last week", "7T05:00 12:00 19:00", hours=ALWAYS, grid=420,
         after="2026-12-07", until="2026-12-08", closed=(3,)),
    Case("always open since Monday of the last week", "14T00:00 05:00 10:00 15:00 20:00", hours=ALWAYS, grid=300,
         after="2026-12-14", closed=(6,)),
    Case("always open by hours over midnight", "1T01:00 06:00 11:00 16:00 21:00", hours=("daily 12:00-12:00",),
         grid=300),
]  # fmt: skip
HOLIDAYS = [
    Case("a holiday", "", closed=(1,)),
    Case("a holiday between days", "1T11:00 3T09:00", after="2026-12-01T11:00", until="2026-12-03T10:00", closed=(2,)),
    Case("the night before a holiday", "1T22:00 23:00 2T00:00 01:00", hours=("daily 22:00-02:00",),
         after="2026-12-01T12:00", until="2026-12-03", closed=(2,)),
    Case("the night after a holiday", "2T22:00", hours=("daily 22:00-02:00",), after="2026-12-01T12:00",
         until="2026-12-02T23:00", closed=(1,)),
    Case("special hours", "1T14:00 15:00", special={1: [("14:00", "16:00")]}),
    Case("special hours of two parts", "1T09:00 14:00", special={1: [("14:00", "15:00"), ("09:00", "10:00")]}),
    Case("special hours on a day without any", "6T14:00", hours=("tue 09:00-12:00",), until="2026-12-10T00:00",
         after="2026-12-02", special={6: [("14:00", "15:00")]}, limit=1),
    Case("a day without special hours", "2T09:00 10:00 11:00", until="2026-12-03", special={1: []}),
    Case("special hours on a holiday", "", closed=(1,), special={1: [("14:00", "16:00")]}),
    Case("special hours over midnight", "1T23:00 2T00:00 09:00 10:00 11:00", until="2026-12-03",
         special={1: [("23:00", "01:00")]}),
    Case("special hours that touch the next day's", "1T22:00 23:30", hours=("wed 00:00-02:00",), until="2026-12-03",
         duration=90, grid=90, special={1: [("22:00", "00:00")]}),
    Case("the night before special hours", "2T00:00 01:00 02:00", hours=("daily 22:00-02:00",), after="2026-12-02",
         until="2026-12-02T12:00", special={2: [("01:00", "03:00")]}),
    Case("the 29th of February", "29T09:00 10:00 11:00", hours=("tue 09:00-12:00",), after="2028-02-28",
         until="2028-03-02"),
    Case("the night of the 29th of February", "28T23:00 29T00:00 01:00 22:00 23:00 1T00:00",
         hours=("daily 22:00-02:00",), after="2028-02-28T23:00", until="2028-03-01T01:00"),
    Case("the end of February in other years", "28T23:00 1T00:00 01:00", hours=("daily 22:00-02:00",),
         after="2027-02-28T23:00", until="2027-03-01T12:00"),
    Case("a holiday on the 29th of February", "28T11:00 1T09:00", after="2028-02-28T11:00", until="2028-03-01T10:00",
         closed=(29,)),
]  # fmt: skip
BUSY = [
    Case("a busy hour", "1T09:00 11:00", busy=("1T10:00-1T11:00",)),
    Case("a busy time off the grid", "1T09:00 10:15 10:30 10:45 11:00 11:15 11:30", busy=("1T09:30-1T10:05",), grid=15,
         duration=30),
    Case("a busy day", "", busy=("1T00:00-2T00:00",)),
    Case("busy times in no order that overlap", "1T11:00", busy=("1T10:30-1T11:00 1T08:00-1T10:00 1T09:00-1T10:35",)),
    Case("a busy time within another", "1T11:00", busy=("1T09:00-1T11:00 1T09:10-1T09:20",)),
    Case("a slot between two busy times", "1T09:30", busy=("1T08:00-1T09:30 1T10:30-1T12:00",), grid=30),
    Case("too little between two busy times", "", busy=("1T08:00-1T09:35 1T10:30-1T12:00",), grid=5),
    Case("a busy time over midnight", "1T22:00 2T01:00", hours=("tue 22:00-02:00",), until="2026-12-03",
         busy=("1T23:30-2T00:30",)),
    Case("a busy time without duration", "1T09:00 10:00 11:00", busy=("1T10:30-1T10:30",)),
    Case("a buffer before", "1T09:00 09:15 09:30 11:15 11:30", busy=("1T10:00-1T11:00",), grid=15, duration=30,
         before=15),
    Case("a buffer after", "1T09:00 09:15 11:00 11:15 11:30", busy=("1T10:00-1T11:00",), grid=15, duration=30,
         behind=15),
    Case("both buffers", "1T09:00 11:15 11:30", busy=("1T10:00-1T11:00",), grid=15, duration=30, before=15, behind=30),
    Case("buffers that fit exactly", "1T10:00", busy=("1T08:00-1T09:45 1T11:30-1T13:00",), before=15, behind=30),
    Case("buffers that do not fit", "", busy=("1T08:00-1T09:50 1T11:30-1T13:00",), before=15, behind=30),
    Case("buffers outside of the hours", "1T09:00 10:00 11:00", before=30, behind=30),
    Case("a busy time before the hours", "1T09:30 10:00 10:30 11:00", busy=("1T08:30-1T08:50",), grid=30, before=20),
    Case("a busy time after the hours", "1T09:00 09:30 10:00 10:30", busy=("1T12:00-1T13:00",), grid=30, behind=30),
    Case("no calendar", "", busy=()),
    Case("any calendar", "1T09:00 11:00", busy=("1T09:00-1T11:00", "1T10:00-1T12:00", "1T10:00-1T11:00")),
    Case("all calendars", "1T11:00", busy=("1T09:00-1T10:00", "1T10:00-1T11:00", ""), needs_all=True),
    Case("all calendars, never at the same time", "", busy=("1T09:00-1T10:30", "1T10:30-1T12:00"), needs_all=True),
    Case("all calendars between their busy times", "1T09:45", busy=("1T09:00-1T09:40", "1T10:45-1T12:00"), grid=15,
         needs_all=True),
    Case("any calendar with buffers", "1T09:00 10:45 11:00",
         busy=("1T09:30-1T12:15", "1T08:00-1T08:30 1T10:15-1T10:30"), grid=15, before=15, behind=15),
]  # fmt: skip
LIMITS = [
    Case("a full day", "", daily_limit=2, booked={1: 2}),
    Case("an overbooked day", "2T09:00 10:00 11:00", until="2026-12-03", daily_limit=2, booked={1: 3}),
    Case("a day with one left", "1T09:00 10:00 11:00", daily_limit=2, booked={1: 1}),
    Case("appointments without a limit", "1T09:00 10:00 11:00", booked={1: 100}),
    Case("a full day's night", "2T00:00 01:00", hours=("tue 22:00-02:00",), until="2026-12-03", daily_limit=1,
         booked={1: 1}),
    Case("a full day after the night", "1T22:00 23:00", hours=("tue 22:00-02:00",), until="2026-12-03", daily_limit=1,
         booked={2: 1}),
    Case("full days on end", "3T09:00 10:00 11:00", until="2026-12-04", daily_limit=1, booked={1: 1, 2: 1}),
    Case("a start at the end of the lead time", "1T10:00 11:00", now="2026-12-01T09:00", lead=60),
    Case("no start within the lead time", "1T11:00", now="2026-12-01T09:00", lead=65),
    Case("a lead time of a day", "2T10:00 11:00", now="2026-12-01T10:00", lead=1440, until="2026-12-03"),
    Case("no start in the past", "1T11:00", now="2026-12-01T10:05"),
    Case("a start right now", "1T10:00 11:00", now="2026-12-01T10:00"),
    Case("no start at the horizon", "1T09:00", now="2026-12-01T00:00", horizon=600),
    Case("a start just before the horizon", "1T09:00 10:00", now="2026-12-01T00:00", horizon=605),
    Case("a lead time beyond the horizon", "", now="2026-12-01T00:00", lead=600, horizon=600),
    Case("a lead time over a change of the clock", "29T10:00 11:00", now="2026-03-28T09:00", lead=1440,
         after="2026-03-28T09:00", until="2026-03-30T00:00"),
]  # fmt: skip
SPRING, AUTUMN = "2026-03-29T00:00", "2026-10-25T00:00"
CHANGES_OF_THE_CLOCK = [
    Case("spring", "29T00:00 01:00 03:00 04:00", hours=("sun 00:00-05:00",), after=SPRING),
    Case("spring, a slot over the jump", "29T01:30 04:00", hours=("sun 01:30-05:30",), duration=90, grid=90,
         after=SPRING),
    Case("spring, a grid over the jump", "29T00:00 01:30 04:00 05:30", hours=("sun 00:00-06:00",), duration=30,
         grid=90, after=SPRING),
    Case("spring, hours from a skipped time", "29T03:00 03:30", hours=("sun 02:30-04:00",), duration=30, grid=30,
         after=SPRING),
    Case("spring, hours that begin with the jump", "29T03:00", hours=("sun 02:00-04:00",), after=SPRING),
    Case("spring, hours to a skipped time", "29T01:00 01:30", hours=("sun 01:00-02:30",), duration=30, grid=30,
         after=SPRING),
    Case("spring, skipped hours", "", hours=("sun 02:15-02:45",), duration=5, grid=5, after=SPRING),
    Case("spring, hours from a skipped time to soon after", "29T03:00", hours=("sun 02:30-03:10",), duration=10,
         grid=10, limit=1, after=SPRING),
    Case("spring, hours that touch in the skipped time", "29T00:30 01:30 03:30",
         hours=("sun 00:30-02:30", "sun 02:30-05:00"), after=SPRING),
    Case("spring, over midnight", "28T23:00 29T01:00 04:00", hours=("sat 23:00-06:00",), grid=120,
         after="2026-03-28T12:00", until="2026-03-29T06:00"),
    Case("autumn", "25T00:00 01:00 02:00 02:00* 03:00 04:00", hours=("sun 00:00-05:00",), after=AUTUMN),
    Case("autumn, the repeated hour", "25T02:00 02:00*", hours=("sun 02:00-03:00",), after=AUTUMN),
    Case("autumn, hours from a repeated time", "25T02:30 02:00* 02:30*", hours=("sun 02:30-03:00",), duration=30,
         grid=30, after=AUTUMN),
    Case("autumn, hours to a repeated time", "25T01:00 01:30 02:00", hours=("sun 01:00-02:30",), duration=30, grid=30,
         after=AUTUMN),
    Case("autumn, hours within the repeated hour", "25T02:15", hours=("sun 02:15-02:45",), duration=30, grid=30,
         after=AUTUMN),
    Case("autumn, hours that touch in the repeated hour", "25T01:00 02:00 02:00* 03:00",
         hours=("sun 01:00-02:30", "sun 02:30-04:00"), after=AUTUMN),
    Case("autumn, over midnight", "24T22:00 25T00:00 02:00 03:00", hours=("sat 22:00-04:00",), grid=120,
         after="2026-10-24T12:00", until="2026-10-25T12:00"),
    Case("autumn, busy in the second hour", "25T01:00 02:00 03:00", hours=("sun 01:00-04:00",),
         busy=("25T02:00*-25T03:00",), after=AUTUMN),
    Case("autumn, busy in the first hour", "25T01:00 02:00* 03:00", hours=("sun 01:00-04:00",),
         busy=("25T02:00-25T02:00*",), after=AUTUMN),
    Case("autumn, always open", "25T00:00 05:00 11:00 17:00 23:00", hours=ALWAYS, grid=360, after="2026-10-25T00:00",
         until="2026-10-26T00:00"),
    Case("spring in New York", "8T00:00 01:00 03:00 04:00", hours=("sun 00:00-05:00",), zone=NEW_YORK,
         after="2026-03-08", until="2026-03-09"),
    Case("spring in New York, hours to a skipped time", "8T01:00", hours=("sun 01:00-02:30",), zone=NEW_YORK,
         after="2026-03-08", until="2026-03-09"),
    Case("autumn in New York", "1T00:00 01:00 01:00* 02:00 03:00", hours=("sun 00:00-04:00",), zone=NEW_YORK,
         after="2026-11-01", until="2026-11-02"),
    Case("autumn in New York, a full day", "2T00:00 01:00", hours=("daily 00:00-02:00",), zone=NEW_YORK,
         after="2026-11-01", until="2026-11-03", daily_limit=3, booked={1: 3}),
    Case("Nepal", "1T09:00 09:45 10:30", zone=KATHMANDU, grid=45),
    Case("Nepal, over midnight", "1T23:15 2T00:15", hours=("tue 23:15-01:15",), zone=KATHMANDU, until="2026-12-03"),
    Case("half an hour forward", "4T01:00 01:30 02:30 03:00", hours=("sun 01:00-03:30",), zone=LORD_HOWE, duration=30,
         grid=30, after="2026-10-04", until="2026-10-05"),
    Case("half an hour forward, hours from a skipped time", "4T02:30", hours=("sun 02:15-03:00",), zone=LORD_HOWE,
         duration=30, grid=30, after="2026-10-04", until="2026-10-05"),
    Case("half an hour back", "5T01:00 01:30 01:30* 02:00 02:30", hours=("sun 01:00-03:00",), zone=LORD_HOWE,
         duration=30, grid=30, after="2026-04-05", until="2026-04-06"),
    Case("half an hour back, by the hour", "5T01:00 01:30* 02:30", hours=("sun 01:00-03:30",), zone=LORD_HOWE,
         after="2026-04-05", until="2026-04-06"),
    Case("a day without midnight", "7T22:00 23:00 8T01:00 02:00", hours=("sat 22:00-03:00",), zone=HAVANA,
         after="2026-03-07T12:00", until="2026-03-08T12:00"),
    Case("a full day before one without midnight", "8T01:00 02:00", hours=("sat 22:00-03:00",), zone=HAVANA,
         after="2026-03-07T12:00", until="2026-03-08T12:00", daily_limit=1, booked={7: 1}),
    Case("a day with two midnights", "1T00:00 00:00* 01:00", hours=("sun 00:00-02:00",), zone=HAVANA,
         after="2026-11-01", until="2026-11-02"),
    Case("a day that does not exist", "29T09:00 10:00 31T09:00 10:00", hours=("daily 09:00-11:00",), zone=APIA,
         after="2011-12-29", until="2012-01-01"),
    Case("a night before a day that does not exist", "29T23:00 31T00:00", hours=("thu 23:00-00:00", "sat 00:00-01:00"),
         zone=APIA, after="2011-12-29", until="2012-01-01"),
]  # fmt: skip
CASES = [*HOURS_AND_GRIDS, *ALWAYS_OPEN, *HOLIDAYS, *BUSY, *LIMITS, *CHANGES_OF_THE_CLOCK]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_free_slots_are_those_of_the_table_and_of_brute_force(case: Case) -> None:
    found = case.find()
    assert write_starts(found, case.zone) == case.expected
    oracle = SlotOracle(case.build_rules(), case.build_occupancy(), case.parse(case.after), case.find_until())
    assert found == oracle.list_slots(case.get_now(), case.limit)


@pytest.mark.parametrize(
    ("needs_all", "expected"),
    [
        (False, {"09:00": CALENDARS[1:], "10:00": CALENDARS[::2], "11:00": CALENDARS}),
        (True, {"11:00": CALENDARS}),
    ],
)
def test_slots_name_the_calendars_that_are_free(needs_all: bool, expected: Mapping[str, tuple[UUID, ...]]) -> None:
    case = Case("", "", busy=("1T08:00-1T10:00", "1T10:00-1T11:00", ""), needs_all=needs_all)
    found = {slot.starts_at.astimezone(ZoneInfo(BERLIN)).strftime("%H:%M"): slot.calendar_ids for slot in case.find()}
    assert found == expected


@pytest.mark.parametrize("case", [*BUSY, *LIMITS], ids=[case.name for case in (*BUSY, *LIMITS)])
def test_a_single_start_is_free_by_the_same_rules(case: Case) -> None:
    offered = {slot.starts_at: slot.calendar_ids for slot in replace(case, limit=1000, until="2026-12-05").find()}
    rules, occupancy = case.build_rules(), case.build_occupancy()
    begin = case.parse(case.after)
    for step in range(2 * 24 * 2):
        start = begin + step * timedelta(minutes=30)
        free = find_free_calendars(rules, occupancy, starts_at=start, now=case.get_now())
        assert free == offered.get(start, ()), start


def test_lead_and_horizon_are_exact() -> None:
    start = datetime(2026, 12, 1, 8, tzinfo=UTC)
    for lead, horizon, is_free in (
        (timedelta(hours=1), timedelta(days=1), True),
        (timedelta(hours=1, microseconds=1), timedelta(days=1), False),
        (timedelta(), timedelta(hours=1), False),
        (timedelta(), timedelta(hours=1, microseconds=1), True),
    ):
        rules = replace(Case("", "").build_rules(), lead=lead, horizon=horizon)
        occupancy = Case("", "").build_occupancy()
        found = find_free_calendars(rules, occupancy, starts_at=start, now=start - timedelta(hours=1))
        assert bool(found) == is_free


def test_moments_of_any_zone_are_compared_as_moments_and_returned_in_utc() -> None:
    case = Case("", "", zone=KATHMANDU, after="2026-12-01T00:00", until="2026-12-01T11:00")
    elsewhere = ZoneInfo(NEW_YORK)
    # 22:00 in New York is 03:00 in UTC and 08:45 in Nepal: busy until 09:05.
    start = datetime(2026, 11, 30, 22, tzinfo=elsewhere)
    busy = BusyTime(start, start + timedelta(minutes=20))
    found = find_free_slots(
        case.build_rules(),
        Occupancy({CALENDARS[0]: [busy]}, {}),
        after=case.parse(case.after).astimezone(elsewhere),
        until=case.parse(case.until).astimezone(elsewhere),
        now=LONG_AGO.astimezone(elsewhere),
        limit=10,
    )
    assert found == [
        FreeSlot(datetime(2026, 12, 1, 4, 15, tzinfo=UTC), datetime(2026, 12, 1, 5, 15, tzinfo=UTC), CALENDARS[:1])
    ]
    assert found[0].starts_at.tzinfo is UTC
    assert found[0].ends_at.tzinfo is UTC


@pytest.mark.parametrize(
    "changes",
    [
        {"duration": timedelta()},
        {"grid": timedelta()},
        {"grid": -timedelta(minutes=5)},
        {"buffer_before": -timedelta(minutes=5)},
        {"buffer_after": -timedelta(minutes=5)},
        {"daily_limit": 0},
    ],
)
def test_rules_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        replace(Case("", "").build_rules(), **changes)


@pytest.mark.parametrize("needs_all", [False, True])
def test_a_search_steps_over_what_is_busy(needs_all: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A year of five-minute starts is 105 000 of them; the search looks once at each busy time and each day."""
    looks = 0
    find_free_start = slots._BusyCalendar.find_free_start

    def count_looks(calendar: slots._BusyCalendar, moment: datetime) -> datetime:
        nonlocal looks
        looks += 1
        return find_free_start(calendar, moment)

    monkeypatch.setattr(slots._BusyCalendar, "find_free_start", count_looks)
    begin, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    # Gaps of half an hour that begin one minute after each start of the grid: none has a slot.
    gaps = [
        BusyTime(begin + timedelta(minutes=264 * number + 31), begin + timedelta(minutes=264 * (number + 1) + 1))
        for number in range(-1, 2000)
    ]
    rules = replace(Case("", "", hours=ALWAYS, duration=30, grid=8, needs_all=needs_all).build_rules())
    for busy in (gaps, [BusyTime(begin - timedelta(days=1), until + timedelta(days=1))]):
        looks = 0
        occupancy = Occupancy(dict.fromkeys(CALENDARS, busy), {})
        assert find_free_slots(rules, occupancy, after=begin, until=until, now=begin, limit=50) == []
        assert looks <= len(CALENDARS) * (len(busy) + 60)


MINUTES = st.integers(0, 12 * 40).map(lambda steps: 5 * steps)
CLOCKS = st.one_of(
    st.sampled_from(["00:00", "02:00", "02:15", "02:30", "03:00", "23:00"]),
    st.builds(lambda hour, minute: f"{hour:02}:{minute:02}", st.integers(0, 23), st.sampled_from([0, 5, 30, 50])),
)
PAIRS = st.tuples(CLOCKS, CLOCKS)
PLACES = st.sampled_from(
    [
        (BERLIN, "2026-03-28"),
        (BERLIN, "2026-10-24"),
        (NEW_YORK, "2026-10-31"),
        (LORD_HOWE, "2026-10-03"),
        (LORD_HOWE, "2026-04-04"),
        (HAVANA, "2026-10-31"),
        (KATHMANDU, "2028-02-28"),
    ]
)


@settings(max_examples=50, deadline=None)
@given(st.data(), PLACES)
def test_random_rules_have_the_slots_of_brute_force(data: st.DataObject, place: tuple[str, str]) -> None:
    zone, day = ZoneInfo(place[0]), date.fromisoformat(place[1])
    midnight = datetime.combine(day, datetime.min.time(), zone).astimezone(UTC)
    days = st.integers(-1, 2).map(lambda number: day + timedelta(days=number))
    every_day: Sequence[Day] = DAYS
    hours = st.builds(
        lambda pair, on: WeekHours(on, *pair), PAIRS, st.sampled_from([every_day, ("sat",), ("sun", "mon")])
    )

    def draw_minutes(*choices: int) -> timedelta:
        return timedelta(minutes=data.draw(st.sampled_from(choices)))

    rules = BookingRules(
        duration=draw_minutes(5, 30, 45, 60, 180),
        grid=draw_minutes(5, 15, 25, 60, 90, 420),
        buffer_before=draw_minutes(0, 5, 30),
        buffer_after=draw_minutes(0, 5, 60),
        zone=zone,
        hours=data.draw(st.lists(hours, min_size=1, max_size=3)),
        closed_days=data.draw(st.frozensets(days, max_size=1)),
        special_hours=data.draw(st.dictionaries(days, st.lists(PAIRS, max_size=2), max_size=1)),
        lead=draw_minutes(0, 60),
        horizon=draw_minutes(60 * 24, 60 * 24 * 100),
        daily_limit=data.draw(st.sampled_from([None, 1])),
        needs_all=data.draw(st.booleans()),
    )
    periods = st.builds(
        lambda start, length: BusyTime(
            midnight + timedelta(minutes=start), midnight + timedelta(minutes=start + length)
        ),
        MINUTES,
        st.sampled_from([5, 30, 120, 600]),
    )
    occupancy = Occupancy(
        busy={key: data.draw(st.lists(periods, max_size=4)) for key in CALENDARS[: data.draw(st.integers(1, 3))]},
        appointments_by_day=data.draw(st.dictionaries(days, st.integers(0, 2), max_size=2)),
    )
    after = midnight + timedelta(minutes=data.draw(MINUTES))
    until = midnight + timedelta(days=2)
    found = find_free_slots(rules, occupancy, after=after, until=until, now=midnight, limit=1000)
    assert found == SlotOracle(rules, occupancy, after, until).list_slots(midnight, 1000)
