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
from switchboard.foundation.leases import ProcessLease
from switchboard.foundation.web.paging import get_row
from switchboard.resources.calls.models import Call
from switchboard.runtime import Runtime

from tests.fixtures.app import LivePlatform, fresh_number
from tests.fixtures.automations import create_automation, list_runs
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at
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


async def check_that_work_goes_on(live: LivePlatform) -> None:
    """Have the worker do each kind of work that a wake-up begins."""
    automation = await create_automation(live.caller)
    await live.receive_text("Is there bread left?")
    number, agent = {"from_number_id": live.number_id}, f"/v1/agents/{live.agent_id}"
    said = {"type": "said", "text": "bakery"}
    campaign = {"name": "Bread", "agent_id": live.agent_id, "phone_number_id": live.number_id}
    begun = [
        await live.caller.post("/v1/sms", {"to_number": "+15550100002", "body": "Bread!", **number}),
        await live.caller.post(f"{agent}/simulations", {"name": "Greets", "lines": ["Hello"], "assertions": [said]}),
        await live.caller.post("/v1/campaigns", {**campaign, "contacts": [{"phone_number": "+15550100020"}]}),
    ]
    assert [response.status for response in begun] == [201, 201, 201], [response.body for response in begun]
    conversation, started = begun[0].json["conversation_id"], begun[2].json["id"]
    assert (await live.caller.post(f"/v1/campaigns/{started}/start")).status == 200

    async def look() -> dict[str, object]:
        messages = await live.caller.get(f"/v1/sms/conversations/{conversation}/messages")
        return {
            "text": at(messages.json, "items", 0, "status"),
            "simulation": at((await live.caller.get(f"{agent}/simulations")).json, "items", 0, "status"),
            "campaign": (await live.caller.get(f"/v1/campaigns/{started}")).json["status"],
            "automation": [run["status"] for run in await list_runs(live.caller, automation)],
        }

    done = {"text": "delivered", "simulation": "passed", "campaign": "completed", "automation": ["completed"]}
    await eventually(look, done.__eq__)


async def test_calls_and_requests_go_on_while_redis_is_frozen(tmp_path: Path) -> None:
    async with start_live_platform(tmp_path) as (live, _):
        runtime = live.runtime
        patient = {"end_call_silence_seconds": 600}
        assert (await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", patient)).status == 200
        call_id = UUID(str((await live.place_call(SILENT))["id"]))

        async def read_call() -> Call:
            async with runtime.database.write(live.caller.organization_id) as session:
                return await get_row(session, Call, call_id)

        async def read_lease() -> datetime:
            async with runtime.database.system() as session:
                lease = await session.get_one(ProcessLease, runtime.lease.node)
                return lease.beat_at

        async def read_readiness() -> Json:
            response = await live.caller.client.get("/readyz")
            assert response.status_code == 200
            return dict(await response.get_json())

        await eventually(read_call, lambda call: call.holder)
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
            await check_that_work_goes_on(live)
        await eventually(read_readiness, lambda readiness: readiness["status"] == "ok")
        assert (await read_call()).status == "in-progress"
