"""The OpenAPI document, and the parts of it that the generators of the clients read."""

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pydantic import JsonValue
from switchboard.apps.server.api_reference import build_openapi_document
from switchboard.apps.server.app import create_routes

Json: TypeAlias = dict[str, JsonValue]

# A response of a later version must not fail in an older client, and the server checks requests.
CONSTRAINTS = {
    "additionalProperties",
    "default",
    "discriminator",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "propertyNames",
    "readOnly",
    "title",
}
DESCRIPTION_WIDTH = 110


def build_document() -> Json:
    """Build the OpenAPI document."""
    return json.loads(json.dumps(build_openapi_document(create_routes(), "https://voice.example.com")))  # type: ignore[no-any-return]


def get_object(value: JsonValue | Mapping[str, JsonValue], *path: str) -> Json:
    """Return the object at a path, empty if there is none."""
    for name in path:
        value = value.get(name, {}) if isinstance(value, dict) else {}
    return value if isinstance(value, dict) else {}


def get_text(value: Mapping[str, JsonValue], name: str) -> str:
    """Return a text, empty if there is none."""
    return str(value.get(name, ""))


def list_objects(value: Mapping[str, JsonValue], name: str) -> list[Json]:
    """Return a list of objects, empty if there is none."""
    found = value.get(name)
    return [get_object(item) for item in found] if isinstance(found, list) else []


def list_references(value: JsonValue) -> list[str]:
    """Return the names of the schemas that a part of the document refers to."""
    return re.findall(r'"#/components/schemas/(\w+)"', json.dumps(value))


def select_schemas(document: Json, names: Iterable[str]) -> Json:
    """Return these schemas and those that they refer to, by name, without constraints."""
    schemas, selected, waiting = get_object(document, "components", "schemas"), {}, list(names)
    while waiting:
        name = waiting.pop()
        if name not in selected:
            selected[name] = remove_constraints(schemas[name])
            waiting += list_references(schemas[name])
    return dict(sorted(selected.items()))


def remove_constraints(value: JsonValue, *, is_named: bool = False) -> JsonValue:
    """Return a schema without constraints and titles, its descriptions wrapped; `is_named` values are keyed by name."""
    if isinstance(value, list):
        return [remove_constraints(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept: Json = {}
    for name, part in value.items():
        if is_named:
            kept[name] = remove_constraints(part)
        elif name == "description":
            kept[name] = textwrap.fill(str(part), DESCRIPTION_WIDTH)
        elif name == "patternProperties":
            (kept["additionalProperties"],) = (remove_constraints(schema) for schema in get_object(part).values())
        elif name not in CONSTRAINTS or (name == "additionalProperties" and isinstance(part, dict)):
            kept[name] = part if name in ("enum", "const") else remove_constraints(part, is_named=name == "properties")
    return kept


def build_schema_document(schemas: Json) -> Json:
    """Return an OpenAPI document that has only schemas."""
    info: Json = {"title": "Switchboard", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": {}, "components": {"schemas": schemas}}
