"""Times, money, and numbers in the language of the page, and times in the organization's time zone."""

from copy import copy
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

import phonenumbers
from babel import Locale
from babel.dates import format_date, format_skeleton, format_time
from babel.lists import format_list
from babel.numbers import NumberPattern, format_decimal, format_percent
from babel.units import format_unit
from markupsafe import Markup
from quart import g

from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import now
from switchboard.foundation.languages import DEFAULT_LANGUAGE, get_display_locale, get_language, gettext
from switchboard.resources.calls.chats import VISITOR
from switchboard.resources.phone_numbers.models import PhoneNumber

ENGLISH_DATES: Final = Locale("en", "GB")
"""Days before months, and 24 hours."""
CURRENCY: Final = "USD"


def get_zone() -> ZoneInfo:
    """Return the time zone of the viewer's organization."""
    viewer: Viewer | None = g.get("viewer")
    return ZoneInfo(viewer.timezone if viewer else "UTC")


def _dates() -> Locale:
    return ENGLISH_DATES if get_language() == DEFAULT_LANGUAGE else get_display_locale()


def date_time(moment: datetime | None) -> str | Markup:
    """Format a time in the organization's time zone; the title has the exact time."""
    if moment is None:
        return "–"
    local, locale = moment.astimezone(get_zone()), _dates()
    is_today = local.date() == now().astimezone(local.tzinfo).date()
    shown, exact_time = clock(local), format_time(local, "medium", local.tzinfo, locale)
    exact = moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        exact,
        f"{format_date(local, 'long', locale)}, {exact_time} {local:%Z}",
        shown if is_today else f"{format_date(local, 'medium', locale)}, {shown}",
    )


def clock(local: datetime) -> str:
    """Format the time of day of a local time, with its minutes."""
    return format_time(local, "short", local.tzinfo, _dates())


def day(moment: datetime | None) -> str:
    """Format a date in the organization's time zone."""
    return "–" if moment is None else format_date(moment.astimezone(get_zone()), "medium", _dates())


def short_day(one: date) -> str:
    """Format a day of the year, such as `23 Nov`."""
    return format_skeleton("MMMd", one, locale=_dates())


def full_day(one: date) -> str:
    """Format a day, such as `23 Nov 2026`."""
    return format_date(one, "medium", _dates())


def weekday(one: date) -> str:
    return format_date(one, "EEEE", _dates())


def month(period: str) -> str:
    """Format a month, such as `2026-11`."""
    return format_skeleton("yMMM", date.fromisoformat(f"{period}-01"), locale=_dates())


def week_day(one: date) -> str:
    """Format a day of a week, such as `Mon, 23 Nov`."""
    return format_skeleton("MMMEd", one, locale=_dates())


def time_span(starts_at: datetime, ends_at: datetime, time_zone: str) -> Markup:
    """Format a period in a time zone, such as `Mon, 23 Nov 2026, 10:00–10:30 CET`; the end has a day if it is another
    one.
    """
    begin, end = (moment.astimezone(ZoneInfo(time_zone)) for moment in (starts_at, ends_at))
    days = [format_skeleton("yMMMEd", local.date(), locale=_dates()) for local in (begin, end)]
    until = clock(end) if begin.date() == end.date() else f"{days[1]}, {clock(end)}"
    exact = starts_at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    shown = f"{days[0]}, {clock(begin)}–{until} {end:%Z}"
    return Markup('<time datetime="{}">{}</time>').format(exact, shown)


def duration(seconds: float | None) -> str:
    """Format a duration, such as `1:05` or `1:02:03`."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def spelled_minutes(minutes: int) -> str:
    """Format a number of minutes in words, such as `1 hour, 30 minutes`."""
    locale, (hours, rest) = get_display_locale(), divmod(minutes, 60)
    parts = [(hours, "duration-hour"), (rest, "duration-minute")]
    return format_list(
        [format_unit(number, unit, locale=locale) for number, unit in parts if number], "unit", locale=locale
    )


def dollars(amount: Decimal | float | None) -> str:
    """Format an amount with two decimals; with four below a dollar, because most calls cost cents."""
    if amount is None:
        return "–"
    locale, size = get_display_locale(), abs(float(amount))
    pattern: NumberPattern = copy(locale.currency_formats["standard"])
    pattern.frac_prec = (4, 4) if 0 < size < 1 else (2, 2)
    shown = pattern.apply(size, locale, currency=CURRENCY, currency_digits=False)
    return f"{'−' if amount < 0 else ''}{shown}"


def phone(number: str | None) -> str:
    """Format a phone number with the spacing of its country, and describe a party without one."""
    if not number:
        return "–"
    try:
        return phonenumbers.format_number(
            phonenumbers.parse(number, None), phonenumbers.PhoneNumberFormat.INTERNATIONAL
        )
    except phonenumbers.NumberParseException:
        return gettext("website visitor") if number == VISITOR else number


def number_name(number: PhoneNumber) -> str:
    """Return an own phone number with its name."""
    shown = phone(number.phone_number)
    return shown if number.friendly_name in (None, "", number.phone_number) else f"{shown} · {number.friendly_name}"


def percent(share: float | None) -> str:
    """Format a share of one as a percentage."""
    return "–" if share is None else format_percent(share, locale=get_display_locale())


def count(number: float | None) -> str:
    """Format a whole number with the separators of thousands."""
    return "–" if number is None else format_decimal(round(number), locale=get_display_locale())


def decimal(number: float) -> str:
    """Format a number with one decimal."""
    return format_decimal(number, "#,##0.0", get_display_locale())
