"""Isolation, generated from the OpenAPI document: each place of each operation that takes an id answers an id of
another organization like an unknown id, byte for byte except for the ids, and nothing of the other organization
changes. New operations are covered automatically.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from switchboard.apps.server import app
from switchboard.foundation.web.openapi import Json, build_document

from tests.fixtures.app import ApiResponse, Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.isolation import FREE, populate, read_rows, wait_until_quiet

# Ids that providers assign.
NOT_OURS = {"tts_voice_id"}


@dataclass(frozen=True, slots=True)
class Place:
    """A place of an operation that takes an id: `location` is path, query, or body."""

    method: str
    path: str
    location: str
    name: str
    many: bool
    body: Json | None


def find_places(api: Json) -> Iterator[Place]:
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            body = resolve_schema(api, schema) if schema else None
            example = body.get("examples", [{}])[0] if body else None
            for parameter in operation.get("parameters", []):
                name = parameter["name"]
                if parameter["in"] == "path" or (parameter["in"] == "query" and name.endswith("_id")):
                    yield Place(method.upper(), path, parameter["in"], name, many=False, body=example)
            for name in (body or {}).get("properties", {}):
                if name.endswith(("_id", "_ids")) and name not in NOT_OURS:
                    yield Place(method.upper(), path, "body", name, many=name.endswith("_ids"), body=example)


def resolve_schema(api: Json, schema: Json) -> Json:
    reference = schema.get("$ref")
    return schema if reference is None else api["components"]["schemas"][reference.rsplit("/", 1)[1]]


def find_own_id(field: str, owned: dict[str, list[str]]) -> str:
    """Return an id of the caller's own for a field: `from_number_id` is a `phone_number`'s."""
    noun = field.removesuffix("s").removesuffix("_id").rsplit("_", 1)[-1]
    row_id = next((lines[0] for table, lines in owned.items() if table.endswith(noun) and lines), None)
    return str(json.loads(row_id)["id"]) if row_id else str(uuid4())


async def send(caller: Caller, place: Place, key: str, owned: dict[str, list[str]]) -> ApiResponse:
    """Send the operation with this id in this place, and the caller's own ids elsewhere."""
    path = re.sub(
        r"\{(\w+)\}",
        lambda name: key if place.location == "path" and name[1] == place.name else find_own_id(name[1], owned),
        place.path,
    )
    body = (
        None
        if place.body is None
        else {name: find_own_id(name, owned) if name.endswith("_id") else value for name, value in place.body.items()}
    )
    if place.location == "body":
        body = {**(body or {}), place.name: [key] if place.many else key}
    query = f"?{place.name}={key}" if place.location == "query" else ""
    return await caller.send(place.method, path + query, body)


def normalize_response(response: ApiResponse, key: str) -> tuple[int, str]:
    """Strip the requested id, and everything that differs from request to request, from a response."""
    text = response.body.decode().replace(key, "ID")
    return response.status, re.sub(r'"request_id":\s*"[^"]*"', "", text)


@pytest.mark.timeout(180)
async def test_foreign_ids_are_answered_like_unknown_ids_in_every_operation(
    live: LivePlatform, organizations: Organizations
) -> None:
    victim = await populate(live)
    stranger = await organizations.create(policy=FREE)
    await stranger.post("/v1/agents", {"name": "Own"})
    await stranger.post("/v1/phone-numbers", {"phone_number": fresh_number()})
    application = app.create_routes()
    places = list(find_places(build_document(application, server="http://localhost")))
    assert {place.location for place in places} == {"path", "query", "body"}
    await wait_until_quiet(live.runtime, victim)
    before = await read_rows(live.runtime, victim)
    owned = await read_rows(live.runtime, stranger)
    foreign = {str(json.loads(lines[0])["id"]) for lines in before.values() if lines}
    for place in places:
        unknown = str(uuid4())
        expected = normalize_response(await send(stranger, place, unknown, owned), unknown)
        assert expected[0] < 500
        for key in foreign:
            assert normalize_response(await send(stranger, place, key, owned), key) == expected, (
                f"{place} tells of {key}"
            )
    assert await read_rows(live.runtime, victim) == before
