"""Rules of the OpenAPI document, from which others generate clients."""

import re
from collections.abc import Iterator

import pytest
from switchboard.apps.docs.openapi_document import build_openapi_document
from switchboard.apps.server.app import create_routes
from switchboard.foundation.web.openapi import Json

from tests.fixtures.openapi_places import NOT_OURS, resolve_schema

TIMESTAMP = re.compile(r".*_at|timestamp|since|until")
ID = re.compile(r"id|.*_ids?")
CLOSED = re.compile(r"(.*_)?(status|direction|sentiment|kind|mode|author|role|platform|operator|outcome|source|action)")
OPEN = {
    "OverviewOut.sentiment": "counts by sentiment",
    "Problem.request_id": "the caller's own text",
    "Problem.status": "an HTTP status code",
    "ContactCreate.role": "free text",
    "ContactUpdate.role": "free text",
    "ContactOut.role": "free text",
}
"""Fields that the patterns match, and that are something else."""


@pytest.fixture(scope="module")
def document() -> Json:
    return build_openapi_document(create_routes(), "https://voice.example.com")


def list_fields(document: Json, pattern: re.Pattern[str]) -> dict[str, Json]:
    """Return the fields of all bodies and responses whose names match, by `Schema.field`."""
    fields = {
        f"{model}.{name}": schema
        for model, definition in document["components"]["schemas"].items()
        for name, schema in definition.get("properties", {}).items()
        if pattern.fullmatch(name) and name not in NOT_OURS
    }
    assert fields
    return {place: schema for place, schema in fields.items() if place not in OPEN}


def iterate_values(document: Json, schema: Json) -> Iterator[Json]:
    """Yield the schema of each kind of value of a field, of items if it is a list, without null."""
    schema = resolve_schema(document, schema)
    for part in schema.get("anyOf", []):
        yield from iterate_values(document, part)
    if "items" in schema:
        yield from iterate_values(document, schema["items"])
    elif "anyOf" not in schema and schema.get("type") != "null":
        yield schema


@pytest.mark.parametrize(("pattern", "format_name"), [(TIMESTAMP, "date-time"), (ID, "uuid")])
def test_every_timestamp_and_id_has_its_format(document: Json, pattern: re.Pattern[str], format_name: str) -> None:
    faulty = [
        place
        for place, schema in list_fields(document, pattern).items()
        if any(value.get("format") != format_name for value in iterate_values(document, schema))
    ]
    assert not faulty, "Moment, GivenMoment, UUID, and ReferenceId have the formats"


def test_every_id_in_a_path_has_its_format(document: Json) -> None:
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    ids = [part for operation in operations for part in operation.get("parameters", []) if part["in"] == "path"]
    assert ids
    assert {part["schema"]["format"] for part in ids} == {"uuid"}


def test_every_closed_set_of_values_is_listed(document: Json) -> None:
    faulty = [
        place
        for place, schema in list_fields(document, CLOSED).items()
        if not all({"enum", "const"} & value.keys() for value in iterate_values(document, schema))
    ]
    assert not faulty, "a Literal lists the values"


def test_fields_that_an_update_ignores_are_read_only(document: Json) -> None:
    schemas = document["components"]["schemas"]
    agent = {name for name, schema in schemas["AgentOut"]["properties"].items() if schema.get("readOnly")}
    assert agent == {"id", "agent_type", "version", "created_at", "updated_at"}
    assert "Read-only fields" in document["paths"]["/v1/agents/{agent_id}"]["put"]["description"]
    assert not any(
        schema.get("readOnly")
        for name, definition in schemas.items()
        if name.endswith(("Create", "Update"))
        for schema in definition["properties"].values()
    )


def test_every_field_and_parameter_is_described(document: Json) -> None:
    fields = {
        f"{model}.{name}": part
        for model, schema in document["components"]["schemas"].items()
        for name, part in schema.get("properties", {}).items()
    }
    parameters = {
        f"{method} {path} {part['name']}": part
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        for part in operation.get("parameters", [])
    }
    faulty = [place for place, part in (fields | parameters).items() if not part.get("description")]
    assert not faulty, "add a description, with its unit"


def test_every_schema_body_header_and_tag_is_described(document: Json) -> None:
    assert [name for name, schema in document["components"]["schemas"].items() if not schema.get("description")] == []
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    bodies = [operation["requestBody"] for operation in operations if "requestBody" in operation]
    answers = [answer for operation in operations for answer in operation["responses"].values()]
    headers = [header for answer in answers for header in answer.get("headers", {}).values()]
    assert bodies
    assert headers
    for part in (*operations, *bodies, *answers, *headers, *document["tags"]):
        assert part.get("description"), part
    assert {tag["name"] for tag in document["tags"]} == {tag for operation in operations for tag in operation["tags"]}


def test_every_error_of_an_operation_has_its_code_and_its_meaning(document: Json) -> None:
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                for part in answer["description"].split("; ") if status >= "400" else ():
                    assert re.fullmatch(r"[\w ]+ \(`\w+`\): .{10,}", part), part


def test_every_body_has_an_example(document: Json) -> None:
    schemas = document["components"]["schemas"]
    for methods in document["paths"].values():
        for operation in methods.values():
            if "requestBody" in operation:
                name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                assert schemas[name].get("examples"), f"{name}: the samples of the reference show its example"


def test_a_field_of_a_response_has_the_description_of_the_request(document: Json) -> None:
    schemas = document["components"]["schemas"]
    for name in ("llm_model", "greeting_message", "turn_detection"):
        described = {schemas[model]["properties"][name]["description"] for model in ("AgentOut", "AgentCreate")}
        assert len(described) == 1
