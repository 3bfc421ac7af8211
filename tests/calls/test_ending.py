"""The end of a call whose process cannot extend its lease, or is gone."""

from datetime import timedelta

import pytest
from sqlmodel import select
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import Database, now
from switchboard.foundation.jobs import MOST_BETWEEN_LOOKS
from switchboard.resources.billing.models import LedgerEntry
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.jobs import reconcile_calls, watch_leases
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import LEASE, is_over
from switchboard.resources.identity.policy import Policy, Prices
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, Organizations, create_bakery, fresh_number
from tests.fixtures.calls import add_call
from tests.fixtures.eventually import eventually
from tests.fixtures.leases import look_for
from tests.fixtures.monitors import connect_telephone


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
                call = await calls.get_call(session, caller.call_id, lock=True)
                call.started_at, call.watch_at = now() - timedelta(minutes=2), now() - timedelta(seconds=1)
            await look_for(live.runtime)
            await live.runtime.call(reconcile_calls)
            async with live.runtime.database.write(organization_id) as session:
                return await calls.get_call(session, caller.call_id)

        ended = await eventually(reconcile_without_lease, is_over)  # the heartbeat may extend the lease in between
        assert ended.error_message == "The server that ran the call stopped."
        assert ended.duration_seconds == 109, "until the last sign of life, and not until somebody noticed"

    async def look() -> Call:
        async with live.runtime.database.write(organization_id) as session:
            return await calls.get_call(session, caller.call_id)

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
    lapsed = {"holder": "gone", "started_at": now(), "watch_at": now() - 2 * LEASE}
    call = await add_call(runtime, caller, now(), status="in-progress", **lapsed)

    async def reconcile() -> object:
        await runtime.call(reconcile_calls)
        return (await caller.get(f"/v1/calls/{call.id}")).json["status"]

    assert not await look_for(runtime, LEASE.total_seconds() - 1)
    assert await reconcile() == "in-progress"
    away = Database("postgresql://127.0.0.1:1/away", pool_size=1, statement_timeout=1)
    with pytest.raises(OSError, match="Connect call failed"):
        await watch_leases(away, runtime.call_beats)
    assert not await look_for(runtime, LEASE.total_seconds() - 1)
    read_only = Database(f"{servers.database_url}&default_transaction_read_only=on")
    await watch_leases(read_only, runtime.call_beats)
    await read_only.close()
    assert not await look_for(runtime, LEASE.total_seconds() - 1)
    later = runtime.call_beats.clock() + MOST_BETWEEN_LOOKS + 1
    runtime.call_beats.clock = lambda: later
    await runtime.call(watch_leases)
    assert await reconcile() == "in-progress"
    assert await look_for(runtime) >= {"gone", call.id}
    assert await reconcile() == "failed"
