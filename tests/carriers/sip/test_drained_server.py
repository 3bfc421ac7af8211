"""A `serve` process that is drained beneath a gateway, behind a balancer with another one, while people talk."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import JsonValue
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.audio import transcode_audio

from tests.carriers.sip.far_end import FarEnd, Telephone
from tests.carriers.sip.gateway import build_settings
from tests.carriers.sip.line import GatewayPorts, SipLine, create_sip_bakery, run_gateways
from tests.chaos.cluster import Cluster, Member, run_cluster
from tests.fixtures.app import Organizations
from tests.fixtures.caller_voice import speak_as_caller
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port

pytestmark = pytest.mark.system
FIRST, SECOND, THIRD, CALLED = "+15550100031", "+15550100032", "+15550100033", "+15550100034"


@asynccontextmanager
async def open_cluster_line(folder: Path) -> AsyncIterator[tuple[Cluster, SipLine, FarEnd]]:
    """Run two servers and two workers behind a balancer, a gateway, and a trunk."""
    trunk, ports = FarEnd(find_free_port()), GatewayPorts()
    office: dict[str, JsonValue] = {"name": "office", "hosts": [f"127.0.0.1:{trunk.port}"]}
    await trunk.start()
    async with run_cluster(folder) as cluster:
        urls = cluster.servers.directory
        settings = Settings(data_dir=folder, public_url=cluster.url)
        async with open_process_runtime(settings, database_url=urls.database_url, redis_url=urls.redis_url) as runtime:
            caller = await Organizations(runtime, app.create_app(runtime).test_client()).create()
            live = await create_sip_bakery(runtime, caller, build_settings(ports.control, office))
            log = folder / "gateway.log"
            async with run_gateways(cluster.environment, "127.0.0.1", [ports], log) as gateways:
                yield cluster, SipLine(live, "127.0.0.1", (ports,), gateways), trunk
    await trunk.stop()


async def count_live_calls(member: Member) -> float:
    """Return the number of calls whose media a server has, which its metrics show after a moment."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{member.port}/metrics") as response:
        families = text_string_to_metric_families(await response.text())
    samples = (sample for family in families for sample in family.samples)
    return sum(sample.value for sample in samples if sample.name == "switchboard_live_calls")


async def find_holder(cluster: Cluster) -> Member:
    """Return the server that has the only live call."""

    async def look() -> list[Member]:
        return [member for member in cluster.serving if await count_live_calls(member)]

    return (await eventually(look, bool))[0]


async def call_bakery(line: SipLine, trunk: FarEnd, from_number: str) -> tuple[str, Telephone]:
    """Call the bakery, and return the call's id once the agent has greeted."""
    telephone = await trunk.call(line.sip_port, line.live.number, from_number=from_number)
    call_id = await line.find_call(from_number=from_number)
    await line.wait_until_said(call_id, "agent", "bakery on the corner")
    return call_id, telephone


def say(telephone: Telephone, words: str) -> None:
    telephone.media.play(transcode_audio(speak_as_caller(words), "pcm16", "mulaw"))


async def say_goodbye(line: SipLine, call_id: str, telephone: Telephone) -> None:
    """Say goodbye, and check that the agent has ended the call, which is recorded and measured."""
    say(telephone, "goodbye")
    ended = await line.live.wait_for_end(call_id)
    assert (ended["status"], ended["ended_reason"]) == ("completed", "agent_hung_up"), ended
    async with asyncio.timeout(60):
        await telephone.events.over.wait()
    assert len(await line.live.wait_for_recording(call_id)) > 44

    async def look() -> Any:
        return (await line.live.caller.get(f"/v1/calls/{call_id}")).json["quality"]

    quality: Any = await eventually(look, bool)
    assert quality["loss_share"] < 0.1, quality


async def test_a_server_is_drained_beneath_a_gateway(tmp_path: Path) -> None:
    async with open_cluster_line(tmp_path) as (cluster, line, trunk):
        first, telephone = await call_bakery(line, trunk, FIRST)
        holder = await find_holder(cluster)
        (other,) = (member for member in cluster.serving if member is not holder)
        draining = asyncio.create_task(holder.stop(signal.SIGTERM))
        second, another = await call_bakery(line, trunk, SECOND)  # before the balancer knows
        await eventually(lambda: uses_both(cluster), lambda both: not both)
        third, last = await call_bakery(line, trunk, THIRD)
        placed = await line.live.place_call(CALLED)
        called = await trunk.wait_for_telephone(4)
        await line.wait_until_said(placed["id"], "agent", "bakery on the corner")
        await eventually(lambda: count_live_calls(other), lambda count: count >= 2)
        say(telephone, "what are your opening hours")
        await line.wait_until_said(first, "agent", "seven to six")
        assert await count_live_calls(holder) >= 1
        for call_id, each in ((first, telephone), (second, another), (third, last), (str(placed["id"]), called)):
            await say_goodbye(line, call_id, each)
        await draining
        assert holder.statuses == [0]


async def uses_both(cluster: Cluster) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"{cluster.url}/both-ready") as response:
        return response.status == 200
