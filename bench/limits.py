"""Cost of the decisions that compare limits, for an organization with so many calls, holds, text messages, and
conversations of a widget within the last hour.

Each decision is a transaction of its own over the embedded PostgreSQL, and nothing else runs. `BENCH_ROWS` are the
numbers of each kind of rows. Milliseconds are medians and include the beginning and the commit; buffers are
PostgreSQL's pages of 8 kB.
"""

import os
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import asyncpg
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.database import WriteSession, new_id
from switchboard.foundation.encryption.content import Content
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.resources.billing import ledger
from switchboard.resources.billing.models import LedgerHold
from switchboard.resources.calls.allowance import acquire_call_allowance
from switchboard.resources.destinations.service import pause_at_limits
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import OutboundLimits
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.widgets.admission import require_place
from switchboard.resources.widgets.models import Widget, WidgetSession

from bench._background_rows import ENDS, build_call, build_policy, derive_id
from bench.embedded_server import run_with_servers
from bench.scale import COUNTS, Bench, create_organization, insert_rows

ROWS: Final = [int(rows) for rows in os.environ.get("BENCH_ROWS", "1000,10000,100000").split(",")]
ROUNDS: Final = 20
LIMITS: Final = OutboundLimits(calls_per_hour=10**7, minutes_per_hour=10**7, texts_per_hour=10**7, spend_per_hour=10**7)

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


async def measure(directory: DataDirectory) -> None:
    """Print a table."""
    await upgrade(directory.database_url)
    owner, settings = await asyncpg.connect(directory.database_url), Settings(data_dir=directory.path)
    urls = {"database_url": directory.database_url, "redis_url": directory.redis_url}
    print(f"{'':56} | {'ms':>9} |   buffers | statement | transact.", flush=True)
    async with open_process_runtime(settings, **urls) as runtime:
        for rows in ROWS:
            await measure_decisions(Bench(runtime, owner, directory.database_url), rows)
    await owner.close()


def run() -> None:
    """Print the costs of the decisions for each number of rows."""
    logs.configure_logging("ERROR")
    COUNTS.listen()
    run_with_servers(measure)
