"""The OpenAPI 3.1 document, generated from the declarations of the endpoints."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from quart import Quart
from werkzeug.routing import Rule

from switchboard.foundation.web.endpoint import JSON, ApiBlueprint, Endpoint
from switchboard.foundation.web.errors import (
    ApiError,
    IdempotencyInFlight,
    IdempotencyMismatch,
    InsufficientScope,
    InvalidCredentials,
    NotFound,
    OrganizationMoving,
    OrganizationSuspended,
    PayloadTooLarge,
    Problem,
    RangeNotSatisfiable,
    RateLimited,
    UnsupportedMediaType,
    ValidationFailed,
)
from switchboard.foundation.web.principal import SCOPES
from switchboard.foundation.web.schemas import Page

Json: TypeAlias = dict[str, Any]
VERSION = version("switchboard-voice")
AUTHORIZE, TOKEN, REVOKE = "/oauth/authorize", "/api/oauth/token", "/api/oauth/revoke"
REFERENCE = "#/components/schemas/{model}"
PATH_NOUNS = {
    "doc_id": "document",
    "entry_id": "do-not-call entry",
    "kb_id": "knowledge base",
    "number_id": "phone number",
}
"""Nouns of the ids in paths, where the path has another word."""


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """An event of the document's `webhooks` section."""

    name: str
    description: str
    body: type[BaseModel]


def iterate_endpoints(app: Quart) -> Iterator[tuple[Rule, str, Endpoint]]:
    """Yield each rule of the application with its method and its endpoint, ordered by path."""
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: (rule.rule, sorted(rule.methods or ()))):
        declared = getattr(app.view_functions[rule.endpoint], "endpoint", None)
        if isinstance(declared, Endpoint):
            for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
                yield rule, method.lower(), declared


def build_document(app: Quart, *, server: str, events: Sequence[WebhookEvent] = ()) -> Json:
    """Generate the document."""
    schemas = _Schemas(app, events)
    paths: dict[str, Json] = {}
    for rule, method, declared in iterate_endpoints(app):
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        paths.setdefault(path, {})[method] = _operation(rule, method, declared, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Switchboard",
            "version": VERSION,
            "description": "Voice agents that place and take phone calls and exchange text messages.",
        },
        "servers": [{"url": server}],
        "security": [{"bearer": []}],
        "tags": [
            {"name": name, "description": text}
            for blueprint in app.blueprints.values()
            if isinstance(blueprint, ApiBlueprint)
            for name, text in blueprint.tags.items()
        ],
        "paths": paths,
        "webhooks": {event.name: _webhook(event, schemas) for event in events},
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key (`svc_live_…`) or an OAuth access token (`svca_…`).",
                },
                "oauth2": {
                    "type": "oauth2",
                    "description": "For applications that act for a user.",
                    "flows": {
                        "authorizationCode": {
                            "authorizationUrl": server + AUTHORIZE,
                            "tokenUrl": server + TOKEN,
                            "refreshUrl": server + TOKEN,
                            "scopes": SCOPES,
                        }
                    },
                },
            },
            "schemas": schemas.definitions,
        },
    }


class _Schemas:
    """The JSON schemas of all request and response bodies, each named once."""

    def __init__(self, app: Quart, events: Sequence[WebhookEvent]) -> None:
        shapes: list[tuple[Any, JsonSchemaMode]] = [(Problem, "serialization")]
        for _, _, declared in iterate_endpoints(app):
            shapes += [(declared.pipeline.data, "validation"), (declared.answer, "serialization")]
        shapes += [(event.body, "serialization") for event in events]
        wanted = {(id(shape), mode): TypeAdapter(shape) for shape, mode in shapes if shape is not None}
        self._found, definitions = TypeAdapter.json_schemas(
            [(key, mode, adapter) for (key, mode), adapter in wanted.items()],
            by_alias=True,
            ref_template=REFERENCE,
        )
        self.definitions: Json = dict(sorted(definitions["$defs"].items()))
        for _, _, declared in iterate_endpoints(app):
            for name in declared.read_only_fields:
                answer = self.get_schema(declared.answer, "serialization")["$ref"].rsplit("/", 1)[1]
                self.definitions[answer]["properties"][name]["readOnly"] = True
            self._describe_answer(declared)
        for name, definition in self.definitions.items():
            if name.startswith("Page_"):  # a parametrized model has no docstring
                definition["description"] = inspect.getdoc(Page)
        self.definitions["JsonValue"]["description"] = "Any JSON value."

    def _describe_answer(self, declared: Endpoint) -> None:
        """Give the fields of a response that the request sets the descriptions of the request."""
        if declared.pipeline.data is None or declared.answer is None:
            return
        body, answer = (
            self._fields(declared.pipeline.data, "validation"),
            self._fields(declared.answer, "serialization"),
        )
        for name in body.keys() & answer.keys():
            if "description" in body[name]:
                answer[name].setdefault("description", body[name]["description"])

    def _fields(self, shape: object, mode: JsonSchemaMode) -> Json:
        """Return the properties of a model; none for a list."""
        name = self.get_schema(shape, mode).get("$ref", "").rsplit("/", 1)[-1]
        return dict(self.definitions.get(name, {}).get("properties", {}))

    def get_schema(self, shape: object, mode: JsonSchemaMode) -> Json:
        """Return the schema of a shape; a reference if it is a model."""
        return dict(self._found[(id(shape), mode)])


def _operation(rule: Rule, method: str, declared: Endpoint, schemas: _Schemas) -> Json:
    noun = rule.rule.split("/")[2]
    operation: Json = {
        "operationId": declared.name,
        "summary": declared.summary,
        "tags": [noun],
        "parameters": _parameters(rule, method, declared),
        "responses": _responses(rule, declared, schemas),
        "security": [{"bearer": []}, {"oauth2": [declared.scope]}],
    }
    scope = f"Scope: `{declared.scope}` ({SCOPES[declared.scope]})."
    ignored = "Read-only fields of the response are ignored." if declared.read_only_fields else ""
    operation["description"] = "\n\n".join(part for part in (declared.description, ignored, scope) if part)
    if declared.pipeline.data is not None:
        schema = schemas.get_schema(declared.pipeline.data, "validation")
        operation["requestBody"] = {
            "description": schemas.definitions[schema["$ref"].rsplit("/", 1)[1]]["description"],
            "required": any(field.is_required() for field in declared.pipeline.data.model_fields.values()),
            "content": {JSON: {"schema": schema}},
        }
    return {key: value for key, value in operation.items() if value}


def _parameters(rule: Rule, method: str, declared: Endpoint) -> list[Json]:
    parameters = [
        _parameter(
            name,
            "path",
            f"Id of the {PATH_NOUNS.get(name, name.removesuffix('_id'))}.",
            {"type": "string", "format": "uuid"},
            required=True,
        )
        for name in sorted(rule.arguments)
    ]
    if declared.pipeline.query is not None:
        schema = declared.pipeline.query.model_json_schema()
        for name, part in schema["properties"].items():
            described = {key: value for key, value in part.items() if key != "title"}
            text = described.pop("description", "")
            parameters.append(_parameter(name, "query", text, described, required=name in schema.get("required", [])))
    if method == "post":
        text = "The first response is kept for 24 hours and returned again to a repeated request."
        lengths = {"type": "string", "minLength": 1, "maxLength": 255}
        parameters.append(_parameter("Idempotency-Key", "header", text, lengths, required=False))
    return parameters


def _parameter(name: str, place: str, description: str, schema: Json, *, required: bool) -> Json:
    return {"name": name, "in": place, "required": required, "description": description, "schema": schema}


def _responses(rule: Rule, declared: Endpoint, schemas: _Schemas) -> Json:
    request_id = {"description": "Name it when you ask for help.", "schema": {"type": "string"}}
    success: Json = {"description": declared.summary, "headers": {"X-Request-Id": request_id}}
    if declared.answer is not None:
        success["content"] = {JSON: {"schema": schemas.get_schema(declared.answer, "serialization")}}
    elif JSON not in declared.media_types:
        binary = {"schema": {"type": "string", "format": "binary"}}
        success["content"] = dict.fromkeys(declared.media_types, binary)
    responses: Json = {str(declared.status): success}
    if RangeNotSatisfiable in declared.errors:
        responses["206"] = success | {"description": "The part that `Range` asked for."}
        responses["304"] = {"description": "Unchanged since the response whose `ETag` is in `If-None-Match`."}
    for error in _errors(rule, declared):
        problem = {"application/problem+json": {"schema": schemas.get_schema(Problem, "serialization")}}
        entry = responses.setdefault(str(error.status), {"description": "", "content": problem})
        entry["description"] = "; ".join(filter(None, [entry["description"], describe_error(error)]))
    return dict(sorted(responses.items()))


def describe_error(error: type[ApiError]) -> str:
    """Return an error's title, code, and meaning: the first sentence of its docstring, after the status."""
    meaning = " ".join((inspect.getdoc(error) or "").split()).partition(": ")[2] or error.default_detail
    return f"{error.title} (`{error.code}`): {re.split(r'[.;] ', meaning)[0].rstrip('.')}"


def _errors(rule: Rule, declared: Endpoint) -> list[type[ApiError]]:
    common: list[type[ApiError]] = [
        InvalidCredentials,
        InsufficientScope,
        OrganizationSuspended,
        RateLimited,
        ValidationFailed,
    ]
    if rule.arguments:
        common.append(NotFound)
    if "GET" not in (rule.methods or ()) and not declared.scope.endswith(":read"):
        common.append(OrganizationMoving)
    if declared.pipeline.data is not None:
        common += [PayloadTooLarge, UnsupportedMediaType]
    if "POST" in (rule.methods or ()):
        common += [IdempotencyInFlight, IdempotencyMismatch]
    return [*common, *(error for error in declared.errors if error not in common)]


def _webhook(event: WebhookEvent, schemas: _Schemas) -> Mapping[str, Json]:
    return {
        "post": {
            "operationId": f"on_{event.name.replace('.', '_')}",
            "summary": event.description,
            "requestBody": {
                "description": event.description,
                "required": True,
                "content": {"application/json": {"schema": schemas.get_schema(event.body, "serialization")}},
            },
            "responses": {"2XX": {"description": "The delivery was received."}},
        }
    }
