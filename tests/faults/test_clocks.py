"""Workers whose clock is a minute wrong: they end no live call, and still end a call whose server has died."""

from pathlib import Path

import pytest
from switchboard.foundation.database import now

from tests.fixtures.calls import add_call
from tests.fixtures.debian_tools import find_libfaketime
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json
from tests.fixtures.leases import add_dead_process
from tests.fixtures.processes import start_live_platform

pytestmark = pytest.mark.system

SILENT = "+15550100070"


@pytest.mark.parametrize("ahead", ["+60", "-60"])
async def test_a_workers_wrong_clock_ends_no_live_call(tmp_path: Path, ahead: str) -> None:
    wrong = {"LD_PRELOAD": find_libfaketime(), "FAKETIME": ahead, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    async with start_live_platform(tmp_path, worker_environment=wrong) as (live, _):
        placed = await live.place_call(SILENT)

        async def look() -> Json:
            return (await live.caller.get(f"/v1/calls/{placed['id']}")).json

        await eventually(look, lambda call: call["status"] == "in-progress")
        dead = await add_dead_process(live.runtime.database)
        for _ in range(2):  # the reconciler may have read its calls before the live one was placed
            orphan = await add_call(
                live.runtime, live.caller, now(), status="in-progress", holder=dead, started_at=now()
            )
            ended = await live.wait_for_end(orphan.id)
            assert ended["error_message"] == "The server that ran the call stopped."
        assert (await look())["status"] == "in-progress"
