"""Rows of a form: one that is left empty is none, and what is wrong with the others stands where they are."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from pydantic import JsonValue

from switchboard.web.errors import FieldError, ValidationFailed

Row: TypeAlias = dict[str, JsonValue]


def kept_rows(rows: JsonValue, *names: str) -> list[tuple[int, Row]]:
    """The rows of which one of these fields is filled in, each with its place in the form."""
    found = [(number, row) for number, row in enumerate(rows if isinstance(rows, list) else []) if isinstance(row, dict)]
    return [(number, row) for number, row in found if any(str(row.get(name) or "").strip() for name in names)]


@contextmanager
def relocated(places: Mapping[str, str]) -> Iterator[None]:
    """Give faults the form's names: the longest of these beginnings is replaced; one that ends with a dot takes all that follows with it."""
    try:
        yield
    except ValidationFailed as refusal:
        errors = [FieldError(field=_relocated(error["field"], places), message=error["message"]) for error in refusal.errors]
        raise ValidationFailed(refusal.detail, errors=errors) from None


def _relocated(field: str, places: Mapping[str, str]) -> str:
    for known in sorted(places, key=len, reverse=True):
        if known.endswith(".") and field.startswith(known):
            return places[known]
        if field == known or field.startswith(f"{known}."):
            return places[known] + field.removeprefix(known).replace("[key]", "name")
    return field
