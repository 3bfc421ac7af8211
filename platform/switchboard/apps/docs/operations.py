"""Operations of the API, with the names that they have in the clients."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from switchboard.apps.docs.openapi_document import (
    Json,
    get_object,
    get_success,
    get_text,
    list_objects,
    list_references,
)

ResultKind = Literal["model", "page", "list", "bytes", "nothing"]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation. `described` is its part of the document; `result` names the schema of the response, or of its
    items; `query` has those of the parameters.
    """

    described: Json
    resource: str
    name: str
    operation_id: str
    summary: str
    method: str
    path: str
    path_parameters: tuple[str, ...]
    query: Json
    required_query: tuple[str, ...]
    body: str | None
    result_kind: ResultKind
    result: str | None

    @property
    def query_name(self) -> str:
        """Name of the type of the query parameters."""
        return "".join(word.title() for word in self.operation_id.split("_")) + "Query"

    @property
    def answer(self) -> Json:
        """The description of the response of a success."""
        return get_success(self.described)

    @property
    def errors(self) -> Iterator[tuple[str, str]]:
        """The status and the code of each error."""
        for status, response in get_object(self.described, "responses").items():
            if not status.startswith("2"):
                for code in re.findall(r"\(`(\w+)`\)", get_text(get_object(response), "description")):
                    yield status, code


def list_operations(document: Json) -> Iterator[Operation]:
    """Yield the operations in the order of the document."""
    for path, methods in get_object(document, "paths").items():
        for method in get_object(methods):
            description = get_object(methods, method)
            resource = path.split("/")[2].replace("-", "_")
            operation_id = get_text(description, "operationId")
            parameters = list_objects(description, "parameters")
            query = [part for part in parameters if part["in"] == "query"]
            body = list_references(description.get("requestBody"))
            kind, result = _read_result(document, description)
            yield Operation(
                described=description,
                resource=resource,
                name=shorten_name(operation_id, resource),
                operation_id=operation_id,
                summary=get_text(description, "summary"),
                method=method.upper(),
                path=path,
                path_parameters=tuple(re.findall(r"\{(\w+)\}", path)),
                query={get_text(part, "name"): _describe(part) for part in query},
                required_query=tuple(get_text(part, "name") for part in query if part["required"]),
                body=body[0] if body else None,
                result_kind=kind,
                result=result,
            )


def list_events(document: Json) -> dict[str, str]:
    """Return the schema of each event's delivery, by the event's name."""
    return {
        name: list_references(get_object(webhook, "post", "requestBody"))[0]
        for name, webhook in get_object(document, "webhooks").items()
    }


def shorten_name(operation_id: str, resource: str) -> str:
    """Return an operation's name without the resource: `list_calls` of `calls` is `list`."""
    singular = f"{resource[:-3]}y" if resource.endswith("ies") else resource.removesuffix("s")
    return re.sub(rf"_(?:{resource}|{singular})(?=_|$)", "", operation_id, count=1)


def _describe(parameter: Json) -> Json:
    described = {"description": parameter["description"]} if "description" in parameter else {}
    return {**described, **get_object(parameter, "schema")}


def _read_result(document: Json, description: Json) -> tuple[ResultKind, str | None]:
    content = get_object(get_success(description), "content")
    if not content:
        return "nothing", None
    if "application/json" not in content:
        return "bytes", None
    schema = get_object(content, "application/json", "schema")
    (name,) = list_references(schema)
    if schema.get("type") == "array":
        return "list", name
    if name.startswith("Page_"):
        items = get_object(document, "components", "schemas", name, "properties", "items")
        return "page", list_references(items)[0]
    return "model", name
