"""Calls beyond what the servers can hold: carriers get 503, and outbound calls wait."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import cast
from uuid import uuid4

import pytest
from quart.typing import TestClientProtocol as Client
from switchboard.engine.conversation.engine import CallCapacity, CallEngine
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import Unavailable
from switchboard.plugin_sdk import ConnectMedia, IncomingCall, Instruction
from switchboard.resources.calls.allowance import CallAdmission
from switchboard.resources.calls.inbound import InboundCallRouter
from switchboard.runtime import Runtime

from tests.fixtures.app import SAME_MACHINE, LivePlatform
from tests.fixtures.campaigns import create_campaign, get_agent_and_number, send_action
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json
from tests.fixtures.monitors import connect_telephone

LATE, IN_TIME = 0.03, 0.001
WINDOW = 500


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"call_capacity": 1})


async def read_metric(client: Client, series: str) -> float:
    text = await (await client.get("/metrics", scope_base=SAME_MACHINE)).get_data(as_text=True)
    return float(next(line.split()[-1] for line in text.splitlines() if line.startswith(f"{series} ")))


async def read_readiness(live: LivePlatform) -> tuple[int, Json]:
    response = await live.caller.client.get("/readyz")
    return response.status_code, await response.get_json()


async def announce_call(live: LivePlatform) -> Instruction:
    incoming = IncomingCall(f"lb-9-{uuid4().hex}", "+15550100002", live.number)
    router = live.runtime.call(InboundCallRouter)
    return await router.answer_inbound_call(live.caller.organization_id, "loopback", incoming)


async def count_calls(live: LivePlatform) -> int:
    total = (await live.caller.get("/v1/calls")).json["total"]
    assert isinstance(total, int)
    return total


@asynccontextmanager
async def run_other_server(runtime: Runtime, most_calls: int) -> AsyncIterator[None]:
    """Report another server with so much capacity."""
    admission = CallAdmission("other", runtime.redis, CallEngine(most_calls=most_calls))
    reporting = asyncio.create_task(admission.run_reports())
    try:
        yield
    finally:
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)


async def wait_until_known(live: LivePlatform, *, servers: int = 1) -> None:
    """Wait until the capacity of so many servers is known; without any, every call is admitted."""

    async def list_servers() -> int:
        return len(await cast("Awaitable[list[bytes]]", live.runtime.redis.hkeys("{switchboard}:call_capacity")))

    await eventually(list_servers, lambda found: found == servers)


async def test_a_full_server_answers_503_and_stays_ready(live: LivePlatform) -> None:
    await wait_until_known(live)
    async with connect_telephone(live):
        with pytest.raises(Unavailable) as refused:
            await announce_call(live)
        assert refused.value.headers == {"Retry-After": "5"}
        assert await count_calls(live) == 1, "another server or the carrier's fallback takes the call"
        status, body = await read_readiness(live)
        assert (status, body["status"], body["calls"]) == (200, "ok", "full")
        client = live.caller.client
        await eventually(
            lambda: read_metric(client, "switchboard_call_utilization"), lambda utilization: utilization == 1
        )
        assert await read_metric(client, "switchboard_call_capacity") == 1
        assert await read_metric(client, 'switchboard_calls_not_admitted_total{direction="inbound"}') >= 1
        async with run_other_server(live.runtime, most_calls=1):
            await wait_until_known(live, servers=2)
            assert isinstance(await announce_call(live), ConnectMedia)
            with pytest.raises(Unavailable):
                await announce_call(live)


async def test_a_carrier_that_asks_again_gets_through_once_there_is_capacity(live: LivePlatform) -> None:
    await wait_until_known(live)
    refused = 'switchboard_calls_not_admitted_total{direction="inbound"}'
    before = await read_metric(live.caller.client, refused)
    async with connect_telephone(live) as caller:
        waiting = asyncio.create_task(live.simulate_call("Goodbye"))
        await eventually(lambda: read_metric(live.caller.client, refused), lambda count: count > before)
        await caller.hang_up()
    assert (await waiting).answered


async def test_outbound_calls_wait_for_capacity(live: LivePlatform) -> None:
    await wait_until_known(live)
    waits = 'switchboard_calls_not_admitted_total{direction="outbound"}'
    before = await read_metric(live.caller.client, waits)
    async with connect_telephone(live):
        call = await live.place_call("+15550100040")
        await eventually(lambda: read_metric(live.caller.client, waits), lambda count: count > before)
        assert (await live.caller.get(f"/v1/calls/{call['id']}")).json["status"] == "queued"
    assert (await live.wait_for_end(call["id"]))["status"] == "completed"


async def test_a_campaign_waits_for_capacity(live: LivePlatform) -> None:
    await wait_until_known(live)
    body = get_agent_and_number(live)
    async with connect_telephone(live):
        campaign = await create_campaign(live.caller, body, ["+15550100040", "+15550100041"])
        await send_action(live.caller, campaign, "start")
        await asyncio.sleep(1.5)  # more than a tick of campaigns
        assert await count_calls(live) == 1

    async def read_campaign() -> Json:
        return (await live.caller.get(f"/v1/campaigns/{campaign['id']}")).json

    ended = await eventually(read_campaign, lambda campaign: campaign["status"] == "completed")
    assert (ended["completed"], ended["failed"]) == (2, 0)


async def test_without_redis_every_call_is_admitted(live: LivePlatform) -> None:
    admission = CallAdmission("here", live.runtime.redis, live.runtime.engine)
    await live.runtime.redis.set("{switchboard}:call_reservations", "not a sorted set")
    assert await admission.reserve_place(uuid4())
    assert await admission.has_capacity()


def test_a_process_that_is_late_holds_fewer_calls_until_it_is_in_time() -> None:
    capacity = CallCapacity(100)

    def observe(lateness: float) -> None:
        for _ in range(WINDOW):
            capacity.observe_lateness(lateness)

    observe(LATE)
    capacity.update_limit(60)
    assert capacity.limit == 60
    capacity.update_limit(5)
    assert capacity.limit == 25, "so few calls are not the reason"
    observe(IN_TIME)
    capacity.update_limit(5)
    assert capacity.limit == 30
    observe(LATE)
    capacity.forget_lateness()
    capacity.update_limit(0)
    assert capacity.limit == 35, "without calls nothing is late"
    observe(IN_TIME)
    for _ in range(20):
        capacity.update_limit(5)
    assert capacity.limit == 100
    for _ in range(WINDOW // 50):
        capacity.observe_lateness(LATE)
    capacity.update_limit(90)
    assert capacity.limit == 100, "a late tick now and then means nothing"
