"""Event loops of these tests: modules that set `VIRTUAL_CLOCK` run on a virtual clock, the others on a real one."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.fixtures.virtual_clock import VirtualClockLoop


def pytest_asyncio_loop_factories(item: pytest.Function) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"loop": VirtualClockLoop if getattr(item.module, "VIRTUAL_CLOCK", False) else asyncio.new_event_loop}
