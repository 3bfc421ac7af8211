"""The platform on Redis over TLS, on a cluster, and behind Sentinels, also while the primary is killed."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from uuid import UUID

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError
from switchboard.foundation.redis_client import HASH_TAG, InvalidRedisUrl, open_redis_clients
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.runtime import Runtime

from tests.fixtures.app import LivePlatform
from tests.fixtures.eventually import eventually
from tests.fixtures.monitors import Page, Telephone, connect_telephone, open_page
from tests.fixtures.processes import run_another_process, start_live_platform
from tests.fixtures.redis_servers import Access, RedisServers, start_cluster, start_redis, start_sentinels

SLOW = Limit(per_second=0.001, burst=3)


BUCKETS_IN_TURN = count()


async def count_jobs(runtime: Runtime) -> int | None:
    """Return the number of wake-ups that workers have finished; None while there is no primary."""
    try:
        keys = [key async for key in runtime.redis.scan_iter(f"saq:job:{HASH_TAG}:*", count=1000)]
        jobs = [json.loads(job) for job in await runtime.redis.mget(keys) if job] if keys else []
    except RedisError:
        return None
    return len([job for job in jobs if job["status"] == "complete"])


async def run_job(runtime: Runtime) -> None:
    """Wake a worker, which must run the job."""
    before = await eventually(lambda: count_jobs(runtime), lambda count: count is not None) or 0
    await runtime.queue.wake("deliver_events", next(BUCKETS_IN_TURN))
    await eventually(lambda: count_jobs(runtime), lambda count: count is not None and count > before)


async def check_limits(redis_url: str, name: str) -> None:
    """Two processes share the limits of each credential, wherever its keys are, once Redis answers in time."""
    here, there = open_redis_clients(redis_url), open_redis_clients(redis_url)
    limiters = [RateLimiter(here.limits), RateLimiter(there.limits)]
    attempts = count()

    async def use_credential() -> list[bool]:
        """Return whether each of five requests was allowed, and whether a revocation was heard of."""
        credential = f"{name}-{next(attempts)}"
        allowed = [(await limiters[turn % 2].check("list_calls", credential, SLOW)).allowed for turn in range(5)]
        await limiters[0].announce_revocation(credential)
        return [*allowed, (await limiters[1].check("list_calls", credential, SLOW)).revoked]

    for _ in range(8):
        await eventually(use_credential, lambda decided: decided == [True, True, True, False, False, True])
    await here.close()
    await there.close()


@asynccontextmanager
async def supervise_call(folder: Path, redis_url: str) -> AsyncIterator[tuple[LivePlatform, Telephone, Page]]:
    """A call in this process, and a page that follows it from another process."""
    async with (
        start_live_platform(folder, redis_url=redis_url) as (live, servers),
        run_another_process(live, database_url=servers.directory.database_url, redis_url=redis_url) as (port, _),
        connect_telephone(live) as caller,
        open_page(live, caller, port=port) as page,
    ):
        await page.wait_for_message("state", holder=None)
        await run_job(live.runtime)
        yield live, caller, page


async def take_over(page: Page) -> None:
    """Take the call over and hand it back. For a second after a failover the call cannot be reached."""

    async def ask() -> bool:
        page.messages.clear()
        await page.ask(type="take_over")
        message = await page.wait_until(lambda message: message["type"] == "refused" or bool(message.get("holder")))
        return message["type"] == "state"

    await eventually(ask)
    await page.ask(type="hand_back")
    await page.wait_for_message("state", holder=None)


async def check_failover(folder: Path, servers: RedisServers) -> None:
    """Kill the primary: no call ends, and wake-ups, limits, and supervision go on with the next primary."""
    async with supervise_call(folder, servers.url) as (live, caller, page):
        await take_over(page)
        await servers.primary.kill()

        async def read_readiness() -> str:
            return str((await (await live.caller.client.get("/readyz")).get_json())["status"])

        await eventually(read_readiness, "ok".__eq__)
        await run_job(live.runtime)
        await take_over(page)
        await check_limits(servers.url, "after")
        call = (await live.caller.get(f"/v1/calls/{caller.call_id}")).json
        assert call["status"] == "in-progress"
        settled = await live.place_call("+15550100040")
        assert (await live.wait_for_end(settled["id"]))["status"] == "completed"


async def check_wrong_password(redis_url: str) -> None:
    """A wrong password fails, and the error says so, once Redis answers in time."""
    clients = open_redis_clients(redis_url.replace("%25word", "%25error"))

    async def ask() -> str:
        with pytest.raises(RedisError) as refused:
            await clients.commands.time()
        return str(refused.value)

    await eventually(ask, lambda message: "invalid username-password pair" in message)
    await clients.close()


@pytest.mark.system
async def test_calls_go_on_when_sentinels_choose_another_primary(tmp_path: Path) -> None:
    async with start_sentinels(tmp_path / "redis", Access.create_secured(tmp_path)) as servers:
        await check_wrong_password(servers.url)
        await check_limits(servers.url, "before")
        await check_failover(tmp_path / "platform", servers)


@pytest.mark.system
async def test_calls_go_on_when_a_cluster_chooses_another_primary(tmp_path: Path) -> None:
    async with start_cluster(tmp_path / "redis", Access.create_secured(tmp_path)) as servers:
        await check_wrong_password(servers.url)
        await check_limits(servers.url, "before")
        await check_failover(tmp_path / "platform", servers)


async def test_sentinels_without_tls_and_logins(tmp_path: Path) -> None:
    async with start_sentinels(tmp_path) as servers:
        await check_limits(servers.url, "plain")
        clients = open_redis_clients(servers.url)
        await servers.primary.kill()
        await eventually(lambda: _is_reachable(clients.commands))
        await clients.close()


async def _is_reachable(redis: Redis) -> bool:
    try:
        await redis.set(HASH_TAG, b"after")
    except RedisError:
        return False
    return True


async def test_a_cluster_spreads_the_limits(tmp_path: Path) -> None:
    async with start_cluster(tmp_path) as servers:
        clients = open_redis_clients(servers.url)
        limiter = RateLimiter(clients.limits)
        for number in range(30):
            await limiter.check("list_calls", str(UUID(int=number)), SLOW)
        await clients.close()
        sizes = [await server.ask("DBSIZE") for server in (servers.primary, *servers.others[:2])]
        assert sum(map(int, map(str, sizes))) == 30
        assert 0 not in sizes


@pytest.mark.system
async def test_a_call_on_one_server_with_tls_and_a_login(tmp_path: Path) -> None:
    access = Access.create_secured(tmp_path)
    async with start_redis(tmp_path / "redis", access=access) as server:
        url = access.format_url(f"127.0.0.1:{server.port}", "/0")
        await check_wrong_password(url)
        await check_limits(url, "tls")
        async with supervise_call(tmp_path / "platform", url) as (_, _, page):
            await take_over(page)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis+sentinel://127.0.0.1:26379", "the name that the Sentinels know the primary by is missing"),
        ("redis+sentinel:///voice", "a host is missing"),
        ("redis+sentinel://one/voice/two", "the database is not a number"),
        ("redis+cluster://127.0.0.1/1", "a cluster has database 0 only"),
        ("redis+cluster://127.0.0.1?color=red", "a parameter is not supported: 'color'"),
        ("redis://127.0.0.1?color=red", "a parameter is not supported: 'color'"),
        ("redis://127.0.0.1?sentinel_password=word", "a parameter is not supported: 'sentinel_password'"),
        ("redis+sentinel://127.0.0.1/voice?sentinel_pasword=word", "a parameter is not supported: 'sentinel_pasword'"),
        ("redis://127.0.0.1?ssl_ca_certs=/ca.pem", "a parameter is not supported: 'ssl_ca_certs'; TLS needs rediss"),
        ("rediss://127.0.0.1?ssl_ca_certs=/none/ca.pem", "ssl_ca_certs=/none/ca.pem cannot be used: No such file"),
        ("rediss+sentinel://127.0.0.1/voice?ssl_ca_certs=/none/ca.pem", "ssl_ca_certs=/none/ca.pem cannot be used"),
        ("rediss+cluster://127.0.0.1?ssl_certfile=/etc/hostname", "ssl_certfile=/etc/hostname cannot be used"),
        ("rediss://127.0.0.1?ssl_cert_reqs=perhaps", "Invalid SSL Certificate Requirements Flag: perhaps"),
        ("redis://127.0.0.1:many", "a port is not a number"),
        ("redis://:secret/word@127.0.0.1", "a port is not a number"),
        ("redis+carrier://127.0.0.1", "redis+carrier:// is not a scheme of Redis"),
    ],
)
def test_an_invalid_address_is_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidRedisUrl, match=message.replace("+", r"\+")):
        open_redis_clients(url)
