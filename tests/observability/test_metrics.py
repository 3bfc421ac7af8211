"""Metrics of organizations, reconcilers, leases, pools, and disk, as Prometheus reads them."""

import asyncio
import re
from collections import Counter
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import text
from switchboard.foundation.database import now
from switchboard.foundation.observability.metrics import MAX_ORGANIZATIONS, OTHER
from switchboard.foundation.web.paging import lock_row
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import finish_call
from switchboard.resources.stored_files import get_spool_folder
from switchboard.runtime import Runtime

from tests.fixtures.app import SAME_MACHINE, Caller, Client, LivePlatform, Organizations
from tests.fixtures.calls import add_call
from tests.fixtures.eventually import eventually
from tests.fixtures.receiver import Receiver
from tests.fixtures.webhooks import create_endpoint, send_test, wait_for_status


async def scrape(client: Client) -> dict[str, float]:
    """Return the value of each series, `name{labels}`."""
    lines = (await (await client.get("/metrics", scope_base=SAME_MACHINE)).get_data(as_text=True)).splitlines()
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def sum_by_organization(series: dict[str, float], metric: str) -> Counter[str]:
    sums: Counter[str] = Counter()
    for name, value in series.items():
        if name.startswith(metric + "{") and (organization := re.search(r'organization="([^"]+)"', name)):
            sums[organization[1]] += round(value)
    return sums


async def test_only_so_many_organizations_have_a_label_value(
    runtime: Runtime, client: Client, organizations: Organizations
) -> None:
    metric, before = "switchboard_organization_calls_total", await scrape(client)
    ended = MAX_ORGANIZATIONS + 5
    for _ in range(ended):
        await _end_call(runtime, await organizations.create())
    sums = sum_by_organization(await scrape(client), metric)
    # Other tests of this process may have given labels to organizations without a call.
    assert len(sums) <= MAX_ORGANIZATIONS + 1
    assert sums[OTHER] >= 5
    assert sums.total() - sum_by_organization(before, metric).total() == ended


async def _end_call(runtime: Runtime, caller: Caller) -> None:
    queued = await add_call(runtime, caller, now(), status="queued")
    async with runtime.database.write(caller.organization_id) as session:
        await finish_call(session, await lock_row(session, Call, queued.id), "completed")


async def test_a_live_call_counts_for_its_organization(live: LivePlatform) -> None:
    metric = "switchboard_organization_live_calls"
    client = live.caller.client

    async def count() -> int:
        return sum_by_organization(await scrape(client), metric).total()

    call = asyncio.create_task(live.simulate_call("What are your opening hours?"))
    await eventually(count, lambda live_calls: live_calls == 1)
    await call
    await eventually(count, lambda live_calls: live_calls == 0)


@pytest.mark.usefixtures("running_worker")
async def test_reconcilers_report_runs_and_what_they_found(runtime: Runtime, client: Client, caller: Caller) -> None:
    found = 'switchboard_reconciled_items_total{reconciler="end_abandoned_call"}'
    runs = 'switchboard_reconciler_run_seconds_count{outcome="ok",reconciler="end_abandoned_call"}'
    before = (await scrape(client)).get(found, 0.0)
    await add_call(runtime, caller, now(), status="ringing", watch_at=now())

    async def look() -> dict[str, float]:
        return await scrape(client)

    series = await eventually(look, lambda series: series.get(found, 0.0) > before)
    assert series[runs] >= 1


@pytest.mark.local_receivers
@pytest.mark.usefixtures("running_worker")
async def test_a_delivery_whose_lease_another_worker_has_is_counted_as_lost(
    runtime: Runtime, client: Client, caller: Caller, receiver: Receiver
) -> None:
    held, lost = 'switchboard_leases_held{kind="delivery"}', 'switchboard_leases_lost_total{kind="delivery"}'
    before = await scrape(client)
    receiver.hangs.add("/hook")
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    delivery = await send_test(caller, endpoint)
    await receiver.first("/hook")
    assert (await scrape(client))[held] == before.get(held, 0.0) + 1, "the receiver has not answered yet"
    async with runtime.database.system() as session:
        await (await session.connection()).execute(
            text("update delivery_due set lease_token = gen_random_uuid(), due_at = :now where id = :id"),
            {"id": delivery["id"], "now": now()},
        )
    receiver.release()

    async def look() -> dict[str, float]:
        return await scrape(client)

    await eventually(look, lambda series: series[lost] == before.get(lost, 0.0) + 1)
    await wait_for_status(caller, delivery, status="delivered")
    await eventually(look, lambda series: series[held] == before.get(held, 0.0))


@pytest.mark.local_receivers
@pytest.mark.usefixtures("running_worker")
async def test_a_failed_delivery_counts_for_its_organization(
    client: Client, caller: Caller, receiver: Receiver
) -> None:
    metric = "switchboard_organization_failed_deliveries_total"
    before = sum_by_organization(await scrape(client), metric).total()
    receiver.statuses["/gone"] = [410]
    endpoint = await create_endpoint(caller, f"{receiver.url}/gone")
    await wait_for_status(caller, await send_test(caller, endpoint), status="failed")
    assert sum_by_organization(await scrape(client), metric).total() == before + 1


async def test_the_pool_shows_who_waits_for_a_connection(runtime: Runtime, client: Client) -> None:
    size = runtime.settings.database_pool_size
    async with AsyncExitStack() as stack:
        for _ in range(size):
            session = await stack.enter_async_context(runtime.database.system())
            await session.connection()
        waiting = asyncio.create_task(runtime.database.ping())
        series = await scrape(client)
        assert series['switchboard_pool_size{pool="database"}'] == size
        assert series['switchboard_pool_connections{pool="database",state="used"}'] == size
        assert series['switchboard_pool_waiting{pool="database"}'] == 1
    await waiting
    assert (await scrape(client))['switchboard_pool_waiting{pool="database"}'] == 0


async def test_disk_and_spool_are_measured(runtime: Runtime, client: Client, caller: Caller) -> None:
    spool = get_spool_folder(runtime.settings)
    spool.mkdir(parents=True)
    (spool / f"{caller.organization_id}.{caller.key_id}.wav").write_bytes(bytes(1234))
    series = await scrape(client)
    assert series["switchboard_recording_spool_bytes"] == 1234
    assert 0 < series["switchboard_data_disk_free_bytes"] < series["switchboard_data_disk_size_bytes"]
