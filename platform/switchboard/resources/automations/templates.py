"""Templates over an event: Jinja expressions without any way to reach outside, loop, or grow without bound.

Statements, calls, powers, and unknown filters are refused when the automation is saved. Values are JSON, so there are
no attributes to reach. A template that is a single expression keeps its type: `{{ data.duration_seconds }}` is a
number.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from inspect import signature
from itertools import islice
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import JsonValue

from switchboard.plugin_sdk import JsonObject
from switchboard.resources.automations.conditions import ROOTS

# Filters. The work and the result of each are bounded by the size of the input.

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
    "float": float,
    "string": _limit_result(to_text),
    "join": _limit_result(_join),
    "urlencode": _limit_result(lambda value: quote(to_text(value), safe="")),
    "json": _limit_result(lambda value: json.dumps(value, ensure_ascii=False)),
}
TESTS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "defined": lambda value: not isinstance(value, Undefined),
    "none": lambda value: value is None,
}

# The language of templates.

MAX_SOURCE: Final = 20_000
MAX_EXPRESSION: Final = 500
MAX_NODES: Final = 80
MAX_RENDERED: Final = 256_000
ALLOWED: Final = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Const,
    nodes.Name,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.List,
    nodes.Tuple,
    nodes.Dict,
    nodes.Pair,
    nodes.Keyword,
    nodes.Filter,
    nodes.Test,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.CondExpr,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Neg,
    nodes.Pos,
)
REFUSED: Final[Mapping[type[nodes.Node], str]] = {
    nodes.Call: "calls are not allowed",
    nodes.Concat: "~ is not allowed: write {{ one }}{{ other }}",
}
# Errors of an evaluation: a missing name, incompatible types, a division by zero, an index out of range.
FAILURES: Final = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError)

Expression: TypeAlias = Callable[[JsonObject], Any]


class TemplateFailed(Exception):
    """A template that cannot be rendered for this event; the message names its place (`params.headers.X-Name`) and
    the reason.
    """


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja over JSON: `a.b` is a key and never a Python attribute; only numbers can be multiplied."""

    intercepted_binops = frozenset({"*"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        try:
            return obj[argument]
        except (TypeError, LookupError):
            return self.undefined(hint=f"there is no {argument}")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            raise TypeError("only numbers can be multiplied")
        return super().call_binop(context, operator, left, right)


ENVIRONMENT: Final = _Environment(
    undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, optimized=False
)
ENVIRONMENT.globals.clear()
ENVIRONMENT.filters = dict(FILTERS)
ENVIRONMENT.tests = dict(TESTS)


def is_template(value: JsonValue) -> bool:
    """Return whether a value is a text with an expression in it."""
    return isinstance(value, str) and any(mark in value for mark in ("{{", "{%", "{#"))


def has_template(value: JsonValue) -> bool:
    """Return whether a value is or contains a template."""
    return any(is_template(text) for _, text in _iterate_texts(value))


def count_expressions(value: JsonValue) -> int:
    """Return an upper bound of the number of expressions in a value."""
    return sum(text.count("{{") for _, text in _iterate_texts(value))


def find_template_errors(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and message of each template in a value that can never render."""
    for place, text in _iterate_texts(value, path):
        try:
            if is_template(text):
                _parts(text)
        except (TemplateError, SyntaxError, RecursionError, ValueError) as error:
            yield place, _describe_error(error)


def _iterate_texts(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and content of each text in a value."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _iterate_texts(item, f"{path}.{key}")


def render_params(params: Mapping[str, JsonValue], event: JsonObject) -> JsonObject:
    """Render the templates in the parameters. Raises `TemplateFailed`."""
    filled = {name: _render_value(value, event, f"params.{name}") for name, value in params.items()}
    try:
        size = len(json.dumps(filled, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError):
        raise TemplateFailed("params: a template produces a value that is not JSON") from None
    if size > MAX_RENDERED:
        raise TemplateFailed(f"params: longer than {MAX_RENDERED} characters")
    return filled


def _render_value(value: JsonValue, event: JsonObject, path: str) -> JsonValue:
    if isinstance(value, dict):
        return {key: _render_value(item, event, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_render_value(item, event, f"{path}.{index}") for index, item in enumerate(value)]
    if not isinstance(value, str) or not is_template(value):
        return value
    try:
        values = [part if isinstance(part, str) else part(event) for part in _parts(value)]
        is_value = len(values) == 1 and not isinstance(values[0], Undefined)
        result: JsonValue = values[0] if is_value else "".join(map(to_text, values))
        if isinstance(result, str) and len(result) > MAX_CHARACTERS:
            raise ValueError(f"produces more than {MAX_CHARACTERS} characters")
    except FAILURES as error:
        raise TemplateFailed(f"{path}: {_describe_error(error)}") from None
    return result


@lru_cache(maxsize=512)
def _parts(source: str) -> tuple[str | Expression, ...]:
    """Split a template into texts and expressions, in order. Raises what Jinja and Python raise for a template that
    does not compile.
    """
    if len(source) > MAX_SOURCE:
        raise ValueError(f"is longer than {MAX_SOURCE} characters")
    parts: list[str | Expression] = []
    code: list[str] | None = None
    for _, kind, text in ENVIRONMENT.lex(source):
        if kind == "variable_begin":
            code = []
        elif kind == "variable_end":
            parts.append(_compile_expression("".join(code or ())))
            code = None
        elif code is not None:
            code.append(text)
        elif kind == "data":
            parts.append(text)
        elif not kind.startswith("comment"):
            raise ValueError("statements ({% … %}) are not allowed, only expressions ({{ … }})")
    if code is not None:
        raise ValueError("a {{ is not closed")
    return tuple(parts)


def _compile_expression(code: str) -> Expression:
    if len(code) > MAX_EXPRESSION:
        raise ValueError(f"an expression is longer than {MAX_EXPRESSION} characters")
    found = list(islice(ENVIRONMENT.parse(f"{{{{ {code} }}}}").find_all(nodes.Node), MAX_NODES + 1))
    if len(found) > MAX_NODES:
        raise ValueError("an expression has too many parts")
    for node in found:
        _check(node)
    expression = ENVIRONMENT.compile_expression(code, undefined_to_none=False)
    return lambda event: expression(**event)


def _check(node: nodes.Node) -> None:
    """Raise `ValueError` for syntax that templates may not use."""
    if not isinstance(node, ALLOWED):
        raise ValueError(REFUSED.get(type(node), f"{type(node).__name__.lower()} is not allowed"))
    if isinstance(node, nodes.Name) and node.name not in ROOTS:
        raise ValueError(f"there is no {node.name}; there are {', '.join(ROOTS)}")
    if isinstance(node, nodes.Filter | nodes.Test):
        _check_use(node, FILTERS if isinstance(node, nodes.Filter) else TESTS)
    if isinstance(node, nodes.Const) and not _is_json(node.value):
        raise ValueError("contains a NUL, an unpaired surrogate, or an infinite number")


def _check_use(node: nodes.Filter | nodes.Test, known: Mapping[str, Callable[..., Any]]) -> None:
    kind = type(node).__name__.lower()
    if node.name not in known:
        raise ValueError(f"there is no {kind} {node.name}; there are {', '.join(known)}")
    try:
        signature(known[node.name]).bind(node.node, *node.args, **{str(pair.key): pair.value for pair in node.kwargs})
    except TypeError as error:
        raise ValueError(f"{kind} {node.name}: {error}") from None
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        raise ValueError(f"{kind} {node.name}: * is not allowed")


def _is_json(value: object) -> bool:
    try:
        return "\0" not in str(value) and bool(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:
        return False


def _describe_error(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    if isinstance(error, TemplateSyntaxError):
        return f"is not a valid template: {error.message}"
    return str(error) or "cannot be evaluated"
