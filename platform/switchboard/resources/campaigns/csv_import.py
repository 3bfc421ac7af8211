"""Read contact lists as people write them: pasted lines, and spreadsheets saved as CSV. A line that cannot be read
is reported with its number; nothing is guessed.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import phonenumbers
from pydantic import ValidationError

from switchboard.resources.campaigns.schemas import ContactToCall

DELIMITERS: Final = (",", ";", "\t", "|")
PHONE_HEADERS: Final = ("phone number", "phone", "number", "mobile", "cell", "telephone", "tel", "e164", "to")
NAME_HEADERS: Final = ("name", "full name", "first name", "contact", "customer", "contact name", "customer name")
LOOKED_AT: Final = 50
"""Lines from which columns are recognized."""

SHOWN: Final = 200

Row = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """Column positions, from 0. `name` is None for a list without names; `header` is true if the first line names
    the columns.
    """

    phone: int
    name: int | None
    header: bool


@dataclass(frozen=True, slots=True)
class LineError:
    """A line that cannot be used: its number from 1, its content, and the reason."""

    line: int
    text: str
    message: str


@dataclass(slots=True)
class ContactList:
    """A parsed list. `lines` and `cells` hold the line number and the cells of each contact; `repeated` counts the
    lines that were left out, because their number stands above already.
    """

    columns: list[str]
    layout: ColumnLayout
    people: list[ContactToCall] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    cells: list[Sequence[str]] = field(default_factory=list)
    faults: list[LineError] = field(default_factory=list)
    repeated: int = 0


def parse_contact_list(text: str, *, region: str | None, layout: ColumnLayout | None = None) -> ContactList:
    """Parse a contact list. `region` (`US`) is the region of numbers without a country code; without a region they
    are errors.

    `layout` is the user's choice; without it the layout is recognized from the first line and the position of the
    numbers.
    """
    faults: list[LineError] = []
    rows = list(_rows(text, faults))
    width = max((len(cells) for _, cells in rows), default=1)
    used = layout or _recognize_layout(rows, width, region)
    used = ColumnLayout(
        min(used.phone, width - 1), used.name if used.name is not None and used.name < width else None, used.header
    )
    heads = rows[0][1] if rows and used.header else []
    columns = [heads[index] if index < len(heads) and heads[index] else f"Column {index + 1}" for index in range(width)]
    found = ContactList(columns, used, faults=faults)
    seen = set[str]()
    for line, cells in rows[1:] if used.header else rows:
        _add(found, seen, line, cells, region)
    found.faults.sort(key=lambda fault: fault.line)
    return found


def get_region(phone_number: str) -> str | None:
    """Return the region of a phone number, in which numbers without a country code are read."""
    try:
        return phonenumbers.region_code_for_country_code(phonenumbers.parse(phone_number, None).country_code or 0)
    except phonenumbers.NumberParseException:
        return None


def _rows(text: str, faults: list[LineError]) -> Iterator[Row]:
    """Yield the non-empty lines with their numbers, and add those that cannot be read to the faults. A quoted cell may
    contain line breaks.
    """
    reader = csv.reader(
        io.StringIO(text.removeprefix("\ufeff"), newline=""),
        delimiter=max(DELIMITERS, key=text[:10_000].count),
        strict=True,
        skipinitialspace=True,
    )
    line = 1
    while True:
        try:
            cells = [cell.strip() for cell in next(reader)]
        except StopIteration:
            return
        except csv.Error:
            shown = text.splitlines()[line - 1][:SHOWN]
            faults.append(LineError(line, shown, "quotation marks do not match from here on, or the line is too long"))
        else:
            if any(cells):
                yield line, cells
        line = reader.line_num + 1


def _recognize_layout(rows: Sequence[Row], width: int, region: str | None) -> ColumnLayout:
    first = rows[0][1] if rows else []
    header = (
        bool(first)
        and not any(_parse(cell, region) for cell in first)
        and (len(rows) > 1 or _find_column(first, PHONE_HEADERS) is not None)
    )
    body = [cells for _, cells in rows[1 if header else 0 :][:LOOKED_AT]]
    scores = [
        sum(1 for cells in body if index < len(cells) and _number(cells[index], region)) for index in range(width)
    ]
    phone = max(range(width), key=lambda index: scores[index])
    if header and not scores[phone]:
        phone = _find_column(first, PHONE_HEADERS) or 0
    name = _find_column(first, NAME_HEADERS) if header else None
    if name is None or name == phone:
        name = next(
            (index for index in range(width) if index != phone and any(_is_name(cells, index) for cells in body)), None
        )
    return ColumnLayout(phone, name, header)


def _is_name(cells: Sequence[str], index: int) -> bool:
    return index < len(cells) and any(letter.isalpha() for letter in cells[index])


def _find_column(heads: Sequence[str], names: Sequence[str]) -> int | None:
    plain = [head.casefold().replace("_", " ").replace("-", " ") for head in heads]
    return next((plain.index(name) for name in names if name in plain), None)


def _add(found: ContactList, seen: set[str], line: int, cells: Sequence[str], region: str | None) -> None:
    """Add the contact of a line, unless its number is among those `seen` above, or report the line."""
    given = cells[found.layout.phone] if found.layout.phone < len(cells) else ""
    name = cells[found.layout.name] if found.layout.name is not None and found.layout.name < len(cells) else ""
    # A number that is in E.164 already needs no parsing: the model validates it anyway, and lists are long.
    as_dialed = given.startswith("+") and given[1:].isdigit()
    try:
        person = ContactToCall(phone_number=given if as_dialed else _number(given, region) or given, name=name or None)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        problem = (
            fault["msg"].removeprefix("Value error, ")
            if fault["loc"] != ("phone_number",)
            else _explain_number(given, region)
        )
        found.faults.append(LineError(line, ", ".join(cells)[:SHOWN], problem))
    else:
        if person.phone_number in seen:
            found.repeated += 1
            return
        seen.add(person.phone_number)
        found.people.append(person)
        found.lines.append(line)
        found.cells.append(cells)


def _number(given: str, region: str | None) -> str | None:
    """Return a number in E.164; None for text that is not exactly one phone number that can be dialed from abroad."""
    number = _parse(given, region)
    if (
        number is None
        or phonenumbers.is_possible_number_with_reason(number) != phonenumbers.ValidationResult.IS_POSSIBLE
    ):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _parse(given: str, region: str | None) -> phonenumbers.PhoneNumber | None:
    """Return a number as the library reads it; None for text that is not a number, or more than one."""
    text = f"+{given[2:]}" if given.startswith("00") else given
    if not any(character.isdigit() for character in text) or any(character.isalpha() for character in text):
        return None
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    return None if number.extension else number


def _explain_number(given: str, region: str | None) -> str:
    if not given:
        return "has no phone number"
    if region is None and not given.startswith(("+", "00")):
        return f"{given} has no country code: write it like +15550100001"
    number = _parse(given, region)
    local = phonenumbers.ValidationResult.IS_POSSIBLE_LOCAL_ONLY
    if number is not None and phonenumbers.is_possible_number_with_reason(number) == local:
        return f"{given} has no area code: write it like +15550100001"
    return f"{given} is not a phone number"
