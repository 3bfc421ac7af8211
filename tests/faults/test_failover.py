"""A standby takes over from PostgreSQL during calls, after longer than a lease: nobody could extend one meanwhile."""

import asyncio
from pathlib import Path

import pytest
from sqlmodel import col
from switchboard.foundation.database import now
from switchboard.foundation.leases import BEAT_SECONDS, SILENT_SECONDS
from switchboard.resources.calls.models import Call

from tests.fixtures.calls import add_call
from tests.fixtures.eventually import eventually
from tests.fixtures.failover import ReplicatedServers
from tests.fixtures.leases import add_dead_process
from tests.fixtures.processes import SCALE, start_live_platform

pytestmark = pytest.mark.system
CALLS = 3 * SCALE
SILENT = "+15550100070"


async def test_a_failover_ends_no_call(tmp_path: Path) -> None:
    """The worker is led to the standby before it is promoted, and the server only after a worker has judged."""
    servers = ReplicatedServers(tmp_path)
    environment = {"SWITCHBOARD_DATABASE_URL": servers.build_url("worker")}
    async with start_live_platform(tmp_path, servers=servers, worker_environment=environment) as (live, _):
        patient = {"end_call_silence_seconds": 600}
        assert (await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", patient)).status == 200
        placed = [(await live.place_call(SILENT))["id"] for _ in range(CALLS)]

        async def look() -> list[object]:
            return [(await live.caller.get(f"/v1/calls/{call_id}")).json["status"] for call_id in placed]

        async def count_held() -> int:
            """Count the calls whose audio the server has: the carrier reports an answer before."""
            async with live.runtime.database.write(live.caller.organization_id) as session:
                return await session.count(session.select(Call).where(col(Call.holder).is_not(None)))

        await eventually(look, lambda found: found == ["in-progress"] * CALLS)
        await eventually(count_held, lambda count: count == CALLS)
        await servers.kill_primary()
        servers.move("worker")
        await asyncio.sleep(1.5 * SILENT_SECONDS)  # every lease lapses, and the worker sees no other
        await servers.promote()
        await asyncio.sleep(BEAT_SECONDS)  # a worker that judges leases by their age ends every call now
        servers.move("server")
        fields = {"holder": await add_dead_process(live.runtime.database), "started_at": now()}
        orphan = await add_call(live.runtime, live.caller, now(), status="in-progress", **fields)
        await live.wait_for_end(orphan.id)  # by then each call would have been ended, too
        assert await look() == ["in-progress"] * CALLS
