"""Behind a proxy, failed sign-ins count against the client and not against the proxy."""

from uuid import uuid4

import aiohttp
import pytest
from switchboard.foundation.settings import Settings
from switchboard.runtime import Runtime

from tests.fixtures.app import run_server


async def guess_password(runtime: Runtime, forwarded: str, times: int) -> list[int]:
    statuses = []
    async with aiohttp.ClientSession(runtime.settings.base_url) as client:
        for _ in range(times):
            form = {"email": f"{uuid4().hex}@example.com", "password": "x"}
            async with client.post("/dashboard/sign-in", data=form, headers={"X-Forwarded-For": forwarded}) as response:
                statuses.append(response.status)
    return statuses


class TestWithOneProxy:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"trusted_proxies": 1})

    async def test_sign_in_attempts_are_counted_per_client_address(self, runtime: Runtime) -> None:
        async with run_server(runtime, worker=False):
            assert 429 in await guess_password(runtime, "fd00:1::1", 30)
            assert await guess_password(runtime, "fd00:2::1", 1) == [422]
            assert await guess_password(runtime, "fd00:2::1, fd00:1::1", 1) == [429], (
                "what a client writes itself is not believed"
            )


async def test_the_forwarded_header_is_ignored_without_a_proxy(runtime: Runtime) -> None:
    async with run_server(runtime, worker=False):
        statuses = [status for n in range(30) for status in await guess_password(runtime, f"fd00:2:{n}::1", 1)]
    await runtime.redis.delete("limit:{address:127.0.0.1}:sign-in")  # other tests sign in from here
    assert 429 in statuses
