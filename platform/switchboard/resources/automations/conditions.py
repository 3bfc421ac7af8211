"""Fields of events that filters and conditions of automations compare."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from switchboard.foundation.conditions import is_equal, look_up
from switchboard.plugin_sdk import JsonObject

ROOTS: Final = ("event", "id", "timestamp", "organization_id", "data")


def validate_path(path: str) -> str:
    """Validate a dotted path into an event. Raises `ValueError` for a path that no event has."""
    root, *rest = path.split(".")
    if root not in ROOTS or (rest and root != "data") or not all(rest):
        raise ValueError(f"{path!r} must be {', '.join(ROOTS[:-1])}, or start with data., like data.from_number")
    return path


def matches_filters(event: JsonObject, filters: Mapping[str, JsonValue]) -> bool:
    """Return whether every filter's field equals the filter's value."""
    return all(is_equal(look_up(event, path), value) for path, value in filters.items())
