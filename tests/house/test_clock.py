"""The clock of the tests, and their loop."""

import asyncio
import gc
import socket
import time

from tests.fixtures.command_line import Operator
from tests.fixtures.virtual_clock import real_sleep, real_time


async def test_a_command_is_not_ahead_of_the_tests_time(operator: Operator) -> None:
    """The clock stands still while a command works. Links that it had signed were of the future on a busy machine."""
    real_sleep(1.5)
    await asyncio.to_thread(operator.run, "--version")
    assert abs(time.time() - real_time()) < 1


async def test_a_connection_that_comes_while_its_server_closes_is_closed() -> None:
    """Python 3.11 leaves it to the garbage collector, whose warning fails whatever test runs then."""
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()) as client:
        client.setblocking(False)
        before = asyncio.all_tasks()
        while asyncio.all_tasks() == before:  # noqa: ASYNC110 - until the task is made, and no later
            await asyncio.sleep(0)
        server.close()  # The task that accepts has not begun.
        assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
    gc.collect()
