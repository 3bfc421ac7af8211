"""Redis client: cancellations and deadlines of commands."""

import asyncio
import time

import pytest
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.redis_client import COMMAND_SECONDS, open_redis_clients

from tests.fixtures.virtual_clock import CLOCK

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


async def test_an_event_loop_that_stands_still_does_not_use_up_the_time_of_a_command(servers: DataDirectory) -> None:
    redis = open_redis_clients(servers.redis_url).commands

    async def publish() -> int:
        return int(await redis.publish("test", b"message"))

    assert await publish() == 0
    for steps in range(STEPS):
        asking = asyncio.create_task(publish())
        for _ in range(steps):
            await asyncio.sleep(0)
        if asking.done():
            break
        time.sleep(0.1)  # noqa: ASYNC251 - what a busy machine does, in which time Redis has answered
        CLOCK.advance(2 * COMMAND_SECONDS)
        assert await asking == 0
    await redis.aclose()


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as silent:
        host, port = silent.sockets[0].getsockname()
        redis = open_redis_clients(f"redis://{host}:{port}").commands
        with pytest.raises(RedisTimeoutError):
            await redis.publish("test", b"message")
        await redis.aclose()


async def test_the_error_names_the_problem_of_each_node() -> None:
    """A node that was slow hid that another one refused the password."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"-WRONGPASS invalid username-password pair or user is disabled.\r\n")
        await reader.read()
        writer.close()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with (
        await asyncio.start_server(refuse, "127.0.0.1", 0) as refusing,
        await asyncio.start_server(stay_silent, "127.0.0.1", 0) as silent,
    ):
        hosts = ",".join(f"127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in (refusing, silent))
        redis = open_redis_clients(f"redis+cluster://user:wrong@{hosts}")
        with pytest.raises(RedisError, match=r"invalid username-password pair.*; Redis did not answer"):
            await redis.commands.time()
        await redis.close()
