"""Analytics over an organization's calls."""

from datetime import timedelta
from decimal import Decimal

import pytest
from switchboard.foundation.database import now
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.calls import add_call


async def test_the_overview_counts_the_period(caller: Caller, runtime: Runtime) -> None:
    today = now()
    good = {"duration_seconds": 60, "cost_total": Decimal("0.5"), "call_successful": True, "user_sentiment": "positive"}
    bad = {
        "duration_seconds": 30,
        "cost_total": Decimal("0.25"),
        "call_successful": False,
        "user_sentiment": "negative",
    }
    await add_call(runtime, caller, today, **good)
    await add_call(runtime, caller, today, **bad)
    await add_call(runtime, caller, today, status="busy", direction="outbound")
    await add_call(runtime, caller, today - timedelta(days=7), duration_seconds=600)
    response = await caller.get("/v1/analytics/overview?days=7")
    assert response.status == 200
    assert response.json == {
        "period": {"from": str((today - timedelta(days=6)).date()), "to": str(today.date()), "days": 7},
        "total_calls": 3,
        "completed_calls": 2,
        "failed_calls": 1,
        "inbound_calls": 2,
        "outbound_calls": 1,
        "total_minutes": 1.5,
        "average_duration_seconds": 45,
        "success_rate": 0.5,
        "total_cost": 0.75,
        "average_cost": 0.25,
        "sentiment": {"positive": 1, "neutral": 0, "negative": 1, "unknown": 1},
    }
    assert (await caller.get("/v1/analytics/overview")).json["total_calls"] == 4


async def test_an_empty_period_has_zeros_and_nulls(caller: Caller) -> None:
    overview = (await caller.get("/v1/analytics/overview")).json
    assert (overview["total_calls"], overview["total_minutes"], overview["total_cost"]) == (0, 0, 0)
    assert (overview["average_duration_seconds"], overview["success_rate"], overview["average_cost"]) == (
        None,
        None,
        None,
    )


async def test_every_day_of_the_period_is_listed(caller: Caller, runtime: Runtime) -> None:
    today = now()
    await add_call(runtime, caller, today, duration_seconds=90, cost_total=Decimal("0.5"))
    await add_call(runtime, caller, today - timedelta(days=2), status="no-answer", direction="outbound")
    response = await caller.get("/v1/analytics/calls-over-time?days=3")
    zeros = {"total": 0, "completed": 0, "failed": 0, "inbound": 0, "outbound": 0, "minutes": 0, "cost": 0}
    assert response.json["items"] == [
        {"date": str((today - timedelta(days=2)).date()), **zeros, "total": 1, "failed": 1, "outbound": 1},
        {"date": str((today - timedelta(days=1)).date()), **zeros},
        {"date": str(today.date()), **zeros, "total": 1, "completed": 1, "inbound": 1, "minutes": 1.5, "cost": 0.5},
    ]
    thirty = (await caller.get("/v1/analytics/calls-over-time")).json["items"]
    assert isinstance(thirty, list)
    assert len(thirty) == 30


@pytest.mark.parametrize("path", ["overview", "calls-over-time"])
@pytest.mark.parametrize("query", ["days=0", "days=91", "days=x", "months=3"])
async def test_invalid_dates_are_refused(caller: Caller, path: str, query: str) -> None:
    assert (await caller.get(f"/v1/analytics/{path}?{query}")).status == 422


async def test_other_organizations_calls_are_not_counted_and_the_scope_is_required(
    caller: Caller, stranger: Caller, organizations: Organizations, runtime: Runtime
) -> None:
    await add_call(runtime, caller, now())
    assert (await stranger.get("/v1/analytics/overview")).json["total_calls"] == 0
    assert (await (await organizations.create(scopes=["billing:read"])).get("/v1/analytics/overview")).status == 403
