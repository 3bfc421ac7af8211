"""The pages of the API reference: one for each tag of the OpenAPI document, the errors, and the events."""

import json
from collections.abc import Iterator
from functools import cached_property

from switchboard.apps.docs.openapi_document import (
    Json,
    get_object,
    get_text,
    list_objects,
    list_references,
    reach_schemas,
)
from switchboard.apps.docs.operations import Operation, list_events, list_operations
from switchboard.apps.docs.samples import build_example_body, write_samples
from switchboard.foundation.web.errors import ApiError
from switchboard.foundation.web.openapi import describe_error


class ApiPages:
    """The OpenAPI document as pages."""

    def __init__(self, document: Json) -> None:
        self.document = document

    @property
    def base_url(self) -> str:
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
        found: dict[str, list[Operation]] = {}
        for operation in list_operations(self.document):
            tags = operation.described["tags"]
            for tag in tags if isinstance(tags, list) else []:
                found.setdefault(str(tag), []).append(operation)
        return found

    def describe_operations(self, tag: str) -> Iterator[tuple[Operation, dict[str, str], str]]:
        """Yield the operations of a page, each with its samples by language, and a body to try."""
        for operation in self.operations[tag]:
            body = build_example_body(self.document, operation)
            text = "" if body is None else json.dumps(body, indent=2, ensure_ascii=False)
            yield operation, write_samples(self.document, operation, self.base_url), text

    def select_schemas(self, tag: str) -> Json:
        """Return the schemas of a page by name."""
        shown = []
        for operation in self.operations[tag]:
            shown += list_references([operation.described.get("requestBody"), operation.answer])
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

    def list_errors(self) -> list[tuple[type[ApiError], str]]:
        """Return the errors of the API with their meaning, by code and status. Those of other packages are pages of the
        dashboard.
        """
        kinds: list[type[ApiError]] = [ApiError, *ApiError.__subclasses__()]
        own = [kind for kind in kinds if kind.__module__ == ApiError.__module__]
        own.sort(key=lambda kind: (kind.code, kind.status))
        return [(kind, describe_error(kind).partition(": ")[2]) for kind in own]
