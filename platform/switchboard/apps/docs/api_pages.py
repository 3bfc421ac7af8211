"""The pages of the API reference: one for each tag of the OpenAPI document, the errors, and the events."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from switchboard.apps.docs.openapi_document import (
    Json,
    get_object,
    get_success,
    get_text,
    list_objects,
    list_references,
    reach_schemas,
)
from switchboard.apps.docs.operations import Operation, list_events, list_operations
from switchboard.apps.docs.samples import build_request_example, write_samples
from switchboard.foundation.web.errors import ApiError
from switchboard.foundation.web.openapi import describe_error


@dataclass(frozen=True, slots=True)
class DescribedOperation:
    """An operation of a page: its part of the OpenAPI document, its samples by language, and a body to try."""

    operation: Operation
    described: Json
    samples: dict[str, str]
    body: str

    @property
    def parameters(self) -> list[Json]:
        """The ids, the query parameters, and the headers."""
        return list_objects(self.described, "parameters")

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


@dataclass(frozen=True, slots=True)
class DescribedError:
    """An error that the API returns."""

    status: int
    code: str
    title: str
    meaning: str


class ApiPages:
    """The OpenAPI document as pages."""

    def __init__(self, document: Json) -> None:
        self.document = document

    @property
    def base_url(self) -> str:
        """Address of the server."""
        return get_text(list_objects(self.document, "servers")[0], "url")

    @property
    def schemas(self) -> Json:
        """All schemas by name."""
        return get_object(self.document, "components", "schemas")

    @cached_property
    def tags(self) -> dict[str, str]:
        """Descriptions of the tags, in the order of the document."""
        return {get_text(tag, "name"): get_text(tag, "description") for tag in list_objects(self.document, "tags")}

    @cached_property
    def operations(self) -> dict[str, list[Operation]]:
        """The operations of each tag."""
        found: dict[str, list[Operation]] = {}
        for operation in list_operations(self.document):
            tags = self._describe(operation)["tags"]
            for tag in tags if isinstance(tags, list) else []:
                found.setdefault(str(tag), []).append(operation)
        return found

    def describe_operations(self, tag: str) -> list[DescribedOperation]:
        """Return the operations of a page."""
        described = []
        for operation in self.operations[tag]:
            body = build_request_example(self.document, operation).body
            samples = write_samples(self.document, operation, self.base_url)
            text = "" if body is None else json.dumps(body, indent=2, ensure_ascii=False)
            described.append(DescribedOperation(operation, self._describe(operation), samples, text))
        return described

    def select_schemas(self, tag: str) -> Json:
        """Return the schemas of a page by name."""
        shown = []
        for operation in self.operations[tag]:
            described = self._describe(operation)
            shown += list_references([described.get("requestBody"), get_success(described)])
        return reach_schemas(self.document, shown)

    def list_events(self) -> dict[str, tuple[str, str]]:
        """Return the description and the schema of each event's delivery, by the event's name."""
        webhooks = get_object(self.document, "webhooks")
        return {
            name: (get_text(get_object(webhooks, name, "post"), "summary"), schema)
            for name, schema in list_events(self.document).items()
        }

    def select_event_schemas(self) -> Json:
        """Return the schemas of the events' deliveries, with those that they contain, by name."""
        return reach_schemas(self.document, list_events(self.document).values())

    def list_errors(self) -> list[DescribedError]:
        """Return the errors of the API, by code and status. Those of other packages are pages of the dashboard."""
        kinds: list[type[ApiError]] = [ApiError, *ApiError.__subclasses__()]
        errors = [
            DescribedError(kind.status, kind.code, kind.title, describe_error(kind).partition(": ")[2])
            for kind in kinds
            if kind.__module__ == ApiError.__module__
        ]
        return sorted(errors, key=lambda error: (error.code, error.status))

    def _describe(self, operation: Operation) -> Json:
        return get_object(self.document, "paths", operation.path, operation.method.lower())
