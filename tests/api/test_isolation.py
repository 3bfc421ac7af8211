"""Isolation, generated from the OpenAPI document: each place of each operation that takes an id answers an id of
another organization like an unknown id, byte for byte except for the ids, and nothing of the other organization
changes. New operations are covered automatically.
"""

import json
import re
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError
from switchboard.apps.server import app
from switchboard.foundation.web.openapi import build_document
from switchboard.runtime import Runtime

from tests.fixtures.app import ApiResponse, Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.isolation import FREE, populate, read_rows, wait_until_quiet
from tests.fixtures.openapi_places import Place, find_places


async def send(caller: Caller, place: Place, key: str, owned: dict[str, str]) -> ApiResponse:
    """Send the operation with this id in this place, and the caller's own ids elsewhere."""
    path, body = place.fill(key, lambda field: [*find_ids(owned, field), str(uuid4())][0])
    return await caller.send(place.operation.method, path, body)


def list_ids(rows: dict[str, list[str]]) -> dict[str, str]:
    """Return the id of the first row of each table that has rows with ids."""
    first = {table: json.loads(lines[0]) for table, lines in rows.items() if lines}
    return {table: str(row["id"]) for table, row in first.items() if "id" in row}


def find_ids(ids: dict[str, str], field: str) -> list[str]:
    """Return the ids that a field may take: `from_number_id` is a `phone_number`'s."""
    noun = field.removesuffix("s").removesuffix("_id").rsplit("_", 1)[-1]
    return [row_id for table, row_id in ids.items() if table.endswith(noun)]


def normalize_response(response: ApiResponse, key: str) -> tuple[int, str]:
    """Strip the requested id, and everything that differs from request to request, from a response."""
    text = response.body.decode().replace(key, "ID")
    return response.status, re.sub(r'"request_id":\s*"[^"]*"', "", text)


@pytest.mark.parametrize("every_table", [False, pytest.param(True, marks=pytest.mark.system)])
async def test_foreign_ids_are_answered_like_unknown_ids_in_every_operation(
    every_table: bool, live: LivePlatform, organizations: Organizations
) -> None:
    """In the short form, a place gets ids of its own kind, and ids of every table if no table is named like it."""
    victim = await populate(live)
    stranger = await organizations.create(policy=FREE)
    await stranger.post("/v1/agents", {"name": "Own"})
    await stranger.post("/v1/phone-numbers", {"phone_number": fresh_number()})
    application = app.create_routes()
    places = list(find_places(build_document(application, server="http://localhost")))
    assert {place.location for place in places} == {"path", "query", "body"}
    await wait_until_quiet(live.runtime, victim)
    before = await read_rows(live.runtime, victim)
    owned, foreign = list_ids(await read_rows(live.runtime, stranger)), list_ids(before)
    for place in places:
        unknown = str(uuid4())
        expected = normalize_response(await send(stranger, place, unknown, owned), unknown)
        assert expected[0] < 500
        own_kind = [] if every_table else find_ids(foreign, place.name)
        for key in own_kind or foreign.values():
            assert normalize_response(await send(stranger, place, key, owned), key) == expected, (
                f"{place} tells of {key}"
            )
    assert await touch_rows(live.runtime, stranger, before) == {}
    assert await read_rows(live.runtime, victim) == before


async def touch_rows(runtime: Runtime, stranger: Caller, rows: dict[str, list[str]]) -> dict[str, int]:
    """Read, count, lock, change, and delete rows by their ids in transactions of another organization; return the
    statements that found any.
    """
    found: dict[str, int] = {}
    for table, lines in ((table, lines) for table, lines in rows.items() if lines):
        values = [json.loads(line) for line in lines]
        key = "id" if "id" in values[0] else "call_id"
        is_theirs = f"{key} in ({', '.join(repr(row[key]) for row in values)})"
        theirs = f"{table} where {is_theirs}"
        for statement in (
            f"select * from {theirs}",  # noqa: S608
            f"select 1 from (select count(*) as n from {theirs}) as counted where n > 0",  # noqa: S608
            f"select * from {theirs} for update",  # noqa: S608
            f"update {table} set organization_id = organization_id where {is_theirs}",  # noqa: S608
            f"delete from {theirs}",  # noqa: S608
        ):
            try:
                async with runtime.database.write(stranger.organization_id) as session:
                    result = await (await session.connection()).execute(text(statement))
                    if result.rowcount:
                        found[statement] = result.rowcount
            except ProgrammingError as error:
                if "permission denied" not in str(error):  # the role lacks some rights on some tables
                    raise
    return found
