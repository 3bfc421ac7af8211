"""Faults of given settings, in words that never contain a given value."""

from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue, ValidationError


def list_settings_faults(error: ValidationError, values: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """Return pairs of key and message. A message into which a validator put one of the values is a generic one."""
    given = [text for value in values.values() for text in _texts(value)]
    return [
        (".".join(map(str, fault["loc"])) or "settings", _redact(given, fault["msg"]))
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _redact(given: Iterable[str], message: str) -> str:
    return "is not valid" if any(len(text) > 3 and text in message for text in given) else message
