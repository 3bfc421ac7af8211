"""A standby takes over from PostgreSQL, again and again, while people talk: their calls go on.

`make chaos` runs it with its number of callers and of rounds, CI with four callers and one round.
"""

import asyncio
import os
from pathlib import Path

import pytest
import structlog
from switchboard.foundation.leases import SILENT_SECONDS

from tests.chaos.live_calls import count_live_calls, wait_until_leases_are_judged
from tests.chaos.scenario import start_traffic
from tests.fixtures.eventually import eventually
from tests.fixtures.failover import ReplicatedServers
from tests.fixtures.receiver import Receiver

logger = structlog.get_logger()
CALLERS = int(os.environ.get("CHAOS_CALLERS", "4"))
ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "1"))
CALL_SECONDS = 300.0


@pytest.mark.system
@pytest.mark.timeout(300 + 120 * ROUNDS)
async def test_failovers_of_postgres_end_no_call(tmp_path: Path, receiver: Receiver) -> None:
    servers = ReplicatedServers(tmp_path)
    async with start_traffic(tmp_path, receiver, servers=servers) as (_, traffic):
        for number in range(ROUNDS):
            if number:
                servers.swap()
                await servers.add_standby()
            traffic.stop.clear()
            calling = [
                asyncio.create_task(traffic.keep_calling((CALL_SECONDS, CALL_SECONDS), tmp_path))
                for _ in range(CALLERS)
            ]
            await eventually(lambda: count_live_calls(traffic), lambda count: count == CALLERS)
            await fail_over(servers)
            await wait_until_leases_are_judged(traffic)
            live = await count_live_calls(traffic)
            logger.info("failover", number=number + 1, calls=CALLERS, ended=CALLERS - live)
            assert live == CALLERS
            traffic.stop.set()
            for caller in calling:
                caller.cancel()
            await asyncio.gather(*calling, return_exceptions=True)
            await eventually(lambda: count_live_calls(traffic), lambda count: count == 0)


async def fail_over(servers: ReplicatedServers) -> None:
    await servers.kill_primary()
    await asyncio.sleep(SILENT_SECONDS + 2)  # every lease lapses
    servers.move("server")
    await servers.promote()
