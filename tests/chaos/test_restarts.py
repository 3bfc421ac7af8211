"""A rolling restart: every process is stopped in turn while people talk, and nobody notices.

`make chaos` runs it with fifty callers and twenty rounds, CI with four callers and one round.
"""

import asyncio
import os
from pathlib import Path

import aiohttp
import pytest

from tests.chaos import invariants
from tests.chaos.scenario import start_traffic
from tests.chaos.traffic import Traffic
from tests.fixtures.receiver import Receiver

CALLERS = int(os.environ.get("CHAOS_CALLERS", "4"))
ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "1"))
CALL_SECONDS = (3.0, 12.0)


@pytest.mark.system
@pytest.mark.timeout(300 + 120 * ROUNDS)
async def test_a_rolling_restart_ends_no_call_and_fails_no_request(tmp_path: Path, receiver: Receiver) -> None:
    async with start_traffic(tmp_path, receiver) as (cluster, traffic):
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CALLERS):
                tasks.create_task(traffic.keep_calling(CALL_SECONDS, tmp_path))
            tasks.create_task(traffic.keep_writing(0.05))
            for _ in range(ROUNDS):
                for member in cluster.members:
                    await cluster.restart(member)
            traffic.stop.set()
        # First what says why: it stands in the report if anything below fails.
        assert traffic.outcome.failures == []
        assert traffic.outcome.refused == {}
        calls = await invariants.read_calls(traffic)
        assert len(calls) == len(traffic.outcome.carrier_calls) >= CALLERS
        assert {(call.status, call.ended_reason) for call in calls.values()} == {("completed", "caller_hung_up")}
        assert {status for member in cluster.members for status in member.statuses} == {0}
        await invariants.check_costs(traffic)
        await invariants.check_contacts(traffic)
        await invariants.check_deliveries(traffic, receiver, calls)
        await check_recordings(traffic, [f"http://127.0.0.1:{member.port}" for member in cluster.serving])


async def check_recordings(traffic: Traffic, urls: list[str]) -> None:
    """Check that each server returns each recording."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {traffic.api_key}"}) as http:
        for call in (await invariants.read_calls(traffic)).values():
            for url in urls:
                async with http.get(f"{url}/v1/calls/{call.id}/recording") as response:
                    assert response.status == 200, url
                    assert len(await response.read()) > 44
