"""Filters and conditions over an event. What does not fit (a missing field, another type) does not hold; nothing raises."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from pydantic import JsonValue

from switchboard.plugin_sdk import JsonObject

ROOTS: Final = ("event", "id", "timestamp", "organization_id", "data")
Operator = Literal["eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "exists", "not_exists"]


def validate_path(path: str) -> str:
    """A dotted path into an event. Raises `ValueError` for one that can lead nowhere in any event."""
    root, *rest = path.split(".")
    if root not in ROOTS or (rest and root != "data") or not all(rest):
        raise ValueError(f"{path!r} must be {', '.join(ROOTS[:-1])} or begin with data., like data.from_number")
    return path


def look_up(event: JsonObject, path: str) -> JsonValue:
    """What is at a path, None where there is nothing: for automations null is nothing too."""
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
    """Whether every filter's field has exactly the filter's value."""
    return all(_equal(look_up(event, path), value) for path, value in filters.items())


def condition_holds(event: JsonObject, field: str, operator: Operator, value: JsonValue) -> bool:
    """Whether a condition holds (api-decisions, "Objects")."""
    return CHECKS[operator](look_up(event, field), value)


def _equal(left: JsonValue, right: JsonValue) -> bool:
    # Python's True is 1, JSON's is not.
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _among(actual: JsonValue, value: JsonValue) -> bool:
    return isinstance(value, list) and any(_equal(actual, item) for item in value)


def _contains(actual: JsonValue, value: JsonValue) -> bool:
    if isinstance(actual, str) and isinstance(value, str):
        return value.casefold() in actual.casefold()
    return _among(value, actual)


def _order(actual: JsonValue, value: JsonValue) -> int | None:
    """Numbers by size, texts letter by letter, which puts timestamps in order too; None where the two cannot be compared."""
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
