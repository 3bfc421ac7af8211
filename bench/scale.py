"""Cost of looking for background work in installations of several sizes, which have next to nothing to do.

Size 1 has 100 organizations, 1,000 webhook endpoints, and 100,000 rows: deliveries mostly; messages with their row
counters, events, calls, the audit log, and contacts of campaigns. Half of the endpoints have six deliveries that wait
for a retry, and each twentieth, which is disabled, has ten that are overdue. `BENCH_SCALES` are the sizes, which
multiply all three. The functions of the platform run in this process, over the embedded PostgreSQL with its ordinary
settings but without autovacuum.

Milliseconds are medians. Buffers are PostgreSQL's pages of 8 kB that were found in its cache or read, and statements do
not count the beginnings and commits of transactions; both are of one run. An organization with open calls has a limit
of calls an hour, and its new calls are asked for over the API, without a network. Python needs most of a core for a
hundred of them a second: compare the lines with and without open calls.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from statistics import median
from typing import Any, Final
from uuid import UUID

import asyncpg
from quart.typing import TestClientProtocol
from sqlalchemy import Engine, Pool, event, text
from sqlalchemy.exc import DBAPIError
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.apps.worker.jobs import compact_row_counts
from switchboard.apps.worker.worker import WORK, build_reconcilers
from switchboard.foundation.database import BUCKETS, create_engine, new_id, now
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.paging import lock_row
from switchboard.foundation.web.principal import SCOPES
from switchboard.foundation.work import FRESH, WorkRunner
from switchboard.migrations import upgrade
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.allowance import acquire_call_allowance
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import finish_call
from switchboard.resources.campaigns.dialer import build_call_metadata
from switchboard.resources.campaigns.jobs import dial_campaigns
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.deliveries import queries as deliveries
from switchboard.resources.deliveries.delivery_worker import DeliveryWorker
from switchboard.resources.identity import service as identity
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.runtime import Runtime

from bench._background_rows import NUMBER, SETTINGS, UUIDV7, Filler, build_call, build_policy, derive_id, fill
from bench.embedded_server import run_with_servers

SIZES: Final = [int(size) for size in os.environ.get("BENCH_SCALES", "1,10").split(",")]
ROUNDS, DUE, CHANGED, CHANGED_LISTS, DEAD, DEAD_SECONDS = 5, 20, 1_000, 5, 50_000, 3_600
CAMPAIGNS: Final = (10, 100, 1_000)
CONTACTS_OF_A_CAMPAIGN, MOST_CONTACTS, MOST_RUNS, MOST_RUNS_OF_ONE = 5, 1_000, 32, 8
OPEN_CALLS: Final = (0, 200, 5_000)
AT_ONCE, CALL_SECONDS = 8, 8.0
OPEN_CALL: Final = {
    "id": UUIDV7,
    "created_at": "now() - g * interval '0.1 seconds'",
    "started_at": "now()",
    "watch_at": "now() + interval '1 day'",
    "carrier_call_id": "g::text",
    "call_summary": "null",
    "extracted_data": "'{}'",
    "call_metadata": "'{}'",
    "prompt_variables": "null",
}
ENDED_CALL: Final = OPEN_CALL | {
    "created_at": "now() - interval '55 minutes' + g * interval '0.2 seconds'",
    "started_at": "now() - interval '55 minutes' + g * interval '0.2 seconds'",
    "ended_at": "now() - interval '54 minutes' + g * interval '0.2 seconds'",
    "watch_at": "null::timestamptz",
    "carrier_call_id": "'e' || g",
}
BUFFERS: Final = "select blks_hit + blks_read from pg_stat_database where datname = current_database()"
FLUSH: Final = "select pg_stat_force_next_flush()"
MAKE_DUE: Final = """
update delivery_due set due_at = now(), is_ready = true where id in (
  select min(due.id::text)::uuid from delivery_due due join event_target target on target.id = target_id
  where enabled group by target_id order by target_id limit $1)
"""
PUT_OFF: Final = """
update delivery_due set due_at = now() + interval '1 hour', is_ready = false, lease_token = null
where lease_token is not null or due_at between now() - interval '10 minutes' and now()
"""
ADD_DELIVERIES: Final = """
with added as (
  insert into delivery (id, organization_id, created_at, target_id, target_kind, event_type, subject_id, body, status,
    attempts, next_attempt_at)
  select uuidv7(), organization_id, now() - random() * $2 * interval '1 second', id, 'endpoint', 'call.completed', id,
    '{}', 'pending', 0, now()
  from generate_series(1, $1), (select id, organization_id from event_target where enabled order by id limit 1) target
  returning id, organization_id, target_id, created_at
)
insert into delivery_due (id, organization_id, created_at, target_id, due_at, is_ready)
select id, organization_id, now(), target_id, created_at, true from added
"""
END_DELIVERIES: Final = "delete from delivery_due where created_at > now() - interval '5 minutes' and is_ready"
ADD_MESSAGES: Final = """
insert into sms_message (id, organization_id, created_at, conversation_id, direction, from_number, to_number, body,
  media_urls, status, author, segments, cost, carrier, cause_depth)
select uuidv7(), organization_id, now(), id, 'inbound', '+15550100001', '+15550100002', 'Hello', '[]', 'received',
  'contact', 1, 0, 'loopback', 0
from sms_conversation where id = $1
"""
CONVERSATIONS: Final = "select id from sms_conversation order by id limit $1 offset $2"

Work = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Counts:
    """Statements and transactions of this process."""

    statements: int = 0
    transactions: int = 0

    def listen(self) -> None:
        event.listen(Engine, "before_cursor_execute", self._count_statement)
        event.listen(Pool, "checkout", self._count_transaction)

    def _count_statement(self, *_: Any) -> None:
        self.statements += 1

    def _count_transaction(self, *_: Any) -> None:
        self.transactions += 1


COUNTS: Final = Counts()


@dataclass(frozen=True, slots=True)
class Bench:
    """The parts of a process, and a connection of the owner."""

    runtime: Runtime
    owner: asyncpg.Connection
    url: str

    async def read_buffers(self) -> int:
        """Return the buffers that have been touched. Each idle connection of the pool publishes its own, in turn."""
        for _ in range(max(1, self.runtime.database.pool.checkedin())):
            async with self.runtime.database.system() as session:
                await session.fetch(text(FLUSH))
        return int(await self.owner.fetchval(BUFFERS))

    async def report(self, name: str, work: Work, *, prepare: Work | None = None, rounds: int = ROUNDS) -> None:
        """Print the cost of a piece of work, whose first run is not counted."""
        milliseconds, costs = [], (0, 0, 0)
        for round_ in range(rounds + 1):
            if prepare is not None:
                await prepare()
            before = await self.read_buffers()
            buffers = await self.read_buffers()
            of_reading, statements, transactions = buffers - before, COUNTS.statements, COUNTS.transactions
            began = time.perf_counter()
            try:
                await work()
            except DBAPIError as error:
                print(f"{name:56} | {(time.perf_counter() - began) * 1000:9.1f} | failed: {error.orig}", flush=True)
                return
            if round_:
                milliseconds.append((time.perf_counter() - began) * 1000)
            statements, transactions = COUNTS.statements - statements, COUNTS.transactions - transactions
            costs = max(0, await self.read_buffers() - buffers - of_reading), statements, transactions
        print(f"{name:56} | {median(milliseconds):9.1f} | " + " | ".join(f"{cost:9,}" for cost in costs), flush=True)


async def look_for_deliveries(bench: Bench) -> None:
    """Look in all buckets, and claim what is ready."""
    values = {"buckets": list(range(BUCKETS)), "full": [], "most": DUE, "since": now() - FRESH}
    async with bench.runtime.database.system() as session:
        found = await session.fetch(deliveries.OrganizationsToDeliver().select(by_organization=True), values)
    for row in found:
        async with bench.runtime.database.system() as session:
            await deliveries.claim_deliveries(session, row.organization_id, most=64, lease=30)


async def measure_deliveries(bench: Bench) -> None:
    async def make_due() -> None:
        await bench.owner.execute(PUT_OFF)
        await bench.owner.execute(MAKE_DUE, DUE)

    await bench.report("look for due deliveries, none due", partial(look_for_deliveries, bench))
    await bench.report(f"the same, {DUE} due of {DUE} targets", partial(look_for_deliveries, bench), prepare=make_due)
    await measure_dead_rows(bench)
    await bench.owner.execute(PUT_OFF)


async def measure_dead_rows(bench: Bench) -> None:
    """Measure a wake-up of one target, before and after an hour of its deliveries that a snapshot keeps."""

    async def make_due() -> None:
        await bench.owner.execute(PUT_OFF)
        await bench.owner.execute(ADD_DELIVERIES, 1, 0)

    name = "look for and claim one delivery of one target"
    await bench.report(name, partial(look_for_deliveries, bench), prepare=make_due)
    reader = await asyncpg.connect(bench.url)
    async with reader.transaction(isolation="repeatable_read"):
        await reader.execute("select count(*) from event_target")
        await bench.owner.execute(ADD_DELIVERIES, DEAD, DEAD_SECONDS)
        await bench.owner.execute(END_DELIVERIES)
        name = f"the same, and {DEAD:,} dead rows of it that a snapshot keeps"
        await bench.report(name, partial(look_for_deliveries, bench), prepare=make_due)
    await reader.close()


async def measure_compaction(bench: Bench) -> None:
    offset = count(0, CHANGED_LISTS)

    async def change() -> None:
        conversations = await bench.owner.fetch(CONVERSATIONS, CHANGED_LISTS, next(offset))
        ids = [(row["id"],) for row in conversations for _ in range(CHANGED // CHANGED_LISTS)]
        async with bench.owner.transaction():
            await bench.owner.executemany(ADD_MESSAGES, ids)

    compact = partial(bench.runtime.call, compact_row_counts)
    await compact()
    await bench.owner.execute("vacuum analyze row_count_change, row_count")  # as autovacuum does, which is off here
    await bench.report("compact row counts, nothing changed", compact, rounds=3)
    name = f"the same, {CHANGED:,} rows of {CHANGED_LISTS} lists changed"
    await bench.report(name, compact, prepare=change, rounds=3)


async def create_organization(bench: Bench) -> tuple[UUID, Agent, PhoneNumber]:
    async with bench.runtime.database.system() as session:
        organization = identity.create_organization(session, name="Bench", policy=build_policy())
    org: dict[str, Any] = {"organization_id": organization.id}
    number = f"+1{new_id().int % 10**9 + 3 * 10**9}"
    async with bench.runtime.database.write(organization.id) as session:
        agent = Agent(name="Agent", settings=SETTINGS, **org)
        session.add(agent)
        names = {"phone_number": number, "friendly_name": "Number", "carrier": "loopback", "status": "active"}
        caller = PhoneNumber(**names, **org)
        session.add(caller)
    return organization.id, agent, caller


async def insert_rows(bench: Bench, row: Any, number: int, varying: dict[str, str]) -> None:
    engine = create_engine(bench.url)
    async with engine.connect() as connection:
        await Filler(connection, 1).insert(row, number, varying)
    await engine.dispose()


async def measure_campaigns(bench: Bench, running: int) -> None:
    """Measure the end of a call of one of an organization's running campaigns, whose other contacts wait for days."""
    organization_id, agent, caller = await create_organization(bench)
    org: dict[str, Any] = {"organization_id": organization_id}
    campaign = Campaign(
        name="Campaign", agent_id=agent.id, phone_number_id=caller.id, max_concurrent=5, status="running", **org
    )
    campaign.total_contacts = MOST_CONTACTS
    kind = f"campaign of {organization_id}"
    await insert_rows(bench, campaign, running, {"id": derive_id(kind, "g")})
    contact = CampaignContact(campaign_id=new_id(), phone_number="", **org)
    later = {"dial_at": "now() + interval '2 days'", "phone_number": NUMBER, "id": UUIDV7}
    under = {"campaign_id": derive_id(kind, f"g / {CONTACTS_OF_A_CAMPAIGN}")}
    await insert_rows(bench, contact, running * CONTACTS_OF_A_CAMPAIGN, later | under)
    await bench.owner.execute("vacuum analyze campaign, campaign_contact")
    campaign_id = await bench.owner.fetchval(f"select {derive_id(kind, '0')}")
    call_ids = list[UUID]()

    async def begin() -> None:
        async with bench.runtime.database.write(organization_id) as session:
            contact = CampaignContact(
                campaign_id=campaign_id, phone_number=f"+1{new_id().int % 10**10:010}", status="in_progress", **org
            )
            contact.id = new_id()
            metadata = build_call_metadata(campaign_id, contact.id, None)
            call = await calls.prepare_outbound_call(session, agent, caller, contact.phone_number, metadata=metadata)
            call.status, call.started_at, contact.call_id = "in-progress", now(), call.id
            session.add_all([contact, call])
            (await lock_row(session, Campaign, campaign_id)).in_flight += 1
        call_ids.append(call.id)

    async def end() -> None:
        async with bench.runtime.database.write(organization_id) as session:
            await finish_call(session, await lock_row(session, Call, call_ids[-1]), "completed")

    async def end_before() -> None:
        await begin()
        await end()

    async def dial() -> None:
        await bench.runtime.call(dial_campaigns, organization_id=organization_id)

    await bench.report(f"end of a campaign's call, {running} running", end, prepare=begin)
    await bench.report(f"what it wakes, {running} running", dial, prepare=end_before, rounds=3)


async def measure_new_calls(bench: Bench, open_calls: int) -> None:
    """Print the new calls a second of an organization with open calls and three times as many that ended in the last
    hour, over the API in this process.
    """
    organization_id, agent, caller = await create_organization(bench)
    call = build_call("in-progress")
    call.organization_id, call.agent_id, call.holder = organization_id, agent.id, "bench"
    await insert_rows(bench, call, open_calls, OPEN_CALL)
    call.status, call.holder = "completed", None
    await insert_rows(bench, call, 3 * open_calls, ENDED_CALL)

    async def acquire_allowance() -> None:
        async with bench.runtime.database.write(organization_id) as session:
            await acquire_call_allowance(session)

    await acquire_allowance()  # it merges the changes of all calls at once, which happens once
    await bench.owner.execute("vacuum analyze call, limit_counter, limit_counter_change")
    await bench.report(f"allowance, under its lock, {open_calls:,} open calls", acquire_allowance)
    async with bench.runtime.database.write(organization_id) as session:
        _, key = await identity.create_api_key(session, name="bench", scopes=list(SCOPES))
    client, latencies, began = app.create_app(bench.runtime).test_client(), list[float](), time.monotonic()
    body = {"agent_id": str(agent.id), "from_number_id": str(caller.id), "to_number": "+12025550123"}
    until = began + CALL_SECONDS
    await asyncio.gather(*(place_calls(client, key, body, until, latencies) for _ in range(AT_ONCE)))
    rate = len(latencies) / (time.monotonic() - began)
    name = f"new calls, {AT_ONCE} at once, {open_calls:,} open, median"
    print(f"{name:56} | {median(latencies) * 1000:9.1f} | {rate:.0f} a second", flush=True)


async def place_calls(
    client: TestClientProtocol, key: str, body: dict[str, str], until: float, latencies: list[float]
) -> None:
    while (began := time.monotonic()) < until:
        answer = await client.post("/v1/calls", json=body, headers={"Authorization": f"Bearer {key}"})
        if answer.status_code != 201:
            raise SystemExit(await answer.get_data(as_text=True))
        latencies.append(time.monotonic() - began)


async def measure_looks(bench: Bench) -> None:
    """Measure the other loops of a worker, and what a scrape of metrics asks."""

    async def measure_queue_age() -> None:
        async with bench.runtime.database.system() as session:
            await deliveries.measure_queue_age(session)

    await bench.report("age of the delivery queue, each scrape", measure_queue_age)
    runtime = bench.runtime
    sender = DeliveryWorker(runtime.settings, runtime.database, runtime.keyring, runtime.outbound)
    runner = WorkRunner(runtime.database, WORK, {**runtime.parts, "delivery_worker": sender})
    for reconciler in build_reconcilers(runtime, runner):
        if reconciler.name != compact_row_counts.__name__:
            await bench.report(f"{reconciler.name}, each {reconciler.seconds:g} s", reconciler.run)


async def measure(directory: DataDirectory, size: int) -> None:
    began, url = time.monotonic(), directory.database_url
    await upgrade(url)
    await fill(url, size)
    owner = await asyncpg.connect(url)
    rows = await owner.fetchval("select sum(reltuples)::bigint from pg_class where relkind = 'r' and reltuples > 0")
    took, used = time.monotonic() - began, await owner.fetchval("select pg_database_size(current_database())")
    print(f"\nsize {size}: {rows:,} rows with catalogs and counters, {used / 1e9:.1f} GB, filled in {took:.0f} s")
    print(f"{'':56} | {'ms':>9} |   buffers | statement | transact.", flush=True)
    settings = Settings(data_dir=directory.path)
    async with open_process_runtime(settings, database_url=url, redis_url=directory.redis_url) as runtime:
        bench = Bench(runtime, owner, url)
        await measure_deliveries(bench)
        await measure_compaction(bench)
        await measure_looks(bench)
        for running in CAMPAIGNS:
            if running <= CAMPAIGNS[1] * size:
                await measure_campaigns(bench, running)
        for open_calls in OPEN_CALLS:
            await measure_new_calls(bench, open_calls)
    await owner.close()


def run() -> None:
    """Print a table for each size."""
    logs.configure_logging("ERROR")
    COUNTS.listen()
    for size in SIZES:
        run_with_servers(partial(measure, size=size))
