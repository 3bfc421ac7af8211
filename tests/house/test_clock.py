"""The clock of the tests."""

import asyncio
import time

from tests.fixtures.command_line import Operator
from tests.fixtures.virtual_clock import real_sleep, real_time


async def test_a_command_is_not_ahead_of_the_tests_time(operator: Operator) -> None:
    """The clock stands still while a command works. Links that it had signed were of the future on a busy machine."""
    real_sleep(1.5)
    await asyncio.to_thread(operator.run, "--version")
    assert abs(time.time() - real_time()) < 1
