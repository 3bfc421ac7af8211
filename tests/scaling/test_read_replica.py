"""Lists and analytics from a streaming replica: always fresh, and never an error because of the replica."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.foundation.database import replica as replica_module
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Registry
from switchboard.runtime import Runtime

from tests.fixtures.app import SAME_MACHINE, UNKNOWN_ID, Caller, Client, Organizations, fresh_number
from tests.fixtures.command_line import Operator
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json
from tests.fixtures.replicas import Replica, start_primary_and_replica
from tests.fixtures.servers import SECRET_KEY

pytestmark = pytest.mark.system

ANSWER_SECONDS = 5.0
"""A frozen replica delays a read by `ENTER_SECONDS`; the rest is for a busy machine."""


@dataclass(slots=True)
class ReplicatedPlatform:
    """The platform over a primary and its replica."""

    runtime: Runtime
    replica: Replica
    client: Client
    organizations: Organizations
    caller: Caller
    operator: Operator

    async def count_reads(self, server: str) -> float:
        """Return the number of reads that a server has answered."""
        text = await (await self.client.get("/metrics", scope_base=SAME_MACHINE)).get_data(as_text=True)
        found = re.search(rf'^switchboard_replica_reads_total{{server="{server}"}} (.*)$', text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    async def read_readiness(self) -> Json:
        response = await self.client.get("/readyz")
        assert response.status_code == 200
        return dict(await response.get_json())

    async def create_and_list(self) -> None:
        """Create a contact, which the next list must have."""
        number = fresh_number()
        assert (await self.caller.post("/v1/contacts", {"phone_number": number})).status == 201
        async with asyncio.timeout(ANSWER_SECONDS):
            listed = await self.caller.get("/v1/contacts")
        assert listed.status == 200, listed.body
        assert json.loads(listed.body)["items"][0]["phone_number"] == number

    async def check_fallback(self, problem: str) -> None:
        """The primary answers, and the operator can see it."""
        before = await self.count_reads("primary")
        for _ in range(3):
            await self.create_and_list()
        assert await self.count_reads("primary") == before + 3
        readiness = await self.read_readiness()
        assert readiness["status"] == "degraded"
        assert problem in str(readiness["read_database"])


@asynccontextmanager
async def start_replicated_platform(folder: Path, registry: Registry) -> AsyncIterator[ReplicatedPlatform]:
    async with start_primary_and_replica(folder) as (primary, replica):
        settings = Settings(data_dir=folder / "data", read_database_url=replica.url, drain_seconds=0)
        async with open_process_runtime(
            settings, database_url=primary.database_url, redis_url=primary.redis_url, registry=registry
        ) as runtime:
            client = app.create_app(runtime).test_client()
            organizations = Organizations(runtime, client)
            operator = Operator(
                SWITCHBOARD_DATA_DIR=str(folder / "data"),
                SWITCHBOARD_DATABASE_URL=primary.database_url,
                SWITCHBOARD_READ_DATABASE_URL=replica.url,
                SWITCHBOARD_REDIS_URL=primary.redis_url,
                SWITCHBOARD_SECRET_KEYS=SECRET_KEY,
            )
            caller = await organizations.create()
            yield ReplicatedPlatform(runtime, replica, client, organizations, caller, operator)


async def test_a_list_from_the_replica_has_what_was_just_created(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "CATCH_UP_SECONDS", 10.0)  # on a busy machine a replica may take its time
    monkeypatch.setattr(replica_module, "ENTER_SECONDS", 20.0)
    async with start_replicated_platform(tmp_path, registry) as platform:
        before = await platform.count_reads("primary")
        for _ in range(20):
            await platform.create_and_list()
        assert (await platform.read_readiness())["read_database"] == "ok"

        async def run_doctor() -> str:
            return (await asyncio.to_thread(platform.operator.run, "doctor")).stdout

        # The command is a process of its own, with the usual patience for a replica on a busy machine.
        await eventually(run_doctor, lambda printed: "ok  read replica" in printed)

        stranger = await platform.organizations.create()
        assert (await stranger.get("/v1/contacts")).json["items"] == []

        for rule in platform.client.app.url_map.iter_rules():
            declared = getattr(platform.client.app.view_functions[rule.endpoint], "endpoint", None)
            if declared is None or not declared.replica:
                continue
            path = re.sub(r"<[^>]*>", UNKNOWN_ID, rule.rule)
            answer = await platform.caller.get(path)
            assert answer.status == (404 if UNKNOWN_ID in path else 200), (path, answer.body)
        assert await platform.count_reads("primary") == before
        assert await platform.count_reads("replica") >= 20


async def test_reads_go_to_the_primary_while_the_replica_is_behind(tmp_path: Path, registry: Registry) -> None:
    async with start_replicated_platform(tmp_path, registry) as platform:
        await platform.replica.execute("select pg_wal_replay_pause()")
        await platform.check_fallback("it is more than 0.1 seconds behind")
        await platform.replica.execute("select pg_wal_replay_resume()")
        await eventually(platform.read_readiness, lambda readiness: readiness["read_database"] == "ok")
        before = await platform.count_reads("replica")
        await platform.create_and_list()
        await eventually(lambda: list_and_count(platform), before.__lt__)


async def list_and_count(platform: ReplicatedPlatform) -> float:
    await platform.caller.get("/v1/contacts")
    return await platform.count_reads("replica")


async def test_reads_go_to_the_primary_when_the_replica_is_promoted(tmp_path: Path, registry: Registry) -> None:
    async with start_replicated_platform(tmp_path, registry) as platform:
        await platform.replica.execute("select pg_promote()")
        await platform.check_fallback("it is not a replica, or has been promoted")


async def test_reads_go_to_the_primary_when_the_replica_freezes_and_dies(tmp_path: Path, registry: Registry) -> None:
    async with start_replicated_platform(tmp_path, registry) as platform:
        await platform.create_and_list()
        platform.replica.send_signal(signal.SIGSTOP)
        await platform.check_fallback("it does not answer")
        platform.replica.send_signal(signal.SIGKILL)
        await platform.check_fallback("it does not answer")
        assert "FIX read replica" in platform.operator.run("doctor").stdout


async def test_a_read_that_the_replica_breaks_off_is_done_on_the_primary(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_replicated_platform(tmp_path, registry) as platform:
        catch_up = replica_module._catch_up

        async def catch_up_and_lose_connections(*arguments: object) -> None:
            await catch_up(*arguments)  # type: ignore[arg-type]
            await platform.replica.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'switchboard'"
            )

        monkeypatch.setattr(replica_module, "_catch_up", catch_up_and_lose_connections)
        before = await platform.count_reads("replica")
        await platform.create_and_list()
        assert await platform.count_reads("replica") == before
