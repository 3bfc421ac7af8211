"""Busy times of iCalendar texts: a table of events, and what is bounded."""

import time
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from switchboard_calendar.busy_times import Window, list_busy_times
from switchboard_calendar.event_text import UnreadableEvent, read_appointment
from switchboard_calendar.work_limit import TooMuchWork, WorkLimit

KEY = UUID("5b0f5b0c-6f1f-4d6e-9c8a-0a4d2f5a7a01")
ZONE = """BEGIN:VTIMEZONE
TZID:{name}
BEGIN:STANDARD
DTSTART:19700101T000000
TZOFFSETFROM:{offset}
TZOFFSETTO:{offset}
END:STANDARD
END:VTIMEZONE
"""


def build(*events: str, zones: str = "") -> str:
    texts = [f"BEGIN:VEVENT\nUID:{KEY}\nDTSTAMP:20260101T000000Z\n{event.strip()}\nEND:VEVENT\n" for event in events]
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Tests//EN\n{zones}{''.join(texts)}END:VCALENDAR\n".replace(
        "\n", "\r\n"
    )


def read_moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


def list_times(*texts: str, begin: str, end: str, zone: str = "Europe/Berlin", address: str = "") -> list[str]:
    window = Window(read_moment(begin), read_moment(end), ZoneInfo(zone), frozenset([address]))
    found = sorted(list_busy_times(texts, window), key=lambda busy: busy.starts_at)
    assert {busy.event_key for busy in found} <= {KEY}
    return [f"{busy.starts_at:%Y-%m-%d %H:%M} {busy.ends_at:%Y-%m-%d %H:%M}" for busy in found]


YEAR = {"begin": "2026-01-01 00:00", "end": "2027-01-01 00:00"}
CASES = {
    "in UTC": ("DTSTART:20260301T100000Z\nDTEND:20260301T110000Z", ["2026-03-01 10:00 2026-03-01 11:00"]),
    "over midnight": (
        "DTSTART;TZID=Europe/Berlin:20260301T230000\nDTEND;TZID=Europe/Berlin:20260302T013000",
        ["2026-03-01 22:00 2026-03-02 00:30"],
    ),
    "a day": ("DTSTART;VALUE=DATE:20260301\nDTEND;VALUE=DATE:20260302", ["2026-02-28 23:00 2026-03-01 23:00"]),
    "three days with a change of the clock": (
        "DTSTART;VALUE=DATE:20260328\nDTEND;VALUE=DATE:20260331",
        ["2026-03-27 23:00 2026-03-30 22:00"],
    ),
    "a day that ends when it starts": (
        "DTSTART;VALUE=DATE:20260301\nDTEND;VALUE=DATE:20260301",
        ["2026-02-28 23:00 2026-03-01 23:00"],
    ),
    "a day without an end": ("DTSTART;VALUE=DATE:20260301", ["2026-02-28 23:00 2026-03-01 23:00"]),
    "a moment without an end": ("DTSTART:20260301T100000Z", []),
    "floating": ("DTSTART:20260301T100000\nDTEND:20260301T110000", ["2026-03-01 09:00 2026-03-01 10:00"]),
    "days of duration": ("DTSTART;VALUE=DATE:20260301\nDURATION:P2D", ["2026-02-28 23:00 2026-03-02 23:00"]),
    "exact hours of duration over a change of the clock": (
        "DTSTART;TZID=Europe/Berlin:20261025T010000\nDURATION:PT3H",
        ["2026-10-24 23:00 2026-10-25 02:00"],
    ),
    "nominal days of duration over a change of the clock": (
        "DTSTART;TZID=Europe/Berlin:20261024T120000\nDURATION:P1DT1H",
        ["2026-10-24 10:00 2026-10-25 12:00"],
    ),
    "transparent": ("DTSTART:20260301T100000Z\nDTEND:20260301T110000Z\nTRANSP:TRANSPARENT", []),
    "canceled": ("DTSTART:20260301T100000Z\nDTEND:20260301T110000Z\nSTATUS:CANCELLED", []),
    "tentative": (
        "DTSTART:20260301T100000Z\nDTEND:20260301T110000Z\nSTATUS:TENTATIVE",
        ["2026-03-01 10:00 2026-03-01 11:00"],
    ),
    "declined": (
        "DTSTART:20260301T100000Z\nDTEND:20260301T110000Z\nATTENDEE;PARTSTAT=ACCEPTED:mailto:bob@example.com\n"
        "ATTENDEE;CN=Ada;PARTSTAT=DECLINED:MAILTO:Ada@example.com",
        [],
    ),
    "declined by another": (
        "DTSTART:20260301T100000Z\nDTEND:20260301T110000Z\nATTENDEE;PARTSTAT=DECLINED:mailto:bob@example.com\n"
        "ATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@example.com",
        ["2026-03-01 10:00 2026-03-01 11:00"],
    ),
    "each day over the spring's change of the clock": (
        "DTSTART;TZID=Europe/Berlin:20260328T023000\nDTEND;TZID=Europe/Berlin:20260328T033000\n"
        "RRULE:FREQ=DAILY;COUNT=3",
        [
            "2026-03-28 01:30 2026-03-28 02:30",
            "2026-03-29 01:30 2026-03-29 02:30",
            "2026-03-30 00:30 2026-03-30 01:30",
        ],
    ),
    "each day over the autumn's change of the clock": (
        "DTSTART;TZID=Europe/Berlin:20261024T100000\nDTEND;TZID=Europe/Berlin:20261024T110000\n"
        "RRULE:FREQ=DAILY;COUNT=2",
        ["2026-10-24 08:00 2026-10-24 09:00", "2026-10-25 09:00 2026-10-25 10:00"],
    ),
    "in Kathmandu": (
        "DTSTART;TZID=Asia/Kathmandu:20260301T100000\nDTEND;TZID=Asia/Kathmandu:20260301T110000",
        ["2026-03-01 04:15 2026-03-01 05:15"],
    ),
    "half an hour of summer time": (
        "DTSTART;TZID=Australia/Lord_Howe:20260404T100000\nDTEND;TZID=Australia/Lord_Howe:20260404T110000\n"
        "RRULE:FREQ=DAILY;COUNT=2",
        ["2026-04-03 23:00 2026-04-04 00:00", "2026-04-04 23:30 2026-04-05 00:30"],
    ),
    "a zone of Windows": (
        "DTSTART;TZID=W. Europe Standard Time:20260301T100000\nDTEND;TZID=W. Europe Standard Time:20260301T110000",
        ["2026-03-01 09:00 2026-03-01 10:00"],
    ),
    "a zone of a vendor": (
        "DTSTART;TZID=/freeassociation.sourceforge.net/Europe/Berlin:20260301T100000\nDURATION:PT1H",
        ["2026-03-01 09:00 2026-03-01 10:00"],
    ),
    "an exception": (
        "DTSTART:20260301T100000Z\nDTEND:20260301T110000Z\nRRULE:FREQ=WEEKLY;COUNT=3\nEXDATE:20260308T100000Z",
        ["2026-03-01 10:00 2026-03-01 11:00", "2026-03-15 10:00 2026-03-15 11:00"],
    ),
    "until a moment": (
        "DTSTART:20260301T100000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=20260302T100000Z",
        ["2026-03-01 10:00 2026-03-01 11:00", "2026-03-02 10:00 2026-03-02 11:00"],
    ),
    "further dates": (
        "DTSTART:20260301T100000Z\nDTEND:20260301T110000Z\nRDATE:20260305T120000Z,20260306T120000Z",
        [
            "2026-03-01 10:00 2026-03-01 11:00",
            "2026-03-05 12:00 2026-03-05 13:00",
            "2026-03-06 12:00 2026-03-06 13:00",
        ],
    ),
    "a further period": (
        "DTSTART:20260301T100000Z\nDTEND:20260301T110000Z\nRDATE;VALUE=PERIOD:20260305T120000Z/PT3H",
        ["2026-03-01 10:00 2026-03-01 11:00", "2026-03-05 12:00 2026-03-05 15:00"],
    ),
    "29 February each year": ("DTSTART;VALUE=DATE:20240229\nRRULE:FREQ=YEARLY", []),
    "days that repeat": (
        "DTSTART;VALUE=DATE:20260301\nRRULE:FREQ=MONTHLY;COUNT=2",
        ["2026-02-28 23:00 2026-03-01 23:00", "2026-03-31 22:00 2026-04-01 22:00"],
    ),
    "floating that repeats": (
        "DTSTART:20260328T100000\nDTEND:20260328T110000\nRRULE:FREQ=DAILY;COUNT=2",
        ["2026-03-28 09:00 2026-03-28 10:00", "2026-03-29 08:00 2026-03-29 09:00"],
    ),
    "a canceled series": ("DTSTART:20260301T100000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY\nSTATUS:CANCELLED", []),
}


@pytest.mark.parametrize("name", CASES)
def test_an_event_is_busy(name: str) -> None:
    event, expected = CASES[name]
    assert list_times(build(event), **YEAR, address="ada@example.com") == expected


def test_29_february_is_busy_in_a_leap_year() -> None:
    found = list_times(
        build("DTSTART;VALUE=DATE:20240229\nRRULE:FREQ=YEARLY"), begin="2028-01-01 00:00", end="2029-01-01 00:00"
    )
    assert found == ["2028-02-28 23:00 2028-02-29 23:00"]


def test_days_are_those_of_the_zone() -> None:
    event = build("DTSTART;VALUE=DATE:20260301")
    assert list_times(event, **YEAR, zone="America/St_Johns") == ["2026-03-01 03:30 2026-03-02 03:30"]
    assert list_times(event, **YEAR, zone="Pacific/Kiritimati") == ["2026-02-28 10:00 2026-03-01 10:00"]


def test_an_occurrence_can_differ() -> None:
    """Moved, canceled, free, and declined for one day."""
    series = "DTSTART:20260301T100000Z\nDTEND:20260301T110000Z\nRRULE:FREQ=DAILY;COUNT=5"
    changes = [
        "RECURRENCE-ID:20260301T100000Z\nDTSTART:20260401T120000Z\nDTEND:20260401T140000Z",
        "RECURRENCE-ID:20260302T100000Z\nDTSTART:20260302T100000Z\nDTEND:20260302T110000Z\nSTATUS:CANCELLED",
        "RECURRENCE-ID:20260303T100000Z\nDTSTART:20260303T100000Z\nDTEND:20260303T110000Z\nTRANSP:TRANSPARENT",
        "RECURRENCE-ID:20260304T100000Z\nDTSTART:20260304T100000Z\nDTEND:20260304T110000Z\n"
        "ATTENDEE;PARTSTAT=DECLINED:mailto:ada@example.com",
    ]
    found = list_times(build(series, *changes), **YEAR, address="ada@example.com")
    assert found == ["2026-03-05 10:00 2026-03-05 11:00", "2026-04-01 12:00 2026-04-01 14:00"]


def test_a_window_has_what_overlaps_it() -> None:
    series = build("DTSTART:20260301T100000Z\nDTEND:20260301T120000Z\nRRULE:FREQ=DAILY")
    assert list_times(series, begin="2026-03-05 11:00", end="2026-03-06 10:00") == ["2026-03-05 10:00 2026-03-05 12:00"]
    long = build("DTSTART;VALUE=DATE:20260101\nDTEND;VALUE=DATE:20260201\nRRULE:FREQ=YEARLY")
    assert list_times(long, begin="2027-01-20 00:00", end="2027-01-21 00:00") == ["2026-12-31 23:00 2027-01-31 23:00"]


def test_zones_of_two_users_with_one_id_stay_apart() -> None:
    """icalendar keeps a zone by its id for the whole process."""
    event = 'DTSTART;TZID="Customized Time Zone":20260301T100000\nDURATION:PT1H'
    for offset, expected in (
        ("+0500", "2026-03-01 05:00"),
        ("-0330", "2026-03-01 13:30"),
        ("+0500", "2026-03-01 05:00"),
    ):
        text = build(event, zones=ZONE.format(name="Customized Time Zone", offset=offset))
        assert [times[:16] for times in list_times(text, **YEAR)] == [expected]
    # The definition of an IANA zone in a calendar does not count.
    text = build(
        "DTSTART;TZID=Europe/Berlin:20260301T100000\nDURATION:PT1H",
        zones=ZONE.format(name="Europe/Berlin", offset="+1100"),
    )
    assert [times[:16] for times in list_times(text, **YEAR)] == ["2026-03-01 09:00"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>no calendar</html>",
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n",
        build("SUMMARY:no time"),
        build("DTSTART:tomorrow"),
        build("DTSTART:20260301T100000Z\nDTEND:20260301T090000Z"),
        build("DTSTART:20260301T100000Z\nRRULE:FREQ=FORTNIGHTLY"),
        build("DTSTART:20260301T100000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;INTERVAL=99999999999999999999"),
        build("DTSTART:20260301T100000Z\nDTSTART:20260302T100000Z\nDURATION:PT1H"),
        build("DTSTART:20260301T100000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY\nEXDATE:never"),
        build("DTSTART;TZID=Atlantis:20260301T100000\nDURATION:PT1H"),
        build("DTSTART:00010101T000000\nDURATION:PT1H"),
    ],
)
def test_what_cannot_be_understood_is_never_free(text: str) -> None:
    with pytest.raises(UnreadableEvent):
        list_times(text, **YEAR)


@pytest.mark.parametrize(
    "rule",
    [
        "DTSTART:20160101T000000Z\nDURATION:PT1S\nRRULE:FREQ=SECONDLY",
        "DTSTART:20260101T000000Z\nDURATION:PT1S\nRRULE:FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
    ],
)
def test_a_rule_does_not_take_the_processor(rule: str) -> None:
    window = Window(read_moment(YEAR["begin"]), read_moment(YEAR["end"]), ZoneInfo("UTC"))
    begin = time.thread_time()
    with pytest.raises(UnreadableEvent, match="too many"):
        list_busy_times([build(rule)], window, seconds=0.2)
    assert time.thread_time() - begin < 1


def test_what_does_not_decide_about_time_does_not_count() -> None:
    """Alarms, files, and properties that are not valid."""
    event = "DTSTART:20260301T100000Z\nDURATION:PT1H\nATTACH;ENCODING=BASE64;VALUE=BINARY:" + "A" * 2**20
    alarm = "BEGIN:VALARM\nTRIGGER:never\nDURATION:P9D\nBEGIN:X-OTHER\nDTSTART:1\nEND:X-OTHER\nEND:VALARM"
    todo = "BEGIN:VTODO\nUID:1\nDTSTART:tomorrow\nEND:VTODO\n"
    found = list_times(build(f"{event}\n{alarm}\nGEO:here", zones=todo), **YEAR)
    assert found == ["2026-03-01 10:00 2026-03-01 11:00"]


@pytest.mark.parametrize(
    "lines",
    [
        "ATTENDEE:mailto:ada@example.com\n" * 60_000,
        "RRULE:FREQ=DAILY;BYSECOND=" + "1," * 50_000 + "1",
        "BEGIN:VALARM",
    ],
)
def test_an_object_is_bounded(lines: str) -> None:
    begin = time.thread_time()
    with pytest.raises(UnreadableEvent, match=r"too long|not iCalendar"):
        list_times(build(f"DTSTART:20260301T100000Z\nDURATION:PT1H\n{lines}"), **YEAR)
    assert time.thread_time() - begin < 1


def test_rules_of_a_zone_do_not_take_the_processor() -> None:
    """A rule that is stopped keeps its lock: the same zone, asked again, must not wait for it."""
    summer = "BEGIN:DAYLIGHT\nDTSTART:19700102T000000\nTZOFFSETFROM:+0500\nTZOFFSETTO:+0600\nRRULE:FREQ=SECONDLY\n"
    zone = ZONE.format(name="Mars", offset="+0500").replace("END:VT", f"{summer}END:DAYLIGHT\nEND:VT")
    text = build("DTSTART;TZID=Mars:20260301T100000\nDURATION:PT1H", zones=zone)
    window = Window(read_moment(YEAR["begin"]), read_moment(YEAR["end"]), ZoneInfo("UTC"))
    for _ in range(2):
        with pytest.raises(UnreadableEvent, match="too many"):
            list_busy_times([text], window, seconds=0.05)
        with pytest.raises(UnreadableEvent, match="too many"):
            read_appointment(text, KEY, None, seconds=0.05)
    fair = build("DTSTART;TZID=Mars:20260301T100000\nDURATION:PT1H", zones=ZONE.format(name="Mars", offset="+0500"))
    assert list_times(fair, **YEAR) == ["2026-03-01 05:00 2026-03-01 06:00"]


def test_work_is_stopped_even_where_exceptions_are_caught() -> None:
    def pause() -> None: ...

    def work() -> None:
        while True:
            with suppress(Exception):  # as libraries do
                pause()

    with pytest.raises(TooMuchWork):
        WorkLimit(0.05).run(work)
    assert WorkLimit(60).run(lambda: 7) == 7
