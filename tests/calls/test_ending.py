"""The end of a call that two processes end."""

from datetime import timedelta

from sqlmodel import select
from switchboard.foundation.database import now
from switchboard.resources.billing.models import LedgerEntry
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.jobs import reconcile_calls
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import is_over
from switchboard.resources.identity.policy import Policy, Prices

from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number
from tests.fixtures.eventually import eventually
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
            async with live.runtime.database.tenant(organization_id) as session:
                call = await calls.get_call(session, caller.call_id, lock=True)
                call.watch_at = now() - timedelta(seconds=1)
            await live.runtime.call(reconcile_calls)
            async with live.runtime.database.tenant(organization_id) as session:
                return await calls.get_call(session, caller.call_id)

        ended = await eventually(reconcile_without_lease, is_over)  # the heartbeat may extend the lease in between
        assert ended.error_message == "The server that ran the call stopped."

    async def look() -> Call:
        async with live.runtime.database.tenant(organization_id) as session:
            return await calls.get_call(session, caller.call_id)

    call = await eventually(look, lambda found: found.served_by and found.has_recording)
    async with live.runtime.database.tenant(organization_id) as session:
        entries = (await session.exec(select(LedgerEntry).where(LedgerEntry.reference == call.id))).all()
    assert call.cost_total == -sum(entry.amount for entry in entries) > 0
