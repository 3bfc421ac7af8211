"""A standby takes over from PostgreSQL during calls, after longer than a lease: nobody could extend one meanwhile."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from sqlalchemy.exc import SQLAlchemyError
from switchboard.foundation.database import now
from switchboard.resources.calls.live.heartbeat import LEASE
from switchboard.resources.calls.models import Call

from tests.fixtures.calls import add_call
from tests.fixtures.eventually import eventually
from tests.fixtures.processes import SCALE, Servers, start_live_platform
from tests.fixtures.replicas import Replica, start_primary_and_replica

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]
CALLS = 3 * SCALE
SILENT = "+15550100070"


class ReplicatedServers(Servers):
    """PostgreSQL with a standby, at one address for clients, and Redis."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
        self.standby: Replica | None = None
        self._running = AsyncExitStack()

    @property
    def database_url(self) -> str:
        assert self.standby is not None
        places = f"{self.directory.sockets},{self.standby.sockets}"
        return f"postgresql://switchboard@/switchboard?host={places}&port=5432,5432&target_session_attrs=primary"

    async def start(self) -> None:
        self.directory, self.standby = await self._running.enter_async_context(start_primary_and_replica(self.folder))
        self.redis_url = self.directory.redis_url

    async def kill_primary(self) -> None:
        os.kill(int((self.directory.path / "postgres" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)

    async def stop(self) -> None:
        await self._running.aclose()


async def test_a_failover_ends_no_call(tmp_path: Path) -> None:
    servers = ReplicatedServers(tmp_path)
    async with start_live_platform(tmp_path, servers=servers) as (live, _):
        assert servers.standby is not None
        patient = {"end_call_silence_seconds": 600}
        assert (await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", patient)).status == 200
        placed = [(await live.place_call(SILENT))["id"] for _ in range(CALLS)]

        async def look() -> list[object]:
            return [(await live.caller.get(f"/v1/calls/{call_id}")).json["status"] for call_id in placed]

        await eventually(look, lambda found: found == ["in-progress"] * CALLS, seconds=60)
        await servers.kill_primary()
        await asyncio.sleep(LEASE.total_seconds() + 2)  # every lease lapses
        await servers.standby.execute("select pg_promote()")

        async def add_orphan() -> Call | None:
            fields = {"holder": "dead", "started_at": now(), "watch_at": now() - LEASE}
            with suppress(SQLAlchemyError, OSError):  # it is not promoted yet
                return await add_call(live.runtime, live.caller, now(), status="in-progress", **fields)
            return None

        orphan = await eventually(add_orphan)
        assert orphan is not None
        await live.wait_for_end(orphan.id)  # by then each call would have been ended, too
        assert await look() == ["in-progress"] * CALLS
