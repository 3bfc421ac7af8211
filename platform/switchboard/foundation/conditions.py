"""Conditions over JSON facts. A missing field or a value of another type does not match; nothing raises."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from pydantic import Field, JsonValue, ValidationInfo, field_validator

from switchboard.foundation.web.schemas import RequestBody
from switchboard.plugin_sdk import JsonObject

Operator = Literal["eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "exists", "not_exists"]
ORDERING: Final = ("gt", "gte", "lt", "lte")


def look_up(facts: JsonObject, path: str) -> JsonValue:
    """Return the value at a dotted path; None if there is none, which conditions treat like null."""
    value: JsonValue = facts
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


class Comparison(RequestBody):
    """A comparison of one field with a value. Who uses it says which fields there are."""

    field: str
    operator: Operator = Field(description="Comparison of the field with `value`; `exists` and `not_exists` take none.")
    value: JsonValue = Field(
        None,
        validate_default=True,
        description="A list for `in` and `not_in`; a number or a text for `gt`, `gte`, `lt` and `lte`.",
    )

    @field_validator("value")
    @classmethod
    def _fits_operator(cls, value: JsonValue, info: ValidationInfo) -> JsonValue:
        operator = info.data.get("operator")
        if operator in ("in", "not_in") and not isinstance(value, list):
            raise ValueError(f"{operator} takes a list")
        if operator in ORDERING and (isinstance(value, bool) or not isinstance(value, int | float | str)):
            raise ValueError(f"{operator} takes a number or a text")
        if operator == "contains" and (value is None or value == ""):
            raise ValueError("contains takes a value to look for")
        return value

    def holds(self, facts: JsonObject) -> bool:
        """Return whether the comparison holds (docs/decisions/0009-automation-conditions-and-templates.md)."""
        return CHECKS[self.operator](look_up(facts, self.field), self.value)


def is_equal(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two values are equal in JSON: in Python True == 1."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _among(actual: JsonValue, value: JsonValue) -> bool:
    return isinstance(value, list) and any(is_equal(actual, item) for item in value)


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
    "eq": is_equal,
    "neq": lambda actual, value: not is_equal(actual, value),
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
