"""Usage by month, from calls, text messages, and charges."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from switchboard.foundation.database import now
from switchboard.resources.billing import ledger
from switchboard.resources.identity.models import Organization
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.calls import add_call
from tests.fixtures.json_access import objects_at


async def test_usage_lists_the_current_month_and_its_history(caller: Caller, runtime: Runtime) -> None:
    moment = now()
    await add_call(runtime, caller, moment, duration_seconds=90)
    await add_call(runtime, caller, moment, duration_seconds=30, direction="outbound")
    async with runtime.database.write(caller.organization_id) as session:
        await ledger.settle_hold(session, "call", uuid4(), Decimal("0.25"))
        await ledger.credit_account(session, Decimal(10))
    usage = await caller.get("/v1/usage")
    assert usage.status == 200
    assert usage.json == {
        "period": moment.strftime("%Y-%m"),
        "call_minutes": 2,
        "calls": 2,
        "sms_sent": 0,
        "sms_received": 0,
        "cost": 0.25,
    }
    history = (await caller.get("/v1/usage/history")).json["items"]
    assert isinstance(history, list)
    assert history[0] == usage.json
    assert len(history) == 6
    assert all(month["calls"] == 0 and month["cost"] == 0 for month in objects_at(history[1:]))
    periods = [str(month["period"]) for month in objects_at(history)]
    assert periods == sorted(periods, reverse=True)


async def test_months_follow_the_organizations_time_zone(caller: Caller, runtime: Runtime) -> None:
    """The last evening of a month in UTC is the first morning of the next month in Auckland."""
    async with runtime.database.system() as session:
        (await session.get_one(Organization, caller.organization_id)).timezone = "Pacific/Auckland"
    auckland = now() + timedelta(hours=13)
    first = datetime(auckland.year, auckland.month, 1, tzinfo=UTC)
    await add_call(runtime, caller, first - timedelta(hours=1))
    await add_call(runtime, caller, first - timedelta(hours=23))
    history = (await caller.get("/v1/usage/history?months=2")).json["items"]
    assert [month["calls"] for month in objects_at(history)] == [1, 1]


@pytest.mark.parametrize("query", ["months=0", "months=13", "months=x", "days=3"])
async def test_invalid_months_are_refused(caller: Caller, query: str) -> None:
    assert (await caller.get(f"/v1/usage/history?{query}")).status == 422


async def test_other_organizations_usage_is_not_counted_and_the_scope_is_required(
    caller: Caller, stranger: Caller, organizations: Organizations, runtime: Runtime
) -> None:
    await add_call(runtime, caller, now())
    assert (await stranger.get("/v1/usage")).json["calls"] == 0
    for path in ("/v1/usage", "/v1/usage/history"):
        assert (await (await organizations.create(scopes=["analytics:read"])).get(path)).status == 403
