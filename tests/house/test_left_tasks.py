"""Clean-up of the tasks that a test leaves in the event loop."""

import asyncio

from tests.fixtures.left_tasks import cancel_left_tasks


async def test_a_task_begins_before_it_is_canceled() -> None:
    """A connection that is accepted in the moment of the cancelation stayed open: its handler had not begun."""
    loop = asyncio.get_running_loop()
    steps = []

    async def handle() -> None:
        steps.append("accepted")
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("closed")

    started: list[asyncio.Task[None]] = []
    before = asyncio.all_tasks()
    loop.call_soon(lambda: started.append(loop.create_task(handle())))
    await cancel_left_tasks(before)
    assert steps == ["accepted", "closed"]
    assert started[0].cancelled()
