"""The OpenAPI document of the platform, and functions that read its parts."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pydantic import JsonValue
from quart import Quart

from switchboard.foundation.events.catalog import CATALOG, build_delivery_model
from switchboard.foundation.web.openapi import WebhookEvent, build_document

Json: TypeAlias = dict[str, JsonValue]


def build_openapi_document(app: Quart, base_url: str) -> Json:
    events = [WebhookEvent(name, kind.__doc__ or "", build_delivery_model(kind)) for name, kind in CATALOG.items()]
    document: Json = json.loads(json.dumps(build_document(app, server=base_url, events=events)))
    return document


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


def get_success(operation: Json) -> Json:
    """Return the description of an operation's success; where a request can ask for a part, that of the whole."""
    responses = get_object(operation, "responses")
    return get_object(responses, next(status for status in responses if status.startswith("2")))


def list_references(value: JsonValue) -> list[str]:
    """Return the names of the schemas that a part of the document refers to."""
    return re.findall(r'"#/components/schemas/(\w+)"', json.dumps(value))


def reach_schemas(document: Json, names: Iterable[str]) -> Json:
    """Return these schemas and those that they refer to, by name."""
    schemas, reached, waiting = get_object(document, "components", "schemas"), {}, list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached[name] = schemas[name]
            waiting += list_references(schemas[name])
    return dict(sorted(reached.items()))
