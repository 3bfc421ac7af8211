"""Forms generated from the pydantic model of a plugin: a provider's settings, an action's parameters.

A form holds strings and a model's JSON holds more types, so each field defines how a value is shown and how typed text
is read. A value that is shown and not edited is read as the same value: a string that would be read as another type is
shown in quotes, as in JSON.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, cast

from pydantic import BaseModel, JsonValue

from switchboard.apps.dashboard.forms.rows import list_rows, split_lines
from switchboard.engine.providers.configuration import find_secret_settings
from switchboard.foundation.languages import LazyText, gettext
from switchboard.foundation.web.errors import FieldError
from switchboard.plugin_sdk import JsonObject

Kind: TypeAlias = Literal["text", "long", "number", "flag", "lines", "pairs", "object", "json"]
Options: TypeAlias = Sequence[tuple[str, str]]

LONG_TEXT: Final = 1000
YES_OR_NO: Final = (("true", LazyText("Yes")), ("false", LazyText("No")))
WORDS: Final = {
    "api": "API",
    "url": "URL",
    "uri": "URI",
    "sid": "SID",
    "sms": "SMS",
    "ms": "(ms)",
    "ios": "iOS",
    "http": "HTTP",
    "srtp": "SRTP",
    "pii": "PII",
}


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A field of a model's form: `options` are its choices, a `secret` is never shown, and `blank` is its default."""

    name: str
    label: str
    hint: str
    kind: Kind
    required: bool = False
    secret: bool = False
    blank: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def show(self, value: JsonValue) -> JsonValue:
        """Return a stored value as the form shows it."""
        if self.secret or value is None:
            return ""
        plain = self._format_plainly(value)
        with suppress(ValueError):
            if plain is not None and self.read(plain) == value:
                return plain
        return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None)

    def read(self, text: str) -> JsonValue:
        """Read typed text. Raises `ValueError` for text that the field cannot hold."""
        if self.kind == "lines":
            return parse_json_or_text(text) if text.startswith("[") else split_lines(text)
        if self.kind == "pairs" and not _is_braced(text):
            return _read_pairs(text)
        if self.kind in ("pairs", "object"):
            return _read_object(text)
        if self.kind in ("number", "flag"):
            return _read_number(text) if self.kind == "number" else {"true": True, "false": False}.get(text, text)
        return parse_json_or_text(text) if self.kind == "json" else text

    def _format_plainly(self, value: JsonValue) -> str | None:
        """Return a value without JSON's quotes and brackets, None for one that is JSON only."""
        if isinstance(value, str):
            return value
        if self.kind == "lines" and isinstance(value, list):
            return "\n".join(map(str, value))
        if self.kind == "pairs" and isinstance(value, dict):
            return "\n".join(f"{name}: {item}" for name, item in value.items())
        return None


def list_schema_fields(model: type[BaseModel], *, choices: Mapping[str, Options] | None = None) -> list[SchemaField]:
    """Return a model's fields. `choices` holds options by field name, for fields that are ids."""
    schema = model.model_json_schema()
    known = choices or {}
    required = set(schema.get("required", ()))
    secret = find_secret_settings(model)
    return [
        replace(_field(name, part, schema.get("$defs", {}), name in required, known.get(name)), secret=name in secret)
        for name, part in schema.get("properties", {}).items()
    ]


def values_to_form(fields: Sequence[SchemaField], values: Mapping[str, JsonValue]) -> JsonObject:
    """Return stored values as the form shows them."""
    return {field.name: field.show(values.get(field.name)) for field in fields}


def read_form_values(
    fields: Sequence[SchemaField], texts: Mapping[str, JsonValue], prefix: str
) -> tuple[JsonObject, list[FieldError]]:
    """Read typed text as the model's JSON; return it with the errors. An empty field is left out, so that its default
    applies.
    """
    values: JsonObject = {}
    faults: list[FieldError] = []
    for field in fields:
        text = texts.get(field.name)
        typed = text.replace("\r\n", "\n") if isinstance(text, str) else ""
        if not typed.strip():
            continue
        try:
            values[field.name] = field.read(typed if field.secret or field.kind == "long" else typed.strip())
        except ValueError as error:
            faults.append({"field": prefix + field.name, "message": str(error)})
    return values, faults


def make_label(name: str) -> str:
    """Return a field's name as a label."""
    words = " ".join(WORDS.get(word, word) for word in name.split("_"))
    return words if words.startswith("iOS") else words[:1].upper() + words[1:]


def parse_json_or_text(text: str) -> JsonValue:
    """Parse JSON if the text is JSON, else return it. Raises `ValueError` for text that starts like JSON and is not."""
    try:
        return cast("JsonValue", json.loads(text, parse_constant=_no_constant))
    except ValueError as error:
        if _is_braced(text) or text.startswith("["):
            raise ValueError(gettext("is not valid JSON: %(error)s. Put templates in quotes.", error=error)) from None
        return text


def _read_number(text: str) -> JsonValue:
    """Parse a number if the text is one, else return the text: a template, or a value that the model refuses."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text


def _field(
    name: str, part: JsonObject, definitions: Mapping[str, JsonObject], required: bool, options: Options | None
) -> SchemaField:
    own = {key: value for key, value in part.items() if key not in ("anyOf", "$ref")}
    schema = {**resolve_schema(part, definitions), **own}
    kind, enum = _kind(schema), schema.get("enum")
    label = make_label(name if options is None else name.removesuffix("_id"))
    if options is None and isinstance(enum, list):
        options = [(str(value), str(value)) for value in enum]
    return SchemaField(
        name=name,
        label=gettext(label),
        hint=gettext(str(schema["description"])) if "description" in schema else "",
        kind=kind,
        required=required,
        blank=_blank(schema.get("default")),
        options=YES_OR_NO if kind == "flag" else tuple(options or ()),
    )


def _blank(default: JsonValue) -> str:
    if isinstance(default, bool):
        return gettext("yes") if default else gettext("no")
    return "" if default is None or isinstance(default, dict | list) else str(default)


def _kind(schema: Mapping[str, JsonValue]) -> Kind:
    match schema.get("type"):
        case "boolean":
            return "flag"
        case "integer" | "number":
            return "number"
        case "string":
            longest = schema.get("maxLength")
            return (
                "long"
                if isinstance(longest, int) and longest >= LONG_TEXT and "url" not in str(schema.get("title")).lower()
                else "text"
            )
        case "array":
            items = schema.get("items")
            return "lines" if isinstance(items, dict) and items.get("type") == "string" else "json"
        case "object":
            inner = schema.get("additionalProperties")
            return "pairs" if isinstance(inner, dict) and inner.get("type") == "string" else "object"
        case _:
            return "json"


def resolve_schema(part: JsonObject, definitions: Mapping[str, JsonObject]) -> JsonObject:
    """Return a field's schema without null and references. A field of several types accepts any JSON."""
    variants = part.get("anyOf")
    found = [item for item in list_rows(variants) if item.get("type") != "null"] if variants else [part]
    schema = found[0] if len(found) == 1 else {}
    reference = schema.get("$ref")
    return definitions[reference.rpartition("/")[2]] if isinstance(reference, str) else schema


def _is_braced(text: str) -> bool:
    """Return whether the text starts like a JSON object and not like a template."""
    return text.startswith("{") and not text.startswith(("{{", "{%", "{#"))


def _read_object(text: str) -> JsonValue:
    value = parse_json_or_text(text) if _is_braced(text) else text
    if not isinstance(value, dict):
        raise ValueError(gettext('write an object as JSON: {"name": "value"}'))
    return value


def _read_pairs(text: str) -> JsonValue:
    pairs: JsonObject = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip():
            raise ValueError(gettext("line %(number)s: write name: value", number=number))
        if name.strip() in pairs:
            raise ValueError(gettext("line %(number)s: %(name)s is a duplicate", number=number, name=name.strip()))
        pairs[name.strip()] = value.strip()
    return pairs


def _no_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")
