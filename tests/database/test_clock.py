"""The database's clock in a process whose own clock is wrong."""

import time
from datetime import timedelta

import pytest
from sqlalchemy import text
from switchboard.foundation.database import clock, now
from switchboard.foundation.database.clock import DatabaseClock
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller


class Monotonic:
    """The monotonic clock of a process, in seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.seconds)


@pytest.mark.real_time
@pytest.mark.parametrize("ahead", [-60, 60])
async def test_a_process_uses_the_databases_clock(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    with monkeypatch.context() as patch:
        machine = time.time
        patch.setattr(time, "time", lambda: machine() + ahead)
        patch.setattr(clock, "CLOCK", DatabaseClock())
        patch.setattr("switchboard.foundation.database.session.CLOCK", clock.CLOCK)
        async with runtime.database.write(caller.organization_id) as session:
            moment = (await session.exec(text("select clock_timestamp()"))).one()[0]  # type: ignore[call-overload]
        assert abs(now() - moment) < timedelta(seconds=1)


def test_a_reading_that_arrives_late_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    process, database = Monotonic(monkeypatch), DatabaseClock()
    database.adjust(1000.0)
    process.seconds = 110.0
    database.adjust(1009.8)
    assert database.read().timestamp() == 1010.0
    database.adjust(1010.1)
    assert database.read().timestamp() == 1010.1


def test_a_database_whose_clock_is_set_back_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    process, database = Monotonic(monkeypatch), DatabaseClock()
    database.adjust(1000.0)
    process.seconds = 110.0
    database.adjust(950.0)
    assert database.read().timestamp() == 950.0
