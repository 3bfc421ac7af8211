"""Row counts of lists equal the rows, whatever is written and however the counts are compacted."""

import asyncio

import pytest
from sqlalchemy import text
from sqlmodel import col, delete, func, select
from sqlmodel.ext.asyncio.session import AsyncSession
from switchboard.apps.worker.jobs import compact_row_counts
from switchboard.foundation.database import BUCKETS, RecordTable, TenantTable, now
from switchboard.foundation.web import row_counts
from switchboard.foundation.web.row_counts import RowCount, RowCountChange
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.queries import select_calls
from switchboard.resources.calls.schemas import CallQuery
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.calls import add_call

AGENT = "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11"
QUERIES = [
    {},
    {"status": "completed"},
    {"status": "failed"},
    {"direction": "inbound"},
    {"agent_id": AGENT},
    {"agent_id": AGENT, "status": "busy"},
    {"agent_id": "no agent"},
    {"agent_id": AGENT, "status": "completed", "direction": "outbound"},
]


async def kept_count(session: AsyncSession, list_name: str) -> int:
    counted = 0
    for kept in (RowCount, RowCountChange):
        query = select(func.coalesce(func.sum(kept.rows), 0)).where(col(kept.list) == list_name)
        counted += int((await session.exec(query)).one())
    return counted


async def check_calls(runtime: Runtime, caller: Caller) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        for query in QUERIES:
            rows = select_calls(session, CallQuery.model_validate(query))
            counted = (await session.exec(select(func.count()).select_from(rows.subquery()))).one()
            assert await row_counts.count_rows(session, rows) == counted, query


async def test_list_totals_are_exact_with_and_without_filters(
    caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    for status in ("completed", "failed", "busy", "completed"):
        await add_call(runtime, caller, now(), status=status, direction="outbound", agent_id=AGENT)
        await add_call(runtime, caller, now(), status=status)
        await add_call(runtime, stranger, now(), status=status, agent_id=AGENT)
    await check_calls(runtime, caller)
    async with runtime.database.write(caller.organization_id) as session:
        for call in (await session.exec(select_calls(session, CallQuery(status="completed")))).all():
            call.status = "failed"
    await check_calls(runtime, caller)
    async with runtime.database.write(caller.organization_id) as session:
        await session.delete((await session.exec(session.select(Call).limit(1))).one())
    await check_calls(runtime, caller)


async def test_totals_come_from_row_counters(caller: Caller, runtime: Runtime) -> None:
    await add_call(runtime, caller, now())
    async with runtime.database.system() as session:
        tamper = text(
            "insert into row_count_change (organization_id, list, parent, facets, rows)"
            " values (:id, 'call', :nobody, '{}', 41)"
        )
        nil_id = "00000000-0000-0000-0000-000000000000"
        await (await session.connection()).execute(tamper, {"id": caller.organization_id, "nobody": nil_id})
    assert (await caller.get("/v1/calls")).json["total"] == 42


async def test_tables_with_a_row_counter_are_those_with_triggers(runtime: Runtime) -> None:
    triggers = text("select tgrelid::regclass::text from pg_trigger where tgname like 'count\\_%\\_insert'")
    tables = [*TenantTable.__subclasses__(), *RecordTable.__subclasses__()]
    counted = {str(table.__tablename__) for table in tables if hasattr(table, "__row_counter__")}
    assert len(counted) == 16
    async with runtime.database.system() as session:
        assert set((await (await session.connection()).execute(triggers)).scalars()) == counted


async def test_compacting_changes_no_sum_under_concurrency(caller: Caller, runtime: Runtime) -> None:
    async def write() -> None:
        for _ in range(15):
            await add_call(runtime, caller, now(), status="queued")

    async def compact() -> None:
        for _ in range(15):
            async with runtime.database.system() as session:
                await row_counts.merge_row_count_changes(session, buckets=range(BUCKETS))

    await asyncio.gather(write(), compact(), write(), compact())
    await runtime.call(compact_row_counts)
    async with runtime.database.write(caller.organization_id) as session:
        assert (await session.exec(select(RowCountChange).where(col(RowCountChange.list) == "call"))).all() == []
        remaining = (await session.exec(select(RowCount.rows).where(col(RowCount.list) == "call"))).all()
        assert remaining == [30]
        assert (await session.exec(select(func.count()).select_from(Call))).one() == 30
        await session.exec(delete(Call).where(session.owns(Call)))
    await runtime.call(compact_row_counts)
    async with runtime.database.write(caller.organization_id) as session:
        assert (await session.exec(select(RowCount.rows).where(col(RowCount.list) == "call"))).all() == []


async def test_a_tenant_cannot_change_its_counts(caller: Caller, runtime: Runtime) -> None:
    with pytest.raises(Exception, match="permission denied"):
        async with runtime.database.write(caller.organization_id) as session:
            session.add(
                RowCountChange(
                    organization_id=caller.organization_id,
                    list="call",
                    parent=caller.organization_id,
                    facets={},
                    rows=1,
                )
            )


async def test_simulations_are_counted_per_agent(caller: Caller, runtime: Runtime) -> None:
    one, other = [(await caller.post("/v1/agents", {"name": "Agent"})).json["id"] for _ in range(2)]
    body = {"name": "Test", "lines": ["Hello"], "assertions": [{"type": "said", "text": "yes"}]}
    for agent_id in (one, one, other):
        assert (await caller.post(f"/v1/agents/{agent_id}/simulations", body)).status == 201
    assert [(await caller.get(f"/v1/agents/{agent_id}/simulations")).json["total"] for agent_id in (one, other)] == [
        2,
        1,
    ]
    await caller.send("DELETE", f"/v1/agents/{one}")
    async with runtime.database.write(caller.organization_id) as session:
        assert await kept_count(session, "simulation") == 1


async def test_cascading_deletions_are_subtracted(live: LivePlatform) -> None:
    people = [{"phone_number": f"+1555019{number:04d}"} for number in range(20)]
    body = {"name": "Reminders", "agent_id": live.agent_id, "phone_number_id": live.number_id, "contacts": people}
    campaign = (await live.caller.post("/v1/campaigns", body)).json
    async with live.runtime.database.write(live.caller.organization_id) as session:
        assert await kept_count(session, "campaign_contact") == 20
    await live.caller.send("DELETE", f"/v1/campaigns/{campaign['id']}")
    async with live.runtime.database.write(live.caller.organization_id) as session:
        assert await kept_count(session, "campaign_contact") == 0
