"""Redis client: a task that is canceled during a command ends."""

import asyncio

from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.redis_client import open_redis_clients

STEPS = 40
"""A command takes fewer steps of the event loop than this."""


async def test_a_canceled_task_ends_wherever_its_command_is(servers: DataDirectory) -> None:
    redis = open_redis_clients(servers.redis_url).commands

    async def publish_for_ever() -> None:
        while True:
            await redis.publish("test", b"message")

    for steps in range(STEPS):
        task = asyncio.create_task(publish_for_ever())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=5)
        assert done, f"the task went on after a cancellation at step {steps}"
    await redis.aclose()
