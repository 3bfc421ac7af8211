"""The lock of an organization's calls: far from its limits a few begin at once, and its limits are exact."""

import asyncio

import pytest
from sqlmodel import func, select
from switchboard.foundation.database import now
from switchboard.foundation.web.errors import OutboundPaused, TooManyCalls
from switchboard.resources.calls.allowance import acquire_call_allowance
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.queries import PARTS, lock_calls
from switchboard.resources.destinations import queries
from switchboard.resources.identity.policy import OutboundLimits, Policy
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.calls import add_call

MOST = 3 * PARTS


async def begin_call(runtime: Runtime, caller: Caller, *, for_one: bool = True) -> str:
    """Begin a call, as `POST /v1/calls` does; return "begun", or the name of the refusal."""
    async with runtime.database.write(caller.organization_id) as session:
        allowed = await acquire_call_allowance(session, for_one=for_one)
        if (refusal := allowed.find_refusal()) is not None:
            return type(refusal).__name__
        call = Call(
            organization_id=caller.organization_id,
            direction="outbound",
            status="queued",
            from_number="+15550100001",
            to_number="+15550100002",
            carrier="loopback",
        )
        session.add(call)
        await allowed.count_outbound_call(session)
        await asyncio.sleep(0)
    return "begun"


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        (Policy(max_concurrent_calls=MOST), TooManyCalls),
        (Policy(max_concurrent_calls=1000, outbound_limits=OutboundLimits(calls_per_hour=MOST)), OutboundPaused),
    ],
)
async def test_a_limit_is_reached_exactly_by_calls_that_begin_at_once(
    runtime: Runtime,
    organizations: Organizations,
    monkeypatch: pytest.MonkeyPatch,
    limits: Policy,
    refusal: type[Exception],
) -> None:
    monkeypatch.setattr(queries, "MANY_CHANGES", 10)
    caller = await organizations.create(policy=limits)
    results = await asyncio.gather(
        *(begin_call(runtime, caller, for_one=number % 10 != 0) for number in range(2 * MOST))
    )
    assert sorted(results) == sorted(["begun"] * MOST + [refusal.__name__] * MOST)
    async with runtime.database.write(caller.organization_id) as session:
        assert (await session.exec(select(func.count()).select_from(Call))).one() == MOST


async def test_far_from_the_limits_calls_begin_at_once(
    runtime: Runtime, organizations: Organizations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another transaction has a part of the lock. A call with another part begins beside it, and one that needs the
    whole lock waits.
    """
    caller, parts = await organizations.create(policy=Policy(max_concurrent_calls=MOST)), iter((3, 4, 5, 5))
    monkeypatch.setattr("secrets.randbelow", lambda _most: next(parts))
    async with runtime.database.write(caller.organization_id) as other:
        await acquire_call_allowance(other, for_one=True)
        assert await begin_call(runtime, caller) == "begun"
        waiting = asyncio.create_task(begin_call(runtime, caller, for_one=False))
        await asyncio.wait([waiting], timeout=0.2)
        assert not waiting.done()
    assert await waiting == "begun"


async def test_what_was_written_before_stays_if_a_limit_is_near(runtime: Runtime, organizations: Organizations) -> None:
    caller = await organizations.create(policy=Policy(max_concurrent_calls=MOST))
    for _ in range(MOST - 1):
        await add_call(runtime, caller, now(), status="queued")
    before = await add_call(runtime, caller, now())
    async with runtime.database.write(caller.organization_id) as session:
        call = await session.get_one(Call, before.id)
        call.ended_reason = "changed"
        allowed = await acquire_call_allowance(session, for_one=True)
        assert allowed.calls_left == 1
        await lock_calls(session)  # it has the whole lock
    async with runtime.database.write(caller.organization_id) as session:
        assert (await session.get_one(Call, before.id)).ended_reason == "changed"
