"""Fixtures of the call engine's tests, each of which has a loop of its own."""

import asyncio
import inspect
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from switchboard.engine.conversation.engine import CallEngine


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(obj: object) -> None:
    if inspect.iscoroutinefunction(obj):
        pytest.mark.asyncio(loop_scope="function")(obj)


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
