"""Filters and conditions over an event. A missing field or a value of another type does not match; nothing raises."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from pydantic import JsonValue

from switchboard.plugin_sdk import JsonObject

ROOTS: Final = ("event", "id", "timestamp", "organization_id", "data")
Operator = Literal["eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "exists", "not_exists"]


def validate_path(path: str) -> str:
    """Validate a dotted path into an event. Raises `ValueError` for a path that no event has."""
    root, *rest = path.split(".")
    if root not in ROOTS or (rest and root != "data") or not all(rest):
        raise ValueError(f"{path!r} must be {', '.join(ROOTS[:-1])}, or start with data., like data.from_number")
    return path


def look_up(event: JsonObject, path: str) -> JsonValue:
    """Return the value at a path; None if there is none, which automations treat like null."""
    value: JsonValue = event
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def matches_filters(event: JsonObject, filters: Mapping[str, JsonValue]) -> bool:
    """Return whether every filter's field equals the filter's value."""
    return all(_equal(look_up(event, path), value) for path, value in filters.items())


def condition_holds(event: JsonObject, field: str, operator: Operator, value: JsonValue) -> bool:
    """Return whether a condition holds (docs/decisions/0009-automation-conditions-and-templates.md)."""
    return CHECKS[operator](look_up(event, field), value)


def _equal(left: JsonValue, right: JsonValue) -> bool:
    # In Python True == 1; in JSON they differ.
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _among(actual: JsonValue, value: JsonValue) -> bool:
    return isinstance(value, list) and any(_equal(actual, item) for item in value)


def _contains(actual: JsonValue, value: JsonValue) -> bool:
    if isinstance(actual, str) and isinstance(value, str):
        return value.casefold() in actual.casefold()
    return _among(value, actual)


def _order(actual: JsonValue, value: JsonValue) -> int | None:
    """Compare numbers by value and texts by code point, which orders timestamps too; None for values that cannot be
    compared.
    """
    if isinstance(actual, bool) or isinstance(value, bool):
        return None
    if isinstance(actual, int | float) and isinstance(value, int | float):
        return (actual > value) - (actual < value)
    if isinstance(actual, str) and isinstance(value, str):
        return (actual > value) - (actual < value)
    return None


CHECKS: Final[Mapping[Operator, Callable[[JsonValue, JsonValue], bool]]] = {
    "eq": _equal,
    "neq": lambda actual, value: not _equal(actual, value),
    "gt": lambda actual, value: _order(actual, value) == 1,
    "gte": lambda actual, value: _order(actual, value) in (0, 1),
    "lt": lambda actual, value: _order(actual, value) == -1,
    "lte": lambda actual, value: _order(actual, value) in (0, -1),
    "in": _among,
    "not_in": lambda actual, value: not _among(actual, value),
    "contains": _contains,
    "exists": lambda actual, _: actual is not None,
    "not_exists": lambda actual, _: actual is None,
}
