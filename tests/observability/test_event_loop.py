"""The watchdog of the event loop names code that holds it."""

import asyncio
import time
from types import ModuleType

import pytest
from structlog.testing import capture_logs
from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.event_loop import watch_event_loop
from switchboard.plugin_sdk.registry import Registry

from tests.fixtures.eventually import eventually

PLUGIN = "switchboard-sluggish"
PLUGINS = {"switchboard_sluggish": PLUGIN}


def create_plugin() -> ModuleType:
    """Create a module of a plugin whose `think` blocks for as long as it is told."""
    module = ModuleType("switchboard_sluggish.models")
    exec("import time\n\ndef think(seconds):\n    time.sleep(seconds)", module.__dict__)  # noqa: S102
    return module


def read_blocks(plugin: str) -> float:
    return metrics.registry.get_sample_value("switchboard_event_loop_blocks_total", {"plugin": plugin}) or 0.0


async def count_blocks(plugin: str) -> float:
    return read_blocks(plugin)


@pytest.mark.real_time
async def test_a_plugin_that_holds_the_loop_is_named() -> None:
    with capture_logs() as lines:
        async with watch_event_loop(PLUGINS):
            await asyncio.sleep(0)
            create_plugin().think(0.5)
            await eventually(lambda: count_blocks(PLUGIN), lambda count: count == 1)
    line = next(line for line in lines if line["event"] == "the event loop is held")
    assert line["plugin"] == PLUGIN
    assert any(place.endswith(" think") for place in line["at"])
    assert metrics.registry.get_sample_value("switchboard_event_loop_lag_seconds_bucket", {"le": "0.1"}) is not None


@pytest.mark.real_time
async def test_code_that_computes_is_reported_while_it_holds_the_loop(registry: Registry) -> None:
    """The watchdog's thread and the loop share the interpreter: much work in the thread would hold calls back."""
    before = read_blocks("platform")
    async with watch_event_loop(registry.distributions_by_package):
        await asyncio.sleep(0)
        ends_at = time.monotonic() + 1
        while read_blocks("platform") == before:
            assert time.monotonic() < ends_at


@pytest.mark.real_time
async def test_without_a_plugin_on_the_stack_it_is_the_platform() -> None:
    before = read_blocks("platform")
    async with watch_event_loop(PLUGINS):
        await asyncio.sleep(0)
        time.sleep(0.5)  # noqa: ASYNC251 - what the watchdog is for
        await eventually(lambda: count_blocks("platform"), lambda count: count > before)


@pytest.mark.real_time
async def test_a_loop_that_waits_is_not_held() -> None:
    before = read_blocks("platform")
    async with watch_event_loop(PLUGINS):
        await asyncio.sleep(0.3)
    assert read_blocks("platform") == before
