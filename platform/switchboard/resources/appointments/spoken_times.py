"""Moments in the words that a voice says.

The platform writes the words, and the language model repeats them: a model that converts zones or finds the weekday of
a date is sometimes wrong, and a voice reads `03/04` as two numbers.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.dates import (
    format_date,
    format_time,
    get_timezone_gmt,
    get_timezone_name,
    tokenize_pattern,
    untokenize_pattern,
)

from switchboard.foundation.languages import DEFAULT_LANGUAGE

MONTHS_WITHOUT_YEAR: Final = 12
"""Months, from the current one on, whose name says the year."""
YEARLESS_SKELETONS: Final = ("MMMMEEEEd", "MMMMEd", "MMMEd")
"""Names of Babel's patterns for a day without its year, the best first."""


def describe_moment(moment: datetime, zone: ZoneInfo, language: str, *, now: datetime) -> str:
    """Return a moment in words of a language: weekday, day, month, local time, and the name of the zone.

    The year is left out if the month is the current one of the zone or one of the eleven that follow, each of which has
    a name of its own. A local time that exists twice has the name of its half of the year, such as "Central European
    Summer Time"; all others have the name that is right all year.

    English has twelve hours with "a.m." and "p.m.", and "12 noon"; 12 a.m. is the midnight at which the day begins. A
    language without a phrase here has the patterns of its locale, and one without a locale is English.
    """
    locale = find_spoken_locale(language)
    local = moment.astimezone(zone)
    spoken_day = _describe_day(local, now.astimezone(zone), locale)
    describe = PHRASES.get(locale.language)
    if describe is None:
        clock = format_time(local, "short", tzinfo=zone, locale=locale)
        spoken = locale.datetime_formats["full"].replace("'", "").format(clock, spoken_day)
        return _replace_spaces(f"{spoken}, {_name_zone(local, zone, locale)}")
    return _replace_spaces(describe(spoken_day, local, _name_zone(local, zone, locale)))


@lru_cache(maxsize=1000)
def find_spoken_locale(language: str) -> Locale:
    """Return the locale of a tag such as `de`, `pt-BR`, or `zh_TW`, or else that of its language, or else English."""
    tag = language.strip().replace("-", "_")
    for name in (tag, tag.partition("_")[0]):
        try:
            return Locale.parse(name)
        except (UnknownLocaleError, ValueError, TypeError):
            continue
    return Locale.parse(DEFAULT_LANGUAGE)


def _describe_day(local: datetime, today: datetime, locale: Locale) -> str:
    months_ahead = (local.year - today.year) * 12 + local.month - today.month
    has_year = not 0 <= months_ahead < MONTHS_WITHOUT_YEAR
    text = format_date(local, "full" if has_year else _find_yearless_pattern(locale), locale=locale)
    if locale.language == "fr" and local.day == 1:
        return text.replace(" 1 ", " 1er ", 1)
    return text


@lru_cache(maxsize=1000)
def _find_yearless_pattern(locale: Locale) -> str:
    """Return the pattern of weekday, day, and month with whole words; locales have it with short words only."""
    skeletons = locale.datetime_skeletons
    name = next((name for name in YEARLESS_SKELETONS if name in skeletons), None)
    if name is None:
        return "full"
    tokens: list[tuple[str, str | tuple[str, int]]] = []
    for kind, value in tokenize_pattern(skeletons[name].pattern):
        # Fields of the weekday, and of a month that has letters.
        if isinstance(value, tuple) and (value[0] in "Ec" or (value[0] in "ML" and value[1] > 2)):
            tokens.append((kind, (value[0], 4)))
        else:
            tokens.append((kind, value))
    return untokenize_pattern(tokens)


def _say_english(day: str, local: datetime, zone: str) -> str:
    half = "noon" if (local.hour, local.minute) == (12, 0) else "a.m." if local.hour < 12 else "p.m."
    minutes = f":{local.minute:02}" if local.minute else ""
    return f"{day}, at {local.hour % 12 or 12}{minutes} {half}, {zone}"


def _say_german(day: str, local: datetime, zone: str) -> str:
    minutes = f":{local.minute:02}" if local.minute else ""
    return f"{day}, um {local.hour}{minutes} Uhr, {zone}"


def _say_spanish(day: str, local: datetime, zone: str) -> str:
    return f"{day}, a {'la' if local.hour == 1 else 'las'} {local.hour}:{local.minute:02}, {zone}"


def _say_french(day: str, local: datetime, zone: str) -> str:
    minutes = f" {local.minute:02}" if local.minute else ""
    return f"{day} à {local.hour} h{minutes}, {zone}"


PHRASES: Final[Mapping[str, Callable[[str, datetime, str], str]]] = {
    "en": _say_english,
    "de": _say_german,
    "es": _say_spanish,
    "fr": _say_french,
}
"""Phrases of a day, a local time, and a zone, by language."""


def _replace_spaces(text: str) -> str:
    """Replace the narrow and unbreakable spaces of locales, which some voices read as symbols."""
    return " ".join(text.split())


def _name_zone(local: datetime, zone: ZoneInfo, locale: Locale) -> str:
    """Return the name of a zone in words.

    A zone that changes its clock has the name that is right all year, such as "Central European Time", and the name of
    the half of the year where that is missing (London) or where the local time exists twice. A zone that never changes
    its clock has the name of standard time, because Arizona is not always at "Mountain Time". A zone without any name
    is called by its country, and one without a country by its distance from UTC.
    """
    names = _list_zone_names(zone.key, locale)
    offset, (lowest, highest) = _get_offset(local), _list_offsets(local.year, zone)
    season = "daylight" if offset > lowest else "standard"
    exists_twice = _get_offset(local.replace(fold=0)) > _get_offset(local.replace(fold=1))
    kinds = (season, "generic") if exists_twice or lowest == highest else ("generic", season)
    for kind in kinds:
        if name := names.get(kind):
            return name
    if get_global("zone_territories").get(zone.key, "ZZ") in ("ZZ", "001"):
        return get_timezone_gmt(local, "long", locale=locale)
    return get_timezone_name(zone, locale=locale)


@lru_cache(maxsize=1000)
def _list_zone_names(key: str, locale: Locale) -> Mapping[str, str]:
    """Return the long names of a zone: generic, standard, and daylight, as far as the locale has them.

    Babel's `get_timezone_name` does not use the names of these for zones that CLDR lists by an old key, such as
    Asia/Calcutta, and makes "Unknown Region (UTC) Time" of UTC.
    """
    aliases, metazones = get_global("zone_aliases"), get_global("meta_zones")
    key = aliases.get(key, key)
    old_keys = (old for old, new in aliases.items() if new == key)
    metazone = next((metazones[name] for name in (key, *old_keys) if name in metazones), "")
    names = dict(locale.meta_zones.get(metazone, {}).get("long", {}))
    return names | dict(locale.time_zones.get(key, {}).get("long", {}))


@lru_cache(maxsize=1000)
def _list_offsets(year: int, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """Return the lower and the higher offset of a year. A zone may call its lower one daylight time, as Dublin does."""
    winter, summer = (_get_offset(datetime(year, month, 1, tzinfo=zone)) for month in (1, 7))
    return min(winter, summer), max(winter, summer)


def _get_offset(local: datetime) -> timedelta:
    return local.utcoffset() or timedelta()
