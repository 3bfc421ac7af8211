"""Events as iCalendar text (RFC 5545): writing, reading, and moving them."""

import hashlib
import re
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from switchboard.plugin_sdk import EventDraft

from switchboard_calendar.work_limit import WORK_SECONDS, TooMuchWork, WorkLimit

if TYPE_CHECKING:
    # Imported where it is used: that takes a quarter of a second, and each process loads every plugin when it starts.
    import icalendar

ResultT = TypeVar("ResultT")
PRODUCT: Final = "-//Switchboard//Calendar//EN"
ZONE_PROPERTY: Final = "X-SWITCHBOARD-TIME-ZONE"
"""The zone in which people read the event: that of its days, if a person makes an event of it that lasts all day."""
TIMES: Final = frozenset(("DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID"))
RECURRENCE: Final = ("RRULE", "RDATE", "EXDATE", "RECURRENCE-ID")
COMPONENTS: Final = frozenset(("VCALENDAR", "VEVENT", "VTIMEZONE", "STANDARD", "DAYLIGHT"))
PROPERTIES: Final = TIMES | {
    "VERSION", "PRODID", "CALSCALE", "TZID", "TZOFFSETFROM", "TZOFFSETTO", "UID", "SEQUENCE", "STATUS", "TRANSP",
    "ATTENDEE", ZONE_PROPERTY,
}  # fmt: skip
"""Properties that decide about time. Parsing the others, such as attached files, would only take time."""
MAX_LINES, MAX_LINE_LENGTH = 50_000, 2**16
"""Bounds of one object: icalendar takes 30 microseconds for a line, and as much for ten values of a long one."""
MAX_ZONES: Final = 500
"""Most zones of calendars' own that icalendar keeps before all of them are given up."""
_MOVED: Final = frozenset(("DTSTART", "DTEND", "DURATION", "SEQUENCE", "DTSTAMP", "LAST-MODIFIED"))
_LINE: Final = re.compile(r"([A-Za-z0-9-]+)((?:;[^:;=]+=(?:\"[^\"]*\"|[^:;\"]*))*):(.*)", re.DOTALL)
_ZONE_PARAMETER: Final = re.compile(r";TZID=(\"[^\"]*\"|[^:;\"]*)", re.IGNORECASE)
_FOLD: Final = re.compile(r"\n[ \t]")
_END_OF_LINE: Final = re.compile(r"\n(?![ \t])")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_known_zones: set[str] = set()


class UnreadableEvent(Exception):
    """The text is not an event that can be understood as a whole. The message says why."""


@dataclass(frozen=True, slots=True)
class WrittenEvent:
    """An event with a key of the platform's: its times in UTC."""

    starts_at: datetime
    ends_at: datetime
    is_canceled: bool


def load_zones() -> None:
    """Load the names of zones, which takes longer than the event loop may wait."""
    _find_iana_name("UTC")


def build_event(draft: EventDraft, written_at: datetime) -> bytes:
    """Build the text of a new event.

    Its times are in UTC: a time of a zone's clock would be ambiguous in the hour that the clock repeats.
    """
    import icalendar

    event = icalendar.Event()
    event.add("uid", str(draft.key))
    event.add("dtstamp", written_at)
    event.add("created", written_at)
    event.add("last-modified", written_at)
    event.add("sequence", 0)
    event.add("dtstart", draft.starts_at.astimezone(UTC))
    event.add("dtend", draft.ends_at.astimezone(UTC))
    event.add("summary", _clean(draft.title))
    if draft.description:
        event.add("description", _clean(draft.description))
    event.add("status", "CONFIRMED")
    event.add("transp", "OPAQUE")
    event.add(ZONE_PROPERTY, draft.time_zone)
    calendar = icalendar.Calendar()
    calendar.add("prodid", PRODUCT)
    calendar.add("version", "2.0")
    calendar.add_component(event)
    return bytes(calendar.to_ical())


def read_calendar(text: str) -> "icalendar.Calendar":
    """Parse what one calendar object says about time. Raises `UnreadableEvent`.

    icalendar keeps zones by their id for the whole process, so that a zone of one user's calendar would be taken for
    that of another's. Each definition that is not IANA's therefore gets an id of its own. Call it in one thread at a
    time.
    """
    import icalendar

    try:
        lines = _rename_zones(_keep_times(_split_lines(text)))
        calendar = icalendar.Calendar.from_ical("\r\n".join(lines) + "\r\n")
    except UnreadableEvent:
        raise
    except Exception as error:  # noqa: BLE001 - a parser of text from outside may raise anything
        raise UnreadableEvent(f"it is not iCalendar ({type(error).__name__})") from None
    if not isinstance(calendar, icalendar.Calendar) or calendar.name != "VCALENDAR":
        raise UnreadableEvent("it is not a calendar")
    for event in calendar.walk("VEVENT"):
        if "DTSTART" not in event or any(name in TIMES for name, _ in event.errors):
            raise UnreadableEvent("its time is not valid")
    return calendar


def run_reading(work: Callable[[], ResultT], limit: WorkLimit | None) -> ResultT:
    """Run work on parsed events, with a limit if it follows rules of events or of zones. Raises `UnreadableEvent`."""
    try:
        return work() if limit is None else limit.run(work)
    except TooMuchWork:
        # A rule that is stopped keeps its lock, so no zone may be used again.
        _forget_zones()
        raise UnreadableEvent("its events and their repetitions are too many") from None
    except UnreadableEvent:
        raise
    except Exception as error:  # noqa: BLE001 - rules from outside make libraries raise anything
        raise UnreadableEvent(f"an event cannot be understood ({type(error).__name__})") from None


def read_appointment(text: str, key: UUID, zone: str | None, *, seconds: float = WORK_SECONDS) -> WrittenEvent | None:
    """Return the event of an object with a key; None if the object has none. Raises `UnreadableEvent`.

    `zone` is that of days and of floating times.
    """
    calendar = read_calendar(text)
    return run_reading(lambda: _find_appointment(calendar, key, zone), WorkLimit(seconds))


def _find_appointment(calendar: "icalendar.Calendar", key: UUID, zone: str | None) -> WrittenEvent | None:
    for event in calendar.walk("VEVENT"):
        if get_event_key(event) == key and "RECURRENCE-ID" not in event:
            starts_at, ends_at = read_period(event, load_zone(str(event.get(ZONE_PROPERTY, "")), zone))
            return WrittenEvent(starts_at, ends_at, is_canceled(event))
    return None


def move_event_text(text: str, key: UUID, starts_at: datetime, ends_at: datetime, written_at: datetime) -> bytes:
    """Return the text of an object with the event of a key at another time.

    Only the lines of its times and of its revision change, so that everything else that people and other clients have
    added stays byte for byte. Raises `UnreadableEvent` if there is no such event, or if it has become a series.
    """
    lines = _split_lines(text)
    inside = _find_event(lines, key)
    names = {_get_name(lines[place]) for place in inside}
    if names & set(RECURRENCE):
        raise UnreadableEvent("somebody has made a series of it")
    sequence = next((lines[place].rpartition(":")[2] for place in inside if _get_name(lines[place]) == "SEQUENCE"), "0")
    moved = [
        *_build_times(starts_at, ends_at, written_at),
        f"SEQUENCE:{int(sequence) + 1 if sequence.strip().isdecimal() else 1}",
    ]
    dropped = {place for place in inside if _get_name(lines[place]) in _MOVED}
    written: list[str] = []
    for place, line in enumerate(_split_lines(text, unfold=False)):
        if place == inside[0]:
            written.extend(moved)
        if place not in dropped:
            written.append(line)
    return ("\r\n".join(written) + "\r\n").encode()


def has_moved(text: str, key: UUID, starts_at: datetime, ends_at: datetime, written_at: datetime) -> bool:
    """Return whether the text of an object is that of a move at a moment."""
    lines = _split_lines(text)
    try:
        inside = _find_event(lines, key)
    except UnreadableEvent:
        return False
    return set(_build_times(starts_at, ends_at, written_at)) <= {lines[place] for place in inside}


def get_event_key(event: "icalendar.Component") -> UUID | None:
    """Return the key of an event: its UID, if that is a UUID."""
    try:
        return UUID(str(event.get("UID", "")).strip())
    except ValueError:
        return None


def is_canceled(event: "icalendar.Component") -> bool:
    """Return whether an event is canceled."""
    return str(event.get("STATUS", "")).strip().upper() == "CANCELLED"


def read_period(event: "icalendar.Component", zone: tzinfo) -> tuple[datetime, datetime]:
    """Return start and end of an event in UTC. `zone` is that of days and of times without a zone.

    Without an end, a day lasts until the next, and a moment has no length. Of a duration, days are those of the clock,
    and hours are exact (RFC 5545, section 3.3.6). Raises `UnreadableEvent`.
    """
    start, end, duration = (_get_value(event, name) for name in ("DTSTART", "DTEND", "DURATION"))
    if not isinstance(start, date) or not isinstance(end, date | None) or not isinstance(duration, timedelta | None):
        raise UnreadableEvent("its time is not valid")
    is_day = not isinstance(start, datetime)
    if end is not None:
        starts_at, ends_at = convert_to_utc(start, zone), convert_to_utc(end, zone)
        # Some clients write the same day twice for an event of one day.
        if is_day and ends_at == starts_at:
            ends_at = convert_to_utc(start + timedelta(days=1), zone)
        elif isinstance(start, datetime) and isinstance(end, datetime) and _is_skipped(start, zone):
            # An hour that the clock skips begins an hour later, and the event has its length (RFC 5545, section 3.3.5).
            ends_at = starts_at + (end.replace(tzinfo=None) - start.replace(tzinfo=None))
    elif duration is not None:
        days, rest = timedelta(days=duration.days), timedelta(seconds=duration.seconds)
        starts_at, ends_at = convert_to_utc(start, zone), convert_to_utc(start + days, zone) + rest
    else:
        starts_at = convert_to_utc(start, zone)
        ends_at = convert_to_utc(start + timedelta(days=1), zone) if is_day else starts_at
    if ends_at < starts_at:
        raise UnreadableEvent("it ends before it starts")
    return starts_at, ends_at


def convert_to_utc(value: date, zone: tzinfo) -> datetime:
    """Return a day's first moment, or a time, in UTC."""
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    return (moment.replace(tzinfo=zone) if moment.tzinfo is None else moment).astimezone(UTC)


def _is_skipped(moment: datetime, zone: tzinfo) -> bool:
    """Return whether the clock of the time's zone skips it."""
    own = moment.tzinfo or zone
    return convert_to_utc(moment, zone).astimezone(own).replace(tzinfo=None) != moment.replace(tzinfo=None)


def load_zone(*names: str | None) -> tzinfo:
    """Return the first known IANA zone of these; UTC if there is none."""
    found = next((name for name in names if name and name in _list_iana_zones()), "UTC")
    return zoneinfo.ZoneInfo(found)


def find_zone_name(identifier: str, text: str) -> str | None:
    """Return the IANA name of a zone, from its id or from the text of a VTIMEZONE; None if neither has one."""
    lines = [line for line in _split_lines(text) if _get_name(line) in ("TZID", "X-LIC-LOCATION")]
    names = [identifier, *(line.partition(":")[2].strip() for line in lines)]
    return next((known for name in names if (known := _find_iana_name(name)) is not None), None)


def _get_value(event: "icalendar.Component", name: str) -> object:
    found = event.get(name)
    if isinstance(found, list):
        raise UnreadableEvent(f"it has {name} more than once")
    return getattr(found, "dt", found)


def _clean(text: str) -> str:
    """Return a text without characters that iCalendar does not have (RFC 5545, section 3.1)."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _format_moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _build_times(starts_at: datetime, ends_at: datetime, written_at: datetime) -> list[str]:
    return [
        f"DTSTART:{_format_moment(starts_at)}",
        f"DTEND:{_format_moment(ends_at)}",
        f"DTSTAMP:{_format_moment(written_at)}",
        f"LAST-MODIFIED:{_format_moment(written_at)}",
    ]


def _split_lines(text: str, *, unfold: bool = True) -> list[str]:
    """Split a text into content lines. Without `unfold` each has its line breaks inside, as written."""
    plain = text.replace("\r\n", "\n")
    if unfold:
        return [line for line in _FOLD.sub("", plain).split("\n") if line]
    return [line.replace("\n", "\r\n") for line in _END_OF_LINE.split(plain) if line]


def _get_name(line: str) -> str:
    return re.split("[;:]", line, maxsplit=1)[0].strip().upper()


def _find_event(lines: list[str], key: UUID) -> list[int]:
    """Return the places of the lines of an event itself, without those of its alarms."""
    inside: list[int] = []
    depth = 0
    for place, line in enumerate(lines):
        name, value = _get_name(line), line.rpartition(":")[2].strip().upper()
        if name == "BEGIN" and (depth or value == "VEVENT"):
            depth += 1
        elif name == "END" and depth:
            depth -= 1
            if depth:
                continue
            names = {_get_name(lines[each]): lines[each].partition(":")[2].strip() for each in inside}
            if names.get("UID", "").lower() == str(key) and "RECURRENCE-ID" not in names:
                return inside
            inside = []
        elif depth == 1:
            inside.append(place)
    raise UnreadableEvent("it is not in the calendar any more")


@cache
def _list_iana_zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _find_iana_name(name: str) -> str | None:
    """Return the IANA name that a zone's id contains, such as `/vendor.example/Europe/Berlin`; None without one."""
    from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

    parts = WINDOWS_TO_OLSON.get(name.strip(), name.strip()).strip("/").split("/")
    candidates = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((candidate for candidate in candidates if candidate in _list_iana_zones()), None)


def _keep_times(lines: Iterable[str]) -> list[str]:
    """Return the lines of the components and properties that decide about time. Raises `UnreadableEvent`."""
    kept: list[str] = []
    skipped = 0
    for line in lines:
        name = _get_name(line)
        if name == "BEGIN" and (skipped or line.partition(":")[2].strip().upper() not in COMPONENTS):
            skipped += 1
        elif skipped:
            skipped -= name == "END"
        elif name in PROPERTIES or name in ("BEGIN", "END"):
            if len(kept) == MAX_LINES or len(line) > MAX_LINE_LENGTH:
                raise UnreadableEvent("an event is too long")
            kept.append(line)
    if skipped:
        raise UnreadableEvent("an event has no end")
    return kept


def _rename_zones(lines: list[str]) -> Iterator[str]:
    """Yield the lines with an id for each zone by which icalendar finds the right one. Raises `UnreadableEvent`."""
    defined = dict(_find_definitions(lines))
    own = {name: fingerprint for name, fingerprint in defined.items() if name not in _list_iana_zones()}
    if new := set(own.values()) - _known_zones:
        if len(_known_zones) + len(new) > MAX_ZONES:
            _forget_zones()
        _known_zones.update(own.values())
    for line in lines:
        name = _get_name(line)
        if name == "TZID":
            value = line.partition(":")[2].strip()
            yield f"TZID:{own.get(value, value)}"
        elif name in TIMES and (found := _LINE.fullmatch(line)) is not None:
            parameters = _ZONE_PARAMETER.sub(lambda zone: f";TZID={_name_zone(zone[1], own)}", found[2])
            yield f"{found[1]}{parameters}:{found[3]}"
        else:
            yield line


def _forget_zones() -> None:
    """Make icalendar give up all zones of calendars' own."""
    import icalendar

    icalendar.use_zoneinfo()  # type: ignore[no-untyped-call]
    _known_zones.clear()


def _name_zone(given: str, own: Mapping[str, str]) -> str:
    name = given.strip('"')
    known = own.get(name) or _find_iana_name(name)
    if known is None:
        raise UnreadableEvent("its time zone is not defined")
    return known


def _find_definitions(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the id of each zone that a calendar defines, with an id of the definition."""
    block: list[str] = []
    for line in lines:
        is_end = line.upper().strip() == "END:VTIMEZONE"
        if block or line.upper().strip() == "BEGIN:VTIMEZONE":
            block.append(line)
        if is_end and block:
            name = next((each.partition(":")[2].strip() for each in block if _get_name(each) == "TZID"), "")
            digest = hashlib.sha256("\n".join(block).encode()).hexdigest()
            yield name, f"zone-{digest}"
            block = []
