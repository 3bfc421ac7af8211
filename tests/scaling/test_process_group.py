"""`serve --processes`: several processes on one port, as one server."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import cast
from uuid import UUID

import aiohttp
import pytest
from switchboard.apps.cli.launch import count_processes
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.web.paging import get_row
from switchboard.resources.calls.media_servers import MediaServers
from switchboard.resources.calls.models import Call
from switchboard.runtime import Runtime

from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number
from tests.fixtures.command_line import Operator, start_command
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json
from tests.fixtures.monitors import Telephone, connect_telephone, open_page
from tests.fixtures.servers import SECRET_KEY

START_SECONDS = 120
MOST_CALLS = 16
"""So many calls land in one of two processes once in 30 000 times."""


@dataclass(slots=True)
class Group:
    """A running `serve --processes 2`, and an organization with an agent."""

    live: LivePlatform
    parent: ForkServerProcess

    def list_pids(self) -> set[int]:
        """Return the ids of the processes that serve."""
        pid = self.parent.pid
        return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))

    async def request(self, path: str) -> tuple[int, str]:
        """Send a request, over a connection of its own, to whichever process accepts it."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(self.live.runtime.settings.base_url + path) as response,
        ):
            return response.status, await response.text()

    async def read_metric(self, series: str) -> float | None:
        """Return the value of a series; None while nothing serves, or if there is no such series."""
        try:
            text = (await self.request("/metrics"))[1]
        except aiohttp.ClientError:
            return None
        return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{series} ")), None)

    async def wait_until_all_serve(self) -> None:
        """Wait until both processes have measured their pools."""
        size = 2 * self.live.runtime.settings.database_pool_size
        await eventually(
            lambda: self.read_metric('switchboard_pool_size{pool="database"}'),
            lambda found: found == size,
            seconds=START_SECONDS,
        )

    async def find_holder(self, call_id: UUID) -> str | None:
        """Return the node of the process that has a call."""
        async with self.live.runtime.database.write(self.live.caller.organization_id) as session:
            return (await get_row(session, Call, call_id)).holder

    async def read_call(self, call_id: UUID) -> Json:
        return (await self.live.caller.get(f"/v1/calls/{call_id}")).json

    @asynccontextmanager
    async def call_both_processes(self) -> AsyncIterator[dict[str, Telephone]]:
        """Call until both processes hold a call; yield one call of each, by the node of the process."""
        async with AsyncExitStack() as stack:
            found: dict[str, Telephone] = {}
            for _ in range(MOST_CALLS):
                caller = await stack.enter_async_context(connect_telephone(self.live))
                found[await self.find_holder(caller.call_id) or ""] = caller
                if len(found) == 2:
                    break
            assert len(found) == 2
            yield found


@pytest.fixture
def environment(runtime: Runtime, servers: DataDirectory) -> dict[str, str]:
    settings = runtime.settings
    return {
        "SWITCHBOARD_DATA_DIR": str(settings.data_dir),
        "SWITCHBOARD_PORT": str(settings.port),
        "SWITCHBOARD_DATABASE_URL": servers.database_url,
        "SWITCHBOARD_REDIS_URL": servers.redis_url,
        "SWITCHBOARD_SECRET_KEYS": SECRET_KEY,
        "SWITCHBOARD_DRAIN_SECONDS": "600",
        "SWITCHBOARD_MEDIA_URL": f"ws://localhost:{settings.port}",
        "SWITCHBOARD_REGION": "eu",
    }


@pytest.fixture
async def group(
    runtime: Runtime, organizations: Organizations, environment: dict[str, str], tmp_path: Path
) -> AsyncIterator[Group]:
    live = await create_bakery(runtime, await organizations.create(), fresh_number())
    parent = await asyncio.to_thread(
        start_command, ["serve", "--processes", "2"], {**os.environ, **environment}, error=tmp_path / "log"
    )
    group = Group(live, parent)
    try:
        await group.wait_until_all_serve()
        yield group
    finally:
        parent.terminate()
        parent.terminate()
        await asyncio.to_thread(parent.join)


async def has_ended(pids: set[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.system
async def test_a_group_is_one_server_with_one_media_address(group: Group) -> None:
    live = group.live
    servers, redis = live.runtime.call(MediaServers), live.runtime.redis
    address = f"ws://localhost:{live.runtime.settings.port}"
    processes = f"{{switchboard}}:media_processes:{address}"
    await eventually(lambda: cast("Awaitable[int]", redis.hlen(processes)), lambda count: count == 2)
    capacity = await redis.zscore("{switchboard}:media_servers:eu", address)
    assert capacity == await group.read_metric("switchboard_call_capacity")
    assert await group.read_metric('switchboard_processes{region="eu"}') == 2
    assert await servers.reserve_place(UUID(int=1)) == address
    assert (await live.simulate_call("Goodbye")).answered


@pytest.mark.system
async def test_calls_and_their_control_work_across_processes(group: Group) -> None:
    async with group.call_both_processes() as callers:
        await eventually(lambda: group.read_metric("switchboard_live_calls"), lambda count: (count or 0) >= 2)
        for caller in callers.values():
            async with open_page(group.live, caller) as page:
                await page.wait_for_message("state", holder=None)
                await page.ask(type="take_over")
                await page.wait_for_message("state", holder={"name": "Ada", "you": True})
                await page.ask(type="hang_up")
                await page.wait_for_message("ended")
    pids = group.list_pids()
    group.parent.kill()
    await eventually(lambda: has_ended(pids))


@pytest.mark.system
@pytest.mark.usefixtures("running_worker")
async def test_a_process_that_dies_is_restarted_and_the_calls_of_the_other_go_on(group: Group) -> None:
    before = group.list_pids()
    async with group.call_both_processes() as callers:
        os.kill(min(before), signal.SIGKILL)
        lost, kept = await eventually(lambda: _sort_calls(group, callers), all)
        assert (len(lost), len(kept)) == (1, 1)
    await group.wait_until_all_serve()
    assert len(group.list_pids() - before) == 1


async def _sort_calls(group: Group, callers: dict[str, Telephone]) -> tuple[list[Json], list[Json]]:
    found = [await group.read_call(caller.call_id) for caller in callers.values()]
    return (
        [call for call in found if call["status"] == "failed"],
        [call for call in found if call["status"] == "in-progress"],
    )


@pytest.mark.system
async def test_sigterm_drains_every_process_and_a_second_one_ends_the_calls(
    group: Group, environment: dict[str, str]
) -> None:
    pids = group.list_pids()
    done = await asyncio.to_thread(Operator(**environment).run, "serve", "--processes", "2")
    assert (done.returncode, "cannot listen on 127.0.0.1:" in done.stderr) == (1, True), "the port is the first group's"
    async with group.call_both_processes() as callers:
        group.parent.terminate()

        async def read_status() -> int:
            return (await group.request("/readyz"))[0]

        await eventually(read_status, lambda status: status == 503)
        for caller in callers.values():
            await caller.phone.wait(1.0)
            assert (await group.read_call(caller.call_id))["status"] == "in-progress"
        group.parent.terminate()
        for caller in callers.values():
            assert (await group.live.wait_for_end(caller.call_id))["ended_reason"] == "shutdown"
    await asyncio.to_thread(group.parent.join, 60)
    assert (group.parent.exitcode, await has_ended(pids)) == (0, True)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SWITCHBOARD_PROCESSES", "0", "SWITCHBOARD_PROCESSES: Input should be greater than or equal to 1"),
        ("SWITCHBOARD_REDIS_URL", "redis://127.0.0.1/0?shape=round", "SWITCHBOARD_REDIS_URL: "),
        ("SWITCHBOARD_HOST", "203.0.113.1", "cannot listen on 203.0.113.1:"),
    ],
)
def test_a_group_that_cannot_start_says_why_once(
    environment: dict[str, str], name: str, value: str, message: str
) -> None:
    operator = Operator(**{**environment, "SWITCHBOARD_PROCESSES": "2", name: value})
    done = operator.run("serve")
    assert (done.returncode, done.stderr.count(message)) == (1, 1), done.stderr
    assert done.stderr.startswith("switchboard: ")


@pytest.mark.parametrize(("cores", "processes"), [(None, 1), (1, 1), (2, 1), (4, 2), (8, 4), (64, 4)])
def test_make_run_leaves_two_cores_to_the_others(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, processes: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert count_processes() == processes
