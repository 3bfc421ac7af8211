"""Behind a proxy, guessing counts against who guesses and not against the proxy."""

import aiohttp
import pytest
from switchboard.foundation.settings import Settings
from switchboard.runtime import Runtime

from tests.fixtures.app import listening


async def guess(runtime: Runtime, forwarded: str, times: int) -> list[int]:
    statuses = []
    async with aiohttp.ClientSession(runtime.settings.base_url) as client:
        for n in range(times):
            form = {"email": f"{n}@example.com", "password": "x"}
            async with client.post("/dashboard/sign-in", data=form, headers={"X-Forwarded-For": forwarded}) as answer:
                statuses.append(answer.status)
    return statuses


class TestWithOneProxy:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"trusted_proxies": 1})

    async def test_each_address_before_it_has_its_own_attempts(self, runtime: Runtime) -> None:
        async with listening(runtime, worker=False):
            assert 429 in await guess(runtime, "fd00::1:1", 30)
            assert await guess(runtime, "fd00::1:2", 1) == [422]
            assert await guess(runtime, "fd00::1:2, fd00::1:1", 1) == [429], (
                "what a client writes itself is not believed"
            )


async def test_without_one_the_header_is_not_believed(runtime: Runtime) -> None:
    async with listening(runtime, worker=False):
        statuses = [status for n in range(30) for status in await guess(runtime, f"fd00::2:{n}", 1)]
    await runtime.redis.delete("limit:sign-in:127.0.0.1")  # other tests sign in from here
    assert 429 in statuses
