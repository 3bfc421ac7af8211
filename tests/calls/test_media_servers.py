"""Servers with a media address of their own: carriers open a call's socket at the server that has admitted the call."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NamedTuple, cast
from uuid import uuid4

import pytest
from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import Unavailable
from switchboard.plugin_sdk import ConnectMedia, IncomingCall
from switchboard.resources.calls.allowance import CallAdmission
from switchboard.resources.calls.dialing import build_media_url, format_media_url, read_media_token
from switchboard.resources.calls.inbound import InboundCallRouter
from switchboard.resources.calls.media_servers import MediaServers
from switchboard.runtime import Runtime
from switchboard_offline.loopback.leg import LoopbackLeg
from switchboard_offline.loopback.line import FarEnd

from tests.fixtures.app import LivePlatform
from tests.fixtures.eventually import eventually
from tests.fixtures.monitors import connect_telephone

OTHER, THIRD = "ws://media-2.example.com", "ws://media-3.example.com"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    own = f"ws://localhost:{settings.port}"
    return settings.model_copy(update={"call_capacity": 1, "media_url": own, "region": "eu"})


class Server(NamedTuple):
    """A process of another server, or one more of this one."""

    servers: MediaServers
    engine: CallEngine
    reporting: asyncio.Task[None]

    async def stop(self) -> None:
        self.engine.draining = True
        self.engine.stopping.set()
        await asyncio.gather(self.reporting, return_exceptions=True)


@asynccontextmanager
async def run_process(
    live: LivePlatform, most_calls: int, *, address: str = OTHER, region: str = "eu"
) -> AsyncIterator[Server]:
    """Report a process of a server with so much capacity."""
    settings = live.runtime.settings.model_copy(update={"media_url": address, "region": region})
    node, engine, redis = uuid4().hex, CallEngine(most_calls=most_calls), live.runtime.redis
    servers = MediaServers(node, settings, redis, engine, CallAdmission(node, redis, engine))
    server = Server(servers, engine, asyncio.create_task(servers.run_reports()))
    try:
        processes = f"{{switchboard}}:media_processes:{address}"
        await eventually(lambda: cast("Awaitable[bool]", redis.hexists(processes, node)), bool)
        yield server
    finally:
        await server.stop()


def build_worker(live: LivePlatform, *, region: str) -> MediaServers:
    """Return the servers as a worker of a region sees them. A worker may have the settings of its machine's server."""
    own = live.runtime.call(MediaServers)
    return replace(own, settings=own.settings.model_copy(update={"region": region}))


async def announce_call(live: LivePlatform, incoming: IncomingCall | None = None) -> str:
    """Announce a call to this server; return the host of the media socket's address."""
    incoming = incoming or IncomingCall(f"lb-9-{uuid4().hex}", "+15550100002", live.number)
    router = live.runtime.call(InboundCallRouter)
    instruction = await router.answer_inbound_call(live.caller.organization_id, "loopback", incoming)
    assert isinstance(instruction, ConnectMedia)
    return instruction.media_url.partition("/media/")[0]


async def wait_until_known(live: LivePlatform) -> None:
    servers = live.runtime.call(MediaServers)
    await eventually(servers.has_capacity, bool)


async def test_a_call_is_answered_with_the_address_of_the_server_that_admits_it(live: LivePlatform) -> None:
    await wait_until_known(live)
    own = live.runtime.settings.media_url
    async with connect_telephone(live), run_process(live, 0):
        with pytest.raises(Unavailable):
            await announce_call(live)
    await eventually(live.runtime.call(MediaServers).has_capacity, bool)
    incoming = IncomingCall(f"lb-9-{uuid4().hex}", "+15550100002", live.number)
    assert await announce_call(live, incoming) == own
    assert await announce_call(live, incoming) == own, "announced again"
    assert (await live.simulate_call("Goodbye")).answered is False, "the place is reserved"


async def test_a_full_server_answers_with_the_address_of_another_one(live: LivePlatform) -> None:
    await wait_until_known(live)
    async with connect_telephone(live), run_process(live, 2), run_process(live, 9, address=THIRD, region="us"):
        assert [await announce_call(live) for _ in range(3)] == [OTHER, OTHER, THIRD], "its region first"


async def test_outbound_calls_go_to_the_server_of_the_region_that_can_take_most(live: LivePlatform) -> None:
    await wait_until_known(live)
    async with run_process(live, 2), run_process(live, 9, address=THIRD, region="us"):
        worker = build_worker(live, region="eu")
        own = live.runtime.settings.media_url
        places = [await worker.reserve_place(uuid4()) for _ in range(5)]
        assert places[0] == OTHER
        assert sorted(map(str, places[1:3])) == sorted([OTHER, str(own)])
        assert places[3:] == [THIRD, THIRD], "another region has capacity"
        assert await build_worker(live, region="us").reserve_place(uuid4()) == THIRD
        assert await build_worker(live, region="af").reserve_place(uuid4()) == THIRD


async def test_outbound_calls_wait_while_no_server_has_capacity(live: LivePlatform) -> None:
    await wait_until_known(live)
    worker, first, second = build_worker(live, region="eu"), uuid4(), uuid4()
    assert await worker.reserve_place(first) is not None
    assert await worker.reserve_place(second) is None
    assert not await worker.has_capacity()
    await worker.release_place(first)
    await eventually(worker.has_capacity, bool)
    assert await worker.reserve_place(second) is not None


async def test_calls_in_both_directions_talk_over_the_address_of_their_server(
    live: LivePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    await wait_until_known(live)
    opened: list[str] = []
    open_media = LoopbackLeg.open_media

    async def record(self: LoopbackLeg, url: str) -> FarEnd:
        opened.append(url.partition("/media/")[0])
        return await open_media(self, url)

    monkeypatch.setattr(LoopbackLeg, "open_media", record)
    call = await live.place_call("+15550100040")
    assert (await live.wait_for_end(call["id"]))["status"] == "completed"
    await eventually(live.runtime.call(MediaServers).has_capacity, bool)
    assert (await live.simulate_call("Goodbye")).answered
    assert opened == [live.runtime.settings.media_url] * 2


async def test_a_socket_that_arrives_at_another_server_has_the_address_that_the_carrier_got(runtime: Runtime) -> None:
    """Carriers sign it: `create_media_codec` checks their first message by it."""
    ids = {"organization_id": uuid4(), "call_id": uuid4()}
    for address in (OTHER, ""):
        url = build_media_url(runtime.settings, runtime.keyring, carrier="loopback", **ids, address=address)
        assert url.startswith(address or f"ws://127.0.0.1:{runtime.settings.port}/media/")
        grant = read_media_token(runtime.keyring, url.rpartition("/")[2])
        assert grant is not None
        assert format_media_url(runtime.settings, grant.token, grant.address) == url


async def test_processes_of_one_server_share_its_address(live: LivePlatform) -> None:
    await wait_until_known(live)
    async with run_process(live, 1), run_process(live, 1):
        worker = build_worker(live, region="eu")
        assert [await worker.reserve_place(uuid4()) for _ in range(4)].count(OTHER) == 2


async def test_a_server_that_stops_gets_no_calls_and_waits_for_those_that_have_a_place(live: LivePlatform) -> None:
    await wait_until_known(live)
    worker, first = build_worker(live, region="us"), uuid4()
    async with run_process(live, 2, address=THIRD, region="us") as server:
        assert await worker.reserve_place(first) == THIRD
        draining = asyncio.create_task(server.engine.drain(60))
        await eventually(
            lambda: live.runtime.redis.zscore("{switchboard}:media_servers:us", THIRD), lambda free: not free
        )
        assert await worker.reserve_place(uuid4()) == live.runtime.settings.media_url
        assert not draining.done(), "the phone of the first call still rings"
        assert await server.servers.reserve_place_here(uuid4()) is None, "the others are full"
        await worker.release_place(first)
        async with asyncio.timeout(5):
            await draining


async def test_a_server_that_has_died_gets_no_calls(live: LivePlatform) -> None:
    await wait_until_known(live)
    async with run_process(live, 5) as server:
        server.reporting.cancel()
        await asyncio.gather(server.reporting, return_exceptions=True)
        redis, long_ago = live.runtime.redis, "5 0 1"
        await cast("Awaitable[int]", redis.hset(f"{{switchboard}}:media_processes:{OTHER}", "dead", long_ago))
        await redis.zadd("{switchboard}:media_servers:eu", {OTHER: 5})
        worker = build_worker(live, region="eu")
        assert await worker.reserve_place(uuid4()) == live.runtime.settings.media_url
        assert await redis.zscore("{switchboard}:media_servers:eu", OTHER) is None


async def test_without_redis_calls_are_admitted_at_the_server_that_answers(live: LivePlatform) -> None:
    redis, own = live.runtime.redis, live.runtime.settings.media_url
    await wait_until_known(live)
    await redis.delete(f"{{switchboard}}:media_places:{own}")
    await redis.set(f"{{switchboard}}:media_places:{own}", "not a sorted set")
    assert await announce_call(live) == own
    await redis.set("{switchboard}:media_regions", "not a set")
    assert await build_worker(live, region="eu").reserve_place(uuid4()) == "", "the public address"


async def test_a_server_says_its_region(live: LivePlatform) -> None:
    client = live.caller.client
    assert await (await client.get("/healthz")).get_json() == {"status": "ok", "region": "eu"}
