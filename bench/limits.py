"""Cost of the decisions that compare limits, for an organization with so many calls, holds, text messages, and
conversations of a widget within the last hour.

Each decision is a transaction of its own over the embedded PostgreSQL, and nothing else runs. `BENCH_ROWS` are the
numbers of each kind of rows. Milliseconds are medians and include the beginning and the commit; buffers are
PostgreSQL's pages of 8 kB.

Then connections run the statements of an admission and nothing else, with 5,000 calls under way: with the whole lock of
the organization's calls, and with a part of it each.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any, Final
from unittest import mock
from uuid import UUID

import asyncpg
from sqlalchemy import Engine, event
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.worker.jobs import compact_limit_counters
from switchboard.foundation.database import WriteSession, new_id
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.resources.billing import ledger
from switchboard.resources.billing.models import LedgerHold
from switchboard.resources.calls.allowance import PARTS, acquire_call_allowance
from switchboard.resources.destinations.service import pause_at_limits, read_limit_counts
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import OutboundLimits
from switchboard.resources.identity.service import get_policy
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.widgets.admission import require_place
from switchboard.resources.widgets.models import Widget, WidgetSession

from bench._background_rows import ENDS, build_call, build_policy, derive_id
from bench.embedded_server import run_with_servers
from bench.scale import COUNTS, OPEN_CALL, Bench, create_organization, insert_rows

ROWS: Final = [int(rows) for rows in os.environ.get("BENCH_ROWS", "1000,10000,100000").split(",")]
ROUNDS: Final = 20
LIMITS: Final = OutboundLimits(calls_per_hour=10**7, minutes_per_hour=10**7, texts_per_hour=10**7, spend_per_hour=10**7)

OPEN_CALLS, CONNECTIONS, SECONDS = 5_000, (1, 4, 8), 5.0

Statement = tuple[str, tuple[Any, ...]]
Decision = Callable[[WriteSession], Awaitable[object]]


async def prepare(bench: Bench, rows: int) -> tuple[UUID, Widget]:
    """Create an organization with so many rows of each kind."""
    organization_id, agent, caller = await create_organization(bench)
    ours: dict[str, Any] = {"organization_id": organization_id}
    widget = Widget(
        id=new_id(), agent_id=agent.id, name="", public_key=new_id().hex, max_spend_per_day=Decimal(10**6), **ours
    )
    conversation = SmsConversation(id=new_id(), phone_number_id=caller.id, contact_number="+15550100009", **ours)
    async with bench.runtime.database.system() as operator:
        (await operator.get_one(Organization, organization_id)).policy = build_policy().model_copy(
            update={"outbound_limits": LIMITS, "billing_mode": "prepaid"}
        )
    async with bench.runtime.database.write(organization_id) as session:
        session.add_all([widget, conversation])
        await ledger.credit_account(session, Decimal(10**6))
    moment = f"now() - interval '58 minutes' + g * interval '{3_400 / rows} seconds'"
    contents = {"call_summary": "null", "extracted_data": "'{}'", "call_metadata": "'{}'", "prompt_variables": "null"}
    call = build_call("completed")
    call.organization_id, call.agent_id, call.widget_id = organization_id, agent.id, widget.id
    call_id = derive_id(str(organization_id), "g")
    times = {"id": call_id, "created_at": moment, "started_at": moment, "ended_at": f"{moment} + interval '30 seconds'"}
    await insert_rows(bench, call, rows, times | contents | {"carrier_call_id": "g::text"})
    visit = WidgetSession(widget_id=widget.id, **ours)
    await insert_rows(bench, visit, rows, {"id": call_id, "call_id": call_id, "created_at": moment})
    message = SmsMessage(
        conversation_id=conversation.id,
        direction="outbound",
        body=Content(""),
        status="sent",
        author="api",
        segments=1,
        carrier="loopback",
        **ENDS,
        **ours,
    )
    bodies = {"body": "'Hello'", "unsent_body": "null", "media_urls": "'[]'"}
    await insert_rows(bench, message, rows, {"id": "uuidv7()", "created_at": moment} | bodies)
    await insert_rows(bench, LedgerHold(amount=Decimal("0.01"), **ours), rows, {"id": "uuidv7()"})
    return organization_id, widget


async def measure_decisions(bench: Bench, rows: int) -> None:
    """Print the costs of the decisions."""
    organization_id, widget = await prepare(bench, rows)
    decisions: dict[str, Decision] = {
        "a call begins": acquire_call_allowance,
        "a call has ended": lambda session: pause_at_limits(session, "calls_per_hour", "minutes_per_hour"),
        "money is held": lambda session: ledger.hold_funds(session, organization_id, Decimal(1)),
        "a text message is sent": lambda session: pause_at_limits(session, "texts_per_hour"),
        "a visitor begins": lambda session: require_place(session, widget),
    }
    for number, (name, decide) in enumerate(decisions.items()):

        async def run(decide: Decision = decide) -> None:
            async with bench.runtime.database.write(organization_id) as session:
                await decide(session)

        if not number:
            await run()  # merges all changes at once, which happens once
            await bench.owner.execute("vacuum analyze")
        await bench.report(f"{name}, {rows:,} rows", run, rounds=ROUNDS)


async def record_admission(bench: Bench, organization_id: UUID, *, for_one: bool) -> tuple[UUID, list[Statement]]:
    """Return the id of a call that begins, and the statements of its transaction."""
    statements: list[Statement] = []

    def record(*arguments: Any) -> None:
        statements.append((arguments[2], tuple(arguments[3])))

    call = build_call("queued")
    call.organization_id, call.id = organization_id, new_id()
    async with bench.runtime.database.write(organization_id) as session:
        await get_policy(session, organization_id)
        event.listen(Engine, "before_cursor_execute", record)
        with mock.patch("secrets.randbelow", return_value=0):
            allowance = await acquire_call_allowance(session, for_one=for_one)
        await seal_content(session, call)
        session.add(call)
        await allowance.count_outbound_call(session)
    event.remove(Engine, "before_cursor_execute", record)
    return call.id, statements


async def measure_admissions(bench: Bench) -> None:
    """Print how many calls a second begin."""
    organization_id, _ = await prepare(bench, OPEN_CALLS)
    call = build_call("in-progress")
    call.organization_id, call.holder = organization_id, "bench"
    await insert_rows(bench, call, OPEN_CALLS, OPEN_CALL | {"carrier_call_id": "'o' || g"})
    begin = f"begin; set local role switchboard_tenant; set local app.organization_id = '{organization_id}'"

    part = f"calls of {organization_id} 0"

    async def merge() -> None:
        """Merge changes, as admissions do that find many."""
        while True:
            async with bench.runtime.database.write(organization_id) as session:
                await read_limit_counts(session)
            await asyncio.sleep(0.05)

    async def admit(connection: asyncpg.Connection, call_id: UUID, statements: list[Statement], until: float) -> int:
        admitted = 0
        while time.monotonic() < until:
            await connection.execute(begin)
            new = {call_id: new_id(), part: f"calls of {organization_id} {secrets.randbelow(PARTS)}"}
            for statement, values in statements:
                await connection.fetch(statement, *(new.get(value, value) for value in values))
            await connection.execute("commit")
            admitted += 1
        return admitted

    for at_once in CONNECTIONS:
        for for_one in (False, True):
            await bench.runtime.call(compact_limit_counters)
            await bench.owner.execute("vacuum limit_counter, limit_counter_change")
            admission = await record_admission(bench, organization_id, for_one=for_one)
            connections = [await asyncpg.connect(bench.url) for _ in range(at_once)]
            until = time.monotonic() + SECONDS
            merging = asyncio.create_task(merge())
            admitted = await asyncio.gather(*(admit(connection, *admission, until) for connection in connections))
            name = f"calls that begin a second, {at_once} connections, {'a part' if for_one else 'the lock'}"
            print(f"{name:56} | {sum(admitted) / SECONDS:9.0f} |", flush=True)
            merging.cancel()
            for connection in connections:
                await connection.close()


async def measure(directory: DataDirectory) -> None:
    """Print a table."""
    await upgrade(directory.database_url)
    owner, settings = await asyncpg.connect(directory.database_url), Settings(data_dir=directory.path)
    urls = {"database_url": directory.database_url, "redis_url": directory.redis_url}
    print(f"{'':56} | {'ms':>9} |   buffers | statement | transact.", flush=True)
    async with open_process_runtime(settings, **urls) as runtime:
        for rows in ROWS:
            await measure_decisions(Bench(runtime, owner, directory.database_url), rows)
        await measure_admissions(Bench(runtime, owner, directory.database_url))
    await owner.close()


def run() -> None:
    """Print the costs of the decisions for each number of rows."""
    logs.configure_logging("ERROR")
    COUNTS.listen()
    run_with_servers(measure)
