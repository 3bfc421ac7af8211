"""Counters of calls, which admission reads in place of the calls: they have what counting the calls would give."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from sqlmodel import col, delete, func, select
from switchboard.foundation.database import WriteSession, now
from switchboard.resources.calls import queries
from switchboard.resources.calls.allowance import acquire_call_allowance
from switchboard.resources.calls.models import CHAT, Call, CallCounterChange
from switchboard.resources.calls.states import finish_call
from switchboard.resources.destinations.service import HOUR
from switchboard.resources.identity.policy import OutboundLimits, Policy
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.calls import add_call
from tests.fixtures.virtual_clock import CLOCK

LIMITED = Policy(max_concurrent_calls=1000, outbound_limits=OutboundLimits(calls_per_hour=1000))
OPEN = ("queued", "ringing", "in-progress")
STEPS, MINUTE = 60, 60


async def count_calls(session: WriteSession) -> tuple[int, int]:
    """Count the calls under way, and the outbound calls of the last hour, from their rows."""
    calls = list(await session.exec(session.select(Call).execution_options(populate_existing=True)))
    running = sum(call.status in OPEN and call.ended_at is None and call.carrier != CHAT for call in calls)
    counted = [
        call for call in calls if call.direction == "outbound" or not (call.transferred_to or "c").startswith("c")
    ]
    return running, sum(call.created_at > now() - HOUR for call in counted)


async def require_equal(runtime: Runtime, caller: Caller) -> None:
    """Compare what admission reads to the rows."""
    async with runtime.database.write(caller.organization_id) as session:
        allowance = await acquire_call_allowance(session)
        assert (1000 - allowance.calls_left, allowance.begun) == await count_calls(session)


async def change_calls(runtime: Runtime, caller: Caller, calls: list[Call], random: Random) -> None:
    """Let time pass, then add, end, transfer, or delete a call."""
    CLOCK.advance(random.choice((0, 0, 1, 7 * MINUTE)))
    action = random.choice(("add", "add", "add", "end", "transfer", "delete"))
    if action == "add" or not calls:
        age, fields = timedelta(minutes=random.choice((0, 0, 30, 58, 70))), build_fields(random)
        calls.append(await add_call(runtime, caller, now() - age, **fields))
        return
    call = calls[random.randrange(len(calls))]
    async with runtime.database.write(caller.organization_id) as session:
        found = await session.lock(Call, call.id)
        assert found is not None
        if action == "delete":
            calls.remove(call)
            await session.delete(found)
        elif action == "end":
            await finish_call(session, found, "completed")
        else:
            found.transferred_to = random.choice(("+15550100009", "client:person"))


def build_fields(random: Random) -> dict[str, Any]:
    carrier, status = random.choice(("loopback", "loopback", CHAT)), random.choice((*OPEN, "completed"))
    ended_at = now() if status == "completed" else random.choice((None, None, now()))
    return {
        "direction": random.choice(("inbound", "outbound")),
        "carrier": carrier,
        "status": status,
        "ended_at": ended_at,
    }


@pytest.mark.parametrize("many_changes", [0, 3, 100])
async def test_counters_have_what_rows_have(
    runtime: Runtime, organizations: Organizations, monkeypatch: pytest.MonkeyPatch, many_changes: int
) -> None:
    monkeypatch.setattr(queries, "MANY_CHANGES", many_changes)
    caller, random, calls = await organizations.create(policy=LIMITED), Random(many_changes), list[Call]()
    for _ in range(STEPS):
        await change_calls(runtime, caller, calls, random)
        if random.random() < 0.5:
            await require_equal(runtime, caller)
    CLOCK.advance(30 * 60 * MINUTE)  # the count of begun calls is older than a day
    await require_equal(runtime, caller)


async def test_a_limit_that_comes_later_counts_the_calls_before_it(
    runtime: Runtime, organizations: Organizations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MANY_CHANGES", 0)
    caller = await organizations.create(policy=LIMITED)
    for limits_calls in (False, True, False, True):
        for age in (0, 59, 61):
            await add_call(runtime, caller, now() - timedelta(minutes=age), direction="outbound")
        async with runtime.database.write(caller.organization_id) as session:
            await queries.merge_call_changes(session, limits_calls=limits_calls)
            found, _ = await queries.read_call_usage(session, limits_calls=True)
            assert found.begun == (await count_calls(session))[1]


async def test_calls_that_begin_and_end_at_once_are_counted(
    runtime: Runtime, organizations: Organizations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MANY_CHANGES", 0)
    caller = await organizations.create(policy=LIMITED)

    async def begin_and_end() -> None:
        for _ in range(5):
            call = await add_call(runtime, caller, now(), direction="outbound", status="in-progress")
            async with runtime.database.write(caller.organization_id) as session:
                await acquire_call_allowance(session)
            async with runtime.database.write(caller.organization_id) as session:
                found = await session.lock(Call, call.id)
                assert found is not None
                await finish_call(session, found, "completed")

    await asyncio.gather(*(begin_and_end() for _ in range(6)))
    await require_equal(runtime, caller)
    assert await list_changes(runtime, caller) == [], "they have been merged"
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(delete(Call).where(session.owns(Call)))
    await require_equal(runtime, caller)


async def list_changes(runtime: Runtime, caller: Caller) -> Sequence[int]:
    """List the changes that have not been merged."""
    async with runtime.database.write(caller.organization_id) as session:
        ours = col(CallCounterChange.organization_id) == caller.organization_id
        return (
            await session.exec(select(func.count()).select_from(CallCounterChange).where(ours).having(func.count() > 0))
        ).all()
