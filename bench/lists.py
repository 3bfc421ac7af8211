"""Latency of each list's first page with its `total`, through the API, at ten thousand and at ten million rows of one
organization (`BENCH_ROWS` for fewer).

Rows are inserted without triggers, and the row counters are set directly. The baseline is the time of a `count(*)`.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any
from uuid import UUID

import sqlalchemy
from quart.typing import TestClientProtocol
from sqlalchemy import func, literal, literal_column
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.foundation.database import TenantTable, new_id
from switchboard.foundation.encryption.content import Content, ContentText
from switchboard.foundation.events.models import Delivery, EventTarget
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.principal import SCOPES
from switchboard.foundation.web.row_counts import RowCounter
from switchboard.migrations import upgrade
from switchboard.resources.agents.models import Agent, AgentVersion, Simulation
from switchboard.resources.automations.models import Automation, AutomationRun
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.contacts.models import Contact
from switchboard.resources.do_not_call.models import DoNotCallEntry
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.policy import Policy, RateLimit, RateLimits
from switchboard.resources.knowledge_bases.models import KnowledgeBase, KnowledgeDocument
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.sms.models import SmsConversation, SmsMessage

from bench.embedded_server import run_with_servers

FEW, MANY = 10_000, int(os.environ.get("BENCH_ROWS", "10000000"))
BATCH, ROUNDS = 1_000_000, 30
NUMBER = "'+1' || (2000000000 + g)"
PARENT = new_id()


@dataclass(frozen=True)
class List:
    """A list: its path, a sample row, and SQL for the values that vary by row (`g` is the row's number). `above` is the
    parent row.
    """

    path: str
    row: TenantTable
    varying: Mapping[str, str] = field(default_factory=dict)
    above: TenantTable | None = None


def build_lists(organization: UUID) -> list[List]:
    org: dict[str, Any] = {"organization_id": organization}
    providers = {"settings": AgentSettings(llm_provider="a", tts_provider="b", stt_provider="c")}
    agent = Agent(id=PARENT, name="Agent", **providers, **org)
    automation = Automation(id=PARENT, name="Automation", trigger_type="call.completed", **org)
    base = KnowledgeBase(id=PARENT, name="Base", **org)
    campaign = Campaign(id=PARENT, name="Campaign", agent_id=PARENT, phone_number_id=PARENT, max_concurrent=5, **org)
    number = PhoneNumber(id=PARENT, phone_number="", friendly_name="Number", carrier="loopback", status="active", **org)
    conversation = SmsConversation(id=PARENT, phone_number_id=PARENT, contact_number="+15550100001", **org)
    ends = {"from_number": "+15550100001", "to_number": "+15550100002"}
    message = {"direction": "inbound", "body": "Hello", "status": "received", "author": "contact", "segments": 1}
    endpoint = EventTarget(id=PARENT, kind="endpoint", url="https://example.com", **org)
    sent = {"event_type": "call.completed", "body": "{}", "status": "delivered"}
    delivery = Delivery(target_id=PARENT, target_kind="endpoint", subject_id=PARENT, **sent, **org)
    document = KnowledgeDocument(
        knowledge_base_id=PARENT, filename="a.txt", content_type="text/plain", file_size=1, status="ready", **org
    )
    run = AutomationRun(
        automation_id=PARENT, event_id=PARENT, trigger_event="call.completed", depth=1, status="completed", **org
    )
    played = {"name": "Test", "mode": "text", "persona": "", "goal": "", "max_turns": 20, "status": "passed"}
    simulation = Simulation(agent_id=PARENT, lines=["Hello"], assertions=[], **played, **org)
    return [
        List("agents", Agent(name="Agent", **providers, **org)),
        List(
            f"agents/{PARENT}/versions",
            AgentVersion(agent_id=PARENT, version=1, settings={}, **org),
            {"version": "g"},
            agent,
        ),
        List(f"agents/{PARENT}/simulations", simulation, above=agent),
        List("calls", Call(direction="inbound", status="completed", carrier="loopback", **ends, **org)),
        List("phone-numbers", number, {"phone_number": NUMBER}),
        List("contacts", Contact(phone_number="", name="Ada", **org), {"phone_number": NUMBER}),
        List("do-not-call", DoNotCallEntry(phone_number="", source="api", note="", **org), {"phone_number": NUMBER}),
        List("sms/conversations", conversation, {"contact_number": NUMBER}),
        List(
            f"sms/conversations/{PARENT}/messages",
            SmsMessage(conversation_id=PARENT, carrier="loopback", **message, **ends, **org),
            above=conversation,
        ),
        List("campaigns", campaign),
        List(
            f"campaigns/{PARENT}/contacts",
            CampaignContact(campaign_id=PARENT, phone_number="", **org),
            {"phone_number": NUMBER},
            campaign,
        ),
        List("automations", automation),
        List(f"automations/{PARENT}/runs", run, {"event_id": "uuidv7()"}, automation),
        List("knowledge-bases", base),
        List(f"knowledge-bases/{PARENT}/documents", document, above=base),
        List(f"webhook-endpoints/{PARENT}/deliveries", delivery, above=endpoint),
        List("webhook-deliveries", delivery),
    ]


def read_columns(row: TenantTable) -> dict[str, Any]:
    """Return a row's values by column; content is stored as it is, without encryption."""
    columns: dict[str, Any] = {}
    for column in row.__table__.columns:  # type: ignore[attr-defined]
        value = getattr(row, column.name)
        plain = value.value if isinstance(value, Content) else value
        columns[column.name] = Content.load(plain) if isinstance(column.type, ContentText) else value
    return columns


async def write(database: AsyncEngine, spec: List, first: int, last: int) -> None:
    table = spec.row.__table__  # type: ignore[attr-defined]
    varying = {"id": "uuidv7()", "created_at": "now() - (20000000 - g) * interval '1 second'", **spec.varying}
    values = read_columns(spec.row)
    chosen = [
        literal_column(varying[name]) if name in varying else literal(value, table.columns[name].type)
        for name, value in values.items()
    ]
    rows = sqlalchemy.select(*chosen).select_from(func.generate_series(first, last).alias("g"))
    async with database.begin() as connection:
        await connection.exec_driver_sql("set local session_replication_role = replica")
        await connection.execute(sqlalchemy.insert(table).from_select(list(values), rows))
        counter = getattr(type(spec.row), "__row_counter__", RowCounter())
        parent = getattr(spec.row, counter.parent) if counter.parent else UUID(int=0)
        facets = {
            name: str(getattr(spec.row, name)) if getattr(spec.row, name) is not None else None
            for name in counter.facets
        }
        count = sqlalchemy.text(
            "insert into row_count_change (organization_id, list, parent, facets, rows) values (:id, :list, :parent, "
            ":facets, :rows)"
        )
        bound = count.bindparams(sqlalchemy.bindparam("facets", type_=sqlalchemy.JSON))
        rows_written = {
            "id": spec.row.organization_id,
            "list": table.name,
            "parent": parent,
            "facets": facets,
            "rows": last - first + 1,
        }
        await connection.execute(bound, rows_written)


async def write_parent(database: AsyncEngine, table: List) -> None:
    if table.above is not None:
        async with database.begin() as connection:
            await connection.exec_driver_sql("set local session_replication_role = replica")
            above = table.above.__table__  # type: ignore[attr-defined]
            await connection.execute(sqlalchemy.insert(above).values(read_columns(table.above)))


async def grow(database: AsyncEngine, table: List, start: int, end: int) -> None:
    for first in range(start + 1, end + 1, BATCH):
        await write(database, table, first, min(first + BATCH - 1, end))
    async with database.connect() as connection:
        await (await connection.execution_options(isolation_level="AUTOCOMMIT")).exec_driver_sql(
            f"vacuum analyze {table.row.__tablename__}"
        )


async def read(client: TestClientProtocol, key: str, path: str, rows: int) -> float:
    took = []
    for _ in range(ROUNDS):
        started_at = time.perf_counter()
        answer = await client.get(f"/v1/{path}?limit=50", headers={"Authorization": f"Bearer {key}"})
        page = await answer.get_json()
        took.append(time.perf_counter() - started_at)
        if page["total"] != rows or len(page["items"]) != min(50, rows):
            raise SystemExit(f"{path} tells {page['total']} of {rows}")
    return median(took) * 1000


async def time_count(database: AsyncEngine, spec: List) -> float:
    async with database.connect() as connection:
        started_at = time.perf_counter()
        table, owner = spec.row.__tablename__, spec.row.organization_id
        count = f"select count(*) from {table} where organization_id = '{owner}'"  # noqa: S608
        await connection.exec_driver_sql(count)
        return (time.perf_counter() - started_at) * 1000


async def measure(directory: DataDirectory) -> None:
    await upgrade(directory.database_url)
    database = create_async_engine(directory.database_url.replace("postgresql://", "postgresql+asyncpg://"))
    unlimited = RateLimit(per_second=100_000, burst=1_000_000)
    async with open_process_runtime(
        Settings(data_dir=directory.path), database_url=directory.database_url, redis_url=directory.redis_url
    ) as parts:
        async with parts.database.system() as session:
            policy = Policy(rate_limits=RateLimits(read=unlimited, write=unlimited))
            organization = identity.create_organization(session, name="Bench", policy=policy)
        async with parts.database.system() as session, session.narrow(organization.id) as tenant:
            _, key = await identity.create_api_key(tenant, name="bench", scopes=list(SCOPES))
        client = app.create_app(parts).test_client()
        print(f"list                         | ms at {FEW:,} | ms at {MANY:,} | ratio | ms to count them")
        for table in build_lists(organization.id):
            await write_parent(database, table)
            await grow(database, table, 0, FEW)
            few = await read(client, key, table.path, FEW)
            await grow(database, table, FEW, MANY)
            many = await read(client, key, table.path, MANY)
            naive = await time_count(database, table)
            path = table.path.replace(str(PARENT), "…")
            print(f"{path:28} | {few:12.2f} | {many:16.2f} | {many / few:5.2f} | {naive:16.1f}", flush=True)
            async with database.begin() as connection:
                above = f", {table.above.__tablename__}" if table.above is not None else ""
                await connection.exec_driver_sql(
                    f"truncate row_count_change, row_count, {table.row.__tablename__}{above} cascade"
                )
    await database.dispose()


def run() -> None:
    """Print the table."""
    logs.configure_logging("ERROR")
    run_with_servers(measure)
