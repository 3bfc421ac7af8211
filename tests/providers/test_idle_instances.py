"""Provider instances of idle organizations are closed, and opened again by their next use."""

import asyncio
import time

import pytest
from switchboard.apps.worker.worker import list_repeated_jobs
from switchboard.engine.providers import instances
from switchboard.engine.providers.instances import IDLE_SECONDS, Providers
from switchboard.plugin_sdk import Provider, ProviderSettings, TelephonyProvider
from switchboard.runtime import Runtime
from switchboard_offline.loopback.provider import LoopbackTelephony

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.eventually import eventually

Instance = Provider[ProviderSettings]


class Clock:
    """The process's clock, as instances read it."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(instances, "time", clock)
    return clock


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[Instance]:
    """Carriers that have been closed."""
    found: list[Instance] = []
    close = LoopbackTelephony.close

    async def record(self: LoopbackTelephony) -> None:
        await close(self)
        found.append(self)

    monkeypatch.setattr(LoopbackTelephony, "close", record)
    return found


async def settle(providers: Providers) -> None:
    """Close what is idle, and let that happen."""
    providers.close_idle()
    await asyncio.sleep(0.05)


async def use_carrier(providers: Providers, caller: Caller) -> Instance:
    async with providers.use(caller.organization_id, TelephonyProvider, "loopback") as carrier:
        return carrier


async def test_an_idle_instance_is_closed_and_the_next_use_opens_another(
    runtime: Runtime, caller: Caller, clock: Clock, closed: list[Instance]
) -> None:
    first = await use_carrier(runtime.providers, caller)
    clock.ahead = IDLE_SECONDS - 5
    await settle(runtime.providers)
    assert await use_carrier(runtime.providers, caller) is first
    clock.ahead += IDLE_SECONDS - 5  # the last use counts
    await settle(runtime.providers)
    assert not closed
    clock.ahead += 10
    await settle(runtime.providers)
    assert closed == [first]
    second = await use_carrier(runtime.providers, caller)
    assert second is not first
    async with runtime.providers.use(caller.organization_id, TelephonyProvider, "loopback") as carrier:
        assert carrier is second
        await carrier.check()


async def test_an_instance_in_use_stays_open(
    runtime: Runtime, caller: Caller, clock: Clock, closed: list[Instance]
) -> None:
    async with runtime.providers.use(caller.organization_id, TelephonyProvider, "loopback") as carrier:
        clock.ahead = 10 * IDLE_SECONDS
        await settle(runtime.providers)
        assert not closed
        assert await use_carrier(runtime.providers, caller) is carrier
    await settle(runtime.providers)
    assert not closed, "it has just been used"


async def test_an_instance_that_holds_a_call_stays_open_until_the_call_ends(
    live: LivePlatform, clock: Clock, closed: list[Instance]
) -> None:
    """The loopback carrier's calls go on in the instance that placed them."""
    call = await live.place_call("+15550100040")

    async def read_status() -> object:
        return (await live.caller.get(f"/v1/calls/{call['id']}")).json["status"]

    await eventually(read_status, lambda status: status == "in-progress")
    clock.ahead = 2 * IDLE_SECONDS
    await settle(live.runtime.providers)
    assert not closed
    assert (await live.wait_for_end(call["id"]))["status"] == "completed"

    async def close_idle() -> list[Instance]:
        clock.ahead += 2 * IDLE_SECONDS
        await settle(live.runtime.providers)
        return closed

    await eventually(close_idle, bool)


async def test_a_plugin_that_fails_to_say_if_it_is_busy_is_closed(
    runtime: Runtime, caller: Caller, clock: Clock, closed: list[Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: LoopbackTelephony) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(LoopbackTelephony, "is_busy", fail)
    carrier = await use_carrier(runtime.providers, caller)
    clock.ahead = 2 * IDLE_SECONDS
    await settle(runtime.providers)
    assert closed == [carrier]


def test_every_worker_closes_idle_instances() -> None:
    assert "close_idle_providers" in [job.__name__ for job, _ in list_repeated_jobs()]
