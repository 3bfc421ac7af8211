"""Rows of a form: empty rows are dropped, and errors are moved to the rows that they belong to."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from pydantic import JsonValue

from switchboard.apps.dashboard.forms.form import Model, parse_form
from switchboard.foundation.web.errors import FieldError, ValidationFailed
from switchboard.plugin_sdk import JsonObject


def change_rows(values: Mapping[str, JsonValue], button: str, names: Collection[str]) -> JsonObject:
    """Return a form's values after a button that moves or removes a row of one of the named lists: `up:trunks:1`,
    `down:trunks:1`, or `remove:trunks:1`. Ignore other buttons and places.
    """
    verb, name, place = (*button.split(":"), "", "")[:3]
    rows = list_rows(values.get(name))
    if name not in names or not place.isdigit() or int(place) >= len(rows):
        return dict(values)
    row = rows.pop(int(place))
    if verb != "remove":
        rows.insert(max(0, int(place) + (-1 if verb == "up" else 1)), row)
    return {**values, name: list[JsonValue](rows)}


def list_rows(value: JsonValue) -> list[JsonObject]:
    """Return the rows of a list; none for anything else."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def split_lines(text: JsonValue) -> list[JsonValue]:
    """Return the lines of a text area, trimmed, without empty ones."""
    return [line.strip() for line in str(text or "").splitlines() if line.strip()]


def list_filled_rows(rows: JsonValue, *names: str) -> list[tuple[int, JsonObject]]:
    """Return the rows in which at least one of these fields is filled in, each with its position in the form."""
    return [
        (number, row)
        for number, row in enumerate(rows if isinstance(rows, list) else [])
        if isinstance(row, dict) and any(str(row.get(name) or "").strip() for name in names)
    ]


def parse_with_errors(
    model: type[Model], values: Mapping[str, JsonValue], places: Mapping[str, str], faults: list[FieldError]
) -> Model:
    """Parse like `forms.parse`, and add errors that were found before. Raises `ValidationFailed` with all errors."""
    try:
        with rename_error_fields(places):
            data = parse_form(model, values)
    except ValidationFailed as refusal:
        unread = {fault["field"] for fault in faults}  # has stand-ins, which say nothing about the input
        others = [error for error in refusal.errors if error["field"] not in unread]
        raise ValidationFailed(refusal.detail, errors=[*faults, *others]) from None
    if faults:
        raise ValidationFailed(errors=faults)
    return data


@contextmanager
def rename_error_fields(places: Mapping[str, str]) -> Iterator[None]:
    """Give errors the form's field names: replace the longest matching prefix. A prefix that ends with `*` replaces the
    whole name.
    """
    try:
        yield
    except ValidationFailed as refusal:
        errors: list[FieldError] = [
            {**error, "field": _rename_field(error["field"], places)} for error in refusal.errors
        ]
        raise ValidationFailed(refusal.detail, errors=errors) from None


def _rename_field(field: str, places: Mapping[str, str]) -> str:
    for known in sorted(places, key=len, reverse=True):
        if known.endswith("*") and field.startswith(known[:-1]):
            return places[known]
        if field == known or field.startswith(f"{known}."):
            return places[known] + field.removeprefix(known).replace("[key]", "name")
    return field


# Opening hours: the rows of the form are the slots of the API's schedule.


def drop_blank_rows(schedule: JsonValue) -> JsonValue:
    """Return a submitted schedule without its empty rows."""
    if not isinstance(schedule, dict):
        return schedule
    kept = dict(schedule)
    kept["slots"] = list_slots(schedule)
    if isinstance(holidays := schedule.get("holidays"), list):
        kept["holidays"] = [holiday for holiday in holidays if holiday]
    return kept


def list_slots(schedule: JsonValue) -> list[JsonValue]:
    """Return the rows of opening hours that are not empty. A form sends no list if no day is chosen; here the list is
    empty.
    """
    slots = schedule.get("slots") if isinstance(schedule, dict) else None
    return [{"days": [], **slot} for _, slot in list_filled_rows(slots, "days", "start", "end")]
