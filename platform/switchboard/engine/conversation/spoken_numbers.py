"""Amounts of money and times of day in sentences, as figures or in words."""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final, NamedTuple

from text_to_num import alpha2digit

NUMBER: Final = r"\d(?:[\d.,' ]*\d)?"
HALF_DAY: Final = 12
HOUR: Final = re.compile(
    r"(?P<half>\bhalb )?(?<![\d.,:])(?P<hour>\d{1,2})(?:\s?[:.h]\s?(?P<minutes>[0-5]\d))?(?!\d)"
    r"(?:\s?(?P<half_day>[ap]\.?m\b))?(?P<unit>\s?(?:uhr|heures?|h\b|o'clock|horas?|de la (?:mañana|tarde|noche)))?"
    r"(?!\s?(?:days?|tage?n?|días?|jours?|weeks?|wochen?|semanas?|semaines?|minut\w+|euros?|dollars?|%|€|\$))"
)
RANGE: Final = re.compile(r"\d{1,2}\s?(?:-|–|to|bis|until|till|a|à|hasta)\s?(?:las )?\d{1,2}(?![\d.,]*\d)")


class TimeOfDay(NamedTuple):
    """A time of day; one that may be of both halves of the day has two `hours`. `minutes` are None if not said."""

    hours: frozenset[int]
    minutes: int | None

    def fits(self, others: Iterable["TimeOfDay"]) -> bool:
        """Return whether it may be one of other times."""
        return any(
            self.hours & other.hours and (not self.minutes or self.minutes == (other.minutes or 0)) for other in others
        )


def write_digits(text: str, language: str) -> str:
    """Return a text with its numbers as digits, in `en`, `de`, `es`, or `fr`."""
    return str(alpha2digit(text, language))


def read_number(text: str) -> Decimal | None:
    """Read a number as people write it in any of the languages: `1,250.50`, `1.250,50`, `49`."""
    digits = re.sub("[' ]", "", text).strip(".,")
    last = max(digits.rfind("."), digits.rfind(","))
    decimals = digits[last + 1 :] if last >= 0 else ""
    if last >= 0 and len(decimals) != 3:
        digits = f"{re.sub('[.,]', '', digits[:last])}.{decimals}"
    else:
        digits = re.sub("[.,]", "", digits)
    return Decimal(digits) if re.fullmatch(r"\d+(?:\.\d+)?", digits) else None


def list_numbers(text: str) -> set[Decimal]:
    """List the numbers in a text; figures with spaces between them are read as one number, and as several."""
    parts = (part for match in re.finditer(NUMBER, text) for part in (match[0], *match[0].split()))
    return {number for part in parts if (number := read_number(part)) is not None}


def list_prices(text: str, currency: str, cents: str) -> set[Decimal]:
    """List the amounts of money in a text, by the patterns of the words for the currency and its hundredth part."""
    amounts = re.compile(
        rf"[$€£]\s?(?P<after>{NUMBER})|(?P<before>{NUMBER})\s?(?:{currency})(?!\w)"
        rf"(?:\s?(?:and|und|y|con|et)?\s?(?P<cents>\d{{1,2}})(?:\s(?:{cents}))?(?!\w|\s?%))?"
    )
    prices = set()
    for match in amounts.finditer(text):
        number = read_number(match["after"] or match["before"])
        if number is not None:
            prices.add(number + Decimal(match["cents"] or 0) / 100)
    return prices


def list_times(text: str) -> list[TimeOfDay]:
    """List the times of day in a text; any number up to 24 may be one."""
    found = []
    for match in HOUR.finditer(text):
        hour = int(match["hour"]) - bool(match["half"])
        if match["half_day"]:
            hours = {hour % HALF_DAY + (HALF_DAY if match["half_day"].startswith("p") else 0)}
        else:
            hours = {hour, hour + HALF_DAY} if 0 < hour < HALF_DAY else {hour % (2 * HALF_DAY)}
        minutes = 30 if match["half"] else int(match["minutes"]) if match["minutes"] else None
        if hour <= 2 * HALF_DAY:
            found.append(TimeOfDay(frozenset(hours), minutes))
    return found


def has_times(text: str) -> bool:
    """Return whether numbers of a text are written as times of day, or as a range."""
    written = (match["unit"] or match["minutes"] or match["half_day"] for match in HOUR.finditer(text))
    return any(written) or RANGE.search(text) is not None
