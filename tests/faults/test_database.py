"""An outage of the database while calls begin and end."""

import asyncio
from itertools import cycle
from pathlib import Path

import pytest

from tests.fixtures.app import Client
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json
from tests.fixtures.monitors import connect_telephone
from tests.fixtures.processes import start_live_platform

pytestmark = pytest.mark.system

AWAY_SECONDS = 12.0


async def test_a_call_that_ends_while_the_database_is_away_keeps_its_result(tmp_path: Path) -> None:
    async with start_live_platform(tmp_path) as (live, servers):
        async with connect_telephone(live) as caller:

            async def read_lines() -> object:
                return (await live.caller.get(f"/v1/calls/{caller.call_id}/transcript")).json["items"]

            await eventually(read_lines)  # nothing is left to be written but the call's end
            await servers.cut_postgres()
        statuses: set[int] = set()
        asking = asyncio.create_task(_collect_statuses(live.caller.client, live.caller.key, statuses))
        try:
            await asyncio.sleep(AWAY_SECONDS)
            await servers.start_postgres()

            async def look() -> Json:
                response = await live.caller.get(f"/v1/calls/{caller.call_id}")
                return response.json if response.status == 200 else {"ended_at": None}

            async def list_statuses() -> set[int]:
                return set(statuses)

            call = await eventually(look, lambda found: found["ended_at"] is not None)
            await eventually(list_statuses, lambda seen: 200 in seen)
        finally:
            asking.cancel()
        assert (call["status"], call["ended_reason"], call["error_message"]) == ("completed", "caller_hung_up", None)
        assert "bakery" in str(await read_lines())
        assert statuses == {200, 503}


async def _collect_statuses(client: Client, key: str, statuses: set[int]) -> None:
    """Ask for calls and contacts again and again, also while PostgreSQL starts up.

    Calls are read in a transaction, and contacts in a statement of their own.
    """
    for path in cycle(("/v1/calls", "/v1/contacts")):
        response = await client.get(path, headers={"Authorization": f"Bearer {key}"})
        statuses.add(response.status_code)
        await asyncio.sleep(0.02)
