"""Template filters. The work and the result of each are bounded by the size of the input."""

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Undefined

MAX_CHARACTERS: Final = 100_000
MAX_DIGITS: Final = 10


def to_text(value: Any) -> str:
    """Render a value as text: null is empty, booleans, objects, and lists are JSON. Raises `UndefinedError` for a
    missing value.
    """
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | dict | list | tuple) else str(value)


def _limit_result(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*given: Any, **named: Any) -> Any:
        result = function(*given, **named)
        if isinstance(result, str) and len(result) > MAX_CHARACTERS:
            raise ValueError(f"produces more than {MAX_CHARACTERS} characters")
        return result

    return run


def _default(value: Any, fallback: Any = "") -> Any:
    return fallback if value is None or isinstance(value, Undefined) else value


def _truncate(value: Any, length: int = 160) -> str:
    text = to_text(value)
    return text if len(text) <= length else f"{text[: max(0, length - 1)].rstrip()}…"


def _round(value: Any, digits: int = 0) -> int | float:
    if not isinstance(value, int | float) or not 0 <= digits <= MAX_DIGITS:
        raise ValueError(f"round takes a number, and 0 to {MAX_DIGITS} digits")
    return round(value, digits) if digits else round(value)


def _int(value: Any) -> int:
    return int(value)


def _float(value: Any) -> float:
    return float(value)


def _join(value: Any, separator: str = ", ") -> str:
    if not isinstance(value, list | tuple):
        raise TypeError("join takes a list")
    return str(separator).join(map(to_text, value))


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "default": _default,
    "lower": _limit_result(lambda value: to_text(value).lower()),
    "upper": _limit_result(lambda value: to_text(value).upper()),
    "title": _limit_result(lambda value: to_text(value).title()),
    "capitalize": _limit_result(lambda value: to_text(value).capitalize()),
    "trim": _limit_result(lambda value: to_text(value).strip()),
    "truncate": _limit_result(_truncate),
    "length": len,
    "round": _round,
    "int": _int,
    "float": _float,
    "string": _limit_result(to_text),
    "join": _limit_result(_join),
    "urlencode": _limit_result(lambda value: quote(to_text(value), safe="")),
    "json": _limit_result(lambda value: json.dumps(value, ensure_ascii=False)),
}
TESTS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "defined": lambda value: not isinstance(value, Undefined),
    "none": lambda value: value is None,
}
