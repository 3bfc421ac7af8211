"""The end of a call whose process cannot extend its lease, or is gone."""

import asyncio
from datetime import timedelta

import pytest
from sqlmodel import col, select, update
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import Database, now
from switchboard.foundation.leases import MOST_BETWEEN_LOOKS, SILENT_SECONDS, ProcessLease
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.resources.billing.models import LedgerEntry
from switchboard.resources.calls.jobs import end_abandoned_calls, hang_up_call, watch_leases
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import is_over
from switchboard.resources.identity.policy import Policy, Prices
from switchboard.runtime import Runtime
from switchboard_offline.loopback.provider import LoopbackTelephony

from tests.fixtures.app import Caller, LivePlatform, Organizations, create_bakery, fresh_number
from tests.fixtures.calls import add_call
from tests.fixtures.eventually import eventually
from tests.fixtures.leases import add_dead_process, look_for
from tests.fixtures.monitors import connect_telephone
from tests.fixtures.work import do_due_work


async def test_a_call_that_the_reconciler_ends_while_it_goes_on_costs_what_the_ledger_says(
    live: LivePlatform, organizations: Organizations
) -> None:
    """Its server could not extend the lease for a while, but still reports the call's result."""
    charged = await organizations.create(policy=Policy(prices=Prices(call_minute=1, speech_1000_characters=1)))
    live = await create_bakery(live.runtime, charged, fresh_number())
    organization_id = charged.organization_id
    async with connect_telephone(live) as caller:
        await caller.phone.wait(1.5)

        async def reconcile_without_lease() -> Call:
            async with live.runtime.database.write(organization_id) as session:
                call = await lock_row(session, Call, caller.call_id)
                call.started_at = now() - timedelta(minutes=2)
            async with live.runtime.database.system() as session:
                await session.exec(update(ProcessLease).values(beat_at=now() - timedelta(seconds=11)))
            await look_for(live.runtime)
            await live.runtime.call(end_abandoned_calls)
            async with live.runtime.database.write(organization_id) as session:
                return await get_row(session, Call, caller.call_id)

        ended = await eventually(reconcile_without_lease, is_over)  # the heartbeat may extend the lease in between
        assert ended.error_message == "The server that ran the call stopped."
        assert ended.duration_seconds == 109, "until the last sign of life, and not until somebody noticed"

    async def look() -> Call:
        async with live.runtime.database.write(organization_id) as session:
            return await get_row(session, Call, caller.call_id)

    call = await eventually(look, lambda found: found.served_by and found.has_recording)
    async with live.runtime.database.write(organization_id) as session:
        entries = (await session.exec(select(LedgerEntry).where(LedgerEntry.reference == call.id))).all()
    assert call.cost_total == -sum(entry.amount for entry in entries) > 0


async def test_a_lease_is_judged_by_what_was_seen_without_a_gap(
    runtime: Runtime, caller: Caller, servers: DataDirectory
) -> None:
    """While the database is unreachable or still a standby, nobody can extend one, and a standby that takes over has
    lost the last extensions.
    """
    dead = await add_dead_process(runtime.database)
    call = await add_call(runtime, caller, now(), status="in-progress", holder=dead, started_at=now())

    async def reconcile() -> object:
        await runtime.call(end_abandoned_calls)
        return (await caller.get(f"/v1/calls/{call.id}")).json["status"]

    assert dead not in await look_for(runtime, SILENT_SECONDS - 1)
    assert await reconcile() == "in-progress"
    away = Database("postgresql://127.0.0.1:1/away", pool_size=1, statement_timeout=1)
    with pytest.raises(OSError, match="Connect call failed"):
        await watch_leases(away, runtime.lease_watch)
    assert dead not in await look_for(runtime, SILENT_SECONDS - 1)
    read_only = Database(f"{servers.database_url}&default_transaction_read_only=on")
    await watch_leases(read_only, runtime.lease_watch)
    await read_only.close()
    assert dead not in await look_for(runtime, SILENT_SECONDS - 1)
    later = runtime.lease_watch.clock() + MOST_BETWEEN_LOOKS + 1
    runtime.lease_watch.clock = lambda: later
    await runtime.call(watch_leases)
    assert await reconcile() == "in-progress"
    assert dead in await look_for(runtime)
    assert await reconcile() == "failed"


async def test_the_calls_of_a_dead_process_end_before_a_carrier_is_asked(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A carrier that does not answer must not delay the end of other calls; each leg is hung up once, afterwards."""
    hung_up, dying = list[str](), {"leg 3"}

    async def hang_up(_: LoopbackTelephony, carrier_call_id: str) -> None:
        if carrier_call_id in dying:
            dying.remove(carrier_call_id)
            raise asyncio.CancelledError  # as the worker's death leaves it
        hung_up.append(carrier_call_id)

    monkeypatch.setattr(LoopbackTelephony, "hang_up", hang_up)
    fields = {"status": "in-progress", "holder": await add_dead_process(runtime.database), "started_at": now()}
    legs = [f"leg {number}" for number in range(12)]
    lost = [await add_call(runtime, caller, now(), carrier_call_id=leg, **fields) for leg in legs]
    await look_for(runtime)
    await runtime.call(end_abandoned_calls)
    assert hung_up == []
    ended = [(await caller.get(f"/v1/calls/{call.id}")).json["status"] for call in lost]
    assert ended == ["failed"] * len(lost)
    for _ in range(2):
        await do_due_work(runtime, hang_up_call)
    assert sorted(hung_up) == sorted(set(legs) - {"leg 3"})
    async with runtime.database.write(caller.organization_id) as session:
        left = session.owns(Call), col(Call.watch_at).is_not(None)
        assert (await session.exec(select(Call.carrier_call_id).where(*left))).all() == ["leg 3"]
        await session.exec(update(Call).where(*left).values(watch_at=now()))
    await do_due_work(runtime, hang_up_call)
    assert sorted(hung_up) == sorted(legs)


async def test_a_call_that_its_process_does_not_know_of_ends(live: LivePlatform) -> None:
    """The reply to the claim was lost, and the socket was closed meanwhile: the process's lease goes on."""
    fields = {"status": "in-progress", "holder": live.runtime.lease.node, "started_at": now()}
    lost = await add_call(live.runtime, live.caller, now(), **fields)
    ended = await live.wait_for_end(lost.id)
    assert (ended["status"], ended["ended_reason"]) == ("failed", "error")
