"""A Redis server that freezes: it accepts connections and answers nothing."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from uuid import UUID

import pytest
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.models import Call
from switchboard.runtime import Runtime

from tests.fixtures.app import fresh_number
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json
from tests.fixtures.processes import start_live_platform

pytestmark = pytest.mark.system

SILENT = "+15550100070"
ANSWER_SECONDS = 5.0
"""A frozen server once held each request for as long as it was frozen."""


@asynccontextmanager
async def frozen_redis(runtime: Runtime) -> AsyncIterator[None]:
    pid = int((await runtime.redis.info("server"))["process_id"])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_calls_and_requests_go_on_while_redis_is_frozen(tmp_path: Path) -> None:
    async with start_live_platform(tmp_path) as (live, _):
        runtime = live.runtime
        call_id = UUID(str((await live.place_call(SILENT))["id"]))

        async def read_call() -> Call:
            async with runtime.database.tenant(live.caller.organization_id) as session:
                return await calls.get_call(session, call_id)

        async def read_lease() -> datetime:
            lease = (await read_call()).watch_at
            assert lease is not None
            return lease

        async def read_readiness() -> Json:
            response = await live.caller.client.get("/readyz")
            assert response.status_code == 200
            return dict(await response.get_json())

        await eventually(read_call, lambda call: call.holder, seconds=60)
        async with frozen_redis(runtime):
            before = await read_lease()
            for _ in range(5):
                async with asyncio.timeout(ANSWER_SECONDS):
                    assert (await live.caller.get(f"/v1/calls/{call_id}")).json["status"] == "in-progress"
                    assert (await live.caller.post("/v1/contacts", {"phone_number": fresh_number()})).status == 201
            assert (await read_readiness())["status"] == "degraded"
            extended = await eventually(read_lease, before.__lt__)
            await eventually(read_lease, extended.__lt__)
            second = await live.place_call("+15550100040")
            assert (await live.wait_for_end(second["id"]))["status"] == "completed"
        await eventually(read_readiness, lambda readiness: readiness["status"] == "ok")
        assert (await read_call()).status == "in-progress"
