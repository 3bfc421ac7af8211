"""Fixtures of the call engine's tests, each of which has a loop of its own.

Modules that set `VIRTUAL_CLOCK` run on a virtual clock; the others run in real time, because they use processes.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import pytest_asyncio
from switchboard.engine.conversation.engine import CallEngine

from tests.fixtures.virtual_clock import VirtualClockLoop


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(obj: object) -> None:
    if inspect.iscoroutinefunction(obj):
        pytest.mark.asyncio(loop_scope="function")(obj)


def pytest_asyncio_loop_factories(item: pytest.Function) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"loop": VirtualClockLoop if getattr(item.module, "VIRTUAL_CLOCK", False) else asyncio.new_event_loop}


@pytest_asyncio.fixture(loop_scope="function")
async def engine() -> AsyncIterator[CallEngine]:
    """Run a call engine on the loop's clock."""
    engine = CallEngine(asyncio.get_running_loop().time)
    await engine.start()
    yield engine
    assert not engine.live_call_ids
    await engine.close()


@pytest_asyncio.fixture(loop_scope="function")
async def task_check(engine: CallEngine) -> AsyncIterator[None]:
    """Check that calls leave no task behind, for tests without servers."""
    before = len(asyncio.all_tasks())
    yield
    assert len(asyncio.all_tasks()) <= before, "a call leaves no task behind"
