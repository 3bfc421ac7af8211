"""The OpenAPI document, and the schemas of it that the generators of the clients read."""

import textwrap
from collections.abc import Iterable

from pydantic import JsonValue
from switchboard.apps.docs.openapi_document import Json, build_openapi_document, get_object, reach_schemas
from switchboard.apps.docs.operations import Operation, list_events
from switchboard.apps.server.app import create_routes

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
    return build_openapi_document(create_routes(), "https://voice.example.com")


def select_schemas(document: Json, names: Iterable[str]) -> Json:
    """Return these schemas and those that they refer to, by name, without constraints."""
    return {name: remove_constraints(schema) for name, schema in reach_schemas(document, names).items()}


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


def select_request_schemas(document: Json, operations: Iterable[Operation]) -> Json:
    """Return the schemas of all bodies, and one for the query parameters of each operation."""
    queries: Json = {
        operation.query_name: {
            "type": "object",
            "description": f"Query parameters of `{operation.resource}.{operation.name}`.",
            "properties": remove_constraints(operation.query, is_named=True),
            "required": list(operation.required_query),
        }
        for operation in operations
        if operation.query
    }
    return select_schemas(document, {operation.body for operation in operations if operation.body}) | queries


def select_response_schemas(document: Json, operations: Iterable[Operation]) -> Json:
    """Return the schemas of all responses and events."""
    results = {operation.result for operation in operations if operation.result}
    return select_schemas(document, results | set(list_events(document).values()))
