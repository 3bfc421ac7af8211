"""Latency of each filter of the list of calls, with its `total`, through the API.

One organization has a million calls (`BENCH_CALLS` for fewer) with four entries of transcript each, and ten thousand
contacts. A second one has a tenth of that.
"""

import os
import time
from statistics import median

from quart.typing import TestClientProtocol
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.principal import SCOPES
from switchboard.migrations import upgrade
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.policy import Policy, RateLimit, RateLimits

from bench.embedded_server import run_with_servers

CALLS = int(os.environ.get("BENCH_CALLS", "1000000"))
BATCH, ROUNDS = 100_000, 5
FILTERS = (
    "",
    "created_after=2026-11-01T00:00:00Z&created_before=2026-11-02T00:00:00Z",
    "direction=outbound&status=completed",
    "ended_reason=silence",
    "ended_reason=no_consent",
    "user_sentiment=negative",
    "call_successful=false",
    "min_duration_seconds=600",
    "min_duration_seconds=600&user_sentiment=negative&call_successful=false",
    "phone=%2B12000000777",
    "tag=vip",
    "transcript=order%20500",
    "transcript=refund",
    "transcript=invoice",
    "transcript=invoice&created_after=2026-11-01T00:00:00Z&created_before=2026-11-02T00:00:00Z",
    "transcript=hello",
    "transcript=hello&offset=5000",
    "transcript=hello&created_after=2026-11-01T00:00:00Z&created_before=2026-11-02T00:00:00Z",
    "transcript=hello&user_sentiment=negative",
)
ADD_CALLS = """
insert into call (id, organization_id, created_at, direction, status, from_number, to_number, duration_seconds,
  cost_total, cost_parts, user_sentiment, call_successful, ended_reason, extracted_data, call_metadata, latencies,
  served_by, provider_failures, carrier, has_recording, recording_format, has_transcript, voicemail, cause_depth,
  analysis_attempts, ended_at)
select ('00000000-0000-7000-' || substr(:organization, 20, 4) || '-' || lpad(to_hex(g), 12, '0'))::uuid, :organization,
  timestamptz '2026-11-20 00:00Z' - (20000000 - g * 20) * interval '1 second',
  case when g % 3 = 0 then 'inbound' else 'outbound' end, case when g % 10 = 0 then 'busy' else 'completed' end,
  '+1' || (2000000000 + g % 10000), '+13000000000', g % 700, 0.01, '{}', (array['positive', 'neutral', 'negative',
  'unknown'])[1 + g % 4], g % 5 <> 0, case when g % 100000 = 7 then 'no_consent' when g % 50 = 1 then 'silence'
  else 'caller_hung_up' end, '{}', '{}', '[]', '{}', '[]', 'loopback', false, 'wav', true, false, 0, 0, now()
from generate_series(:first, :last) as g
"""
ADD_LINES = """
insert into transcript_line (organization_id, call_id, position, role, content, timestamp_ms, ended_ms,
  interrupted, by_person, backchannel, pauses, unfinished)
select organization_id, id, p, 'user', case p when 0 then 'Hello, this is Ada speaking'
  when 1 then 'I am calling about order ' || (get_byte(uuid_send(id), 14) * 256 + get_byte(uuid_send(id), 15))
  when 2 then case get_byte(uuid_send(id), 15) when 7 then 'I want a refund' when 9 then 'Please send an invoice'
    when 10 then 'Where is my invoice' else 'That would be very kind of you' end
  else 'Thank you, goodbye' end, p * 1000, p * 1000 + 900, false, false, false, '[]', false
from call, generate_series(0, 3) as p where organization_id = :organization and id between
  ('00000000-0000-7000-' || substr(:organization, 20, 4) || '-' || lpad(to_hex(:first), 12, '0'))::uuid and
  ('00000000-0000-7000-' || substr(:organization, 20, 4) || '-' || lpad(to_hex(:last), 12, '0'))::uuid
"""
ADD_WORDS = """
insert into transcript_search select organization_id, id, collect_transcript_words(organization_id, id)
from call where organization_id = :organization and id between
  ('00000000-0000-7000-' || substr(:organization, 20, 4) || '-' || lpad(to_hex(:first), 12, '0'))::uuid and
  ('00000000-0000-7000-' || substr(:organization, 20, 4) || '-' || lpad(to_hex(:last), 12, '0'))::uuid
"""
ADD_CONTACTS = """
insert into contact (id, organization_id, created_at, phone_number, tags, is_favorite, updated_at)
select gen_random_uuid(), :organization, now(), '+1' || (2000000000 + g), case when g % 100 = 0 then 'vip, late' end,
  false, now() from generate_series(1, 10000) as g
"""
COUNT_CALLS = """
insert into row_count (organization_id, list, parent, facets, rows)
select :organization, 'call', '00000000-0000-0000-0000-000000000000',
  json_build_object('agent_id', null, 'direction', direction, 'status', status), count(*)
from call where organization_id = :organization group by direction, status
"""


async def fill(database: AsyncEngine, organization: str, calls: int) -> None:
    for first in range(1, calls + 1, BATCH):
        last = min(first + BATCH - 1, calls)
        async with database.begin() as connection:
            await connection.exec_driver_sql("set local session_replication_role = replica")
            for statement in (ADD_CALLS, ADD_LINES, ADD_WORDS):
                filled = statement.replace(":organization", f"'{organization}'")
                await connection.execute(text(filled.replace(":first", str(first)).replace(":last", str(last))))
    async with database.begin() as connection:
        await connection.exec_driver_sql("set local session_replication_role = replica")
        for statement in (ADD_CONTACTS, COUNT_CALLS):
            await connection.execute(text(statement.replace(":organization", f"'{organization}'")))
    async with database.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await autocommit.exec_driver_sql("vacuum analyze call, transcript_line, transcript_search, contact")


async def read(client: TestClientProtocol, key: str, query: str) -> tuple[float, int]:
    took, total = [], 0
    for _ in range(ROUNDS):
        started_at = time.perf_counter()
        answer = await client.get(f"/v1/calls?limit=50&{query}", headers={"Authorization": f"Bearer {key}"})
        page = await answer.get_json()
        took.append(time.perf_counter() - started_at)
        if answer.status_code != 200:
            raise SystemExit(f"{query}: {page}")
        total = page["total"]
    return median(took) * 1000, total


async def measure(directory: DataDirectory) -> None:
    await upgrade(directory.database_url)
    database = create_async_engine(directory.database_url.replace("postgresql://", "postgresql+asyncpg://"))
    unlimited = RateLimit(per_second=100_000, burst=1_000_000)
    async with open_process_runtime(
        Settings(data_dir=directory.path), database_url=directory.database_url, redis_url=directory.redis_url
    ) as parts:
        policy = Policy(rate_limits=RateLimits(read=unlimited, write=unlimited))
        async with parts.database.system() as session:
            organization = identity.create_organization(session, name="Bench", policy=policy)
            other = identity.create_organization(session, name="Other", policy=policy)
        async with parts.database.system() as session, session.narrow(organization.id) as tenant:
            _, key = await identity.create_api_key(tenant, name="bench", scopes=list(SCOPES))
        await fill(database, str(other.id), CALLS // 10)
        await fill(database, str(organization.id), CALLS)
        client = app.create_app(parts).test_client()
        print("| filter | calls found | ms |\n| --- | --- | --- |")
        for query in FILTERS:
            took, total = await read(client, key, query)
            print(f"| `{query}` | {total:,} | {took:,.0f} |", flush=True)
    await database.dispose()


def run() -> None:
    """Print the table."""
    logs.configure_logging("ERROR")
    run_with_servers(measure)
