"""An organization moves to another installation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlmodel import col
from switchboard.apps.backups.organization_tables import NOT_MOVED
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.foundation.database import OrganizationFrozen
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.resources.calls.chats import finish_chat
from switchboard.resources.calls.models import CHAT, Call
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.models import User
from switchboard.resources.identity.policy import Encryption

from tests.fixtures.app import Caller, LivePlatform, Organizations, create_bakery, fresh_number, run_server
from tests.fixtures.command_line import Operator
from tests.fixtures.installations import RETRY_SECONDS, Installation, bind_caller, create_caller
from tests.fixtures.isolation import FREE, populate, wait_until_quiet
from tests.fixtures.json_access import Json, at
from tests.fixtures.processes import start_live_platform
from tests.fixtures.rare_rows import add_rare_rows
from tests.fixtures.receiver import Receiver
from tests.fixtures.secret_values import SecretValues, create_secret_values, repeat_request
from tests.fixtures.servers import SECRET_KEY
from tests.fixtures.table_rows import count_table_rows
from tests.fixtures.webhooks import create_endpoint, send_test

Installations = tuple[Installation, Installation]
OWNER, SHARED = "owner@example.com", "shared@example.com"
USES, VECTORS = frozenset(("last_used_at",)), frozenset(("updated_at",))
"""Fields that change: the last use of a key, and of knowledge bases the time at which their vectors were rebuilt."""
TENANT_TABLES = """
select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
where a.attname = 'organization_id' and c.relkind in ('r', 'p') and not c.relispartition and not a.attisdropped
  and c.relnamespace = 'public'::regnamespace
"""
PASSWORD = "a long enough password"


@dataclass(frozen=True, slots=True)
class Source:
    """An organization in its installation."""

    live: LivePlatform
    secrets: SecretValues
    failing: Json
    transcripts: list[object]


def list_paths() -> list[str]:
    """List the paths of all lists and documents of the API that need no id."""
    rules = app.create_routes().url_map.iter_rules()
    found = [rule.rule for rule in rules if rule.rule.startswith("/v1/") and "GET" in (rule.methods or ())]
    return sorted(path for path in found if "<" not in path)


async def read_lists(caller: Caller) -> dict[str, Any]:
    """Read all lists."""
    answers = {path: await caller.get(path) for path in list_paths()}
    return {
        path: [answer.status, without_changes(answer.json, VECTORS if "knowledge" in path else USES)]
        for path, answer in answers.items()
        if answer.headers["Content-Type"] == "application/json"
    }


async def read_transcripts(caller: Caller) -> list[object]:
    """Read the transcripts of all calls, which the audit log records."""
    calls = (await caller.get("/v1/calls")).json["items"]
    assert isinstance(calls, list)
    answers = [await caller.get(f"/v1/calls/{at(call, 'id')}/transcript") for call in calls]
    assert {answer.status for answer in answers} == {200}
    return [answer.json for answer in answers]


def without_changes(value: Any, changing: frozenset[str]) -> Any:
    """Leave out fields that change, and the addresses of the installation."""
    if isinstance(value, dict):
        return {name: without_changes(each, changing) for name, each in value.items() if name not in changing}
    if isinstance(value, list):
        return [without_changes(each, changing) for each in value]
    return "(an address)" if isinstance(value, str) and value.startswith("http://127.0.0.1") else value


@asynccontextmanager
async def serve_source(installation: Installation, receiver: Receiver) -> AsyncIterator[Source]:
    """Serve an organization with rows of every kind, and with a delivery that fails and is due again."""
    async with installation.open_runtime() as runtime, run_server(runtime):
        organizations = Organizations(runtime, app.create_app(runtime).test_client())
        policy = FREE.model_copy(update={"encryption": Encryption(texts=True, recordings=True)})
        live = await create_bakery(runtime, await organizations.create(policy=policy), fresh_number())
        caller = await populate(live)
        secrets = await create_secret_values(caller, f"{receiver.url}/hook")
        async with runtime.database.system() as session:
            owner, _ = [
                await identity.create_user(
                    session, email=email, password=PASSWORD, organization_id=caller.organization_id
                )
                for email in (OWNER, SHARED)
            ]
        await add_rare_rows(runtime, installation.database_url, owner, caller.organization_id)
        await wait_until_quiet(runtime, caller)
        receiver.statuses["/failing"] = [500]
        failing = await create_endpoint(caller, f"{receiver.url}/failing", events=["call.failed"])
        await send_test(caller, failing)
        await receiver.first("/failing")
        yield Source(live, secrets, failing, await read_transcripts(caller))


async def export(installation: Installation, file: Path, organization_id: UUID) -> dict[str, Any]:
    """Export an organization."""
    return await installation.ask("orgs", "export", str(file), "--org", str(organization_id))


@pytest.mark.timeout(300)
@pytest.mark.local_receivers
async def test_an_organization_moves_while_both_installations_serve(
    installations: Installations, receiver: Receiver, tmp_path: Path
) -> None:
    source, target = installations
    file = tmp_path / "organization.tar"
    async with serve_source(source, receiver) as moved, target.open_runtime() as other:
        caller = moved.live.caller
        neighbor = await create_caller(other)
        async with other.database.system() as session:
            known = await identity.create_user(session, email=SHARED, password=f"another {PASSWORD}")
        refusal = await source.refuse("orgs", "export", str(file), "--org", str(caller.organization_id))
        assert "1 calls are queued or live" in refusal
        assert (await caller.post("/v1/contacts", {"phone_number": "+15550100776"})).status == 201, "as if not asked"
        await end_chats(moved.live)
        made = await export(source, file, caller.organization_id)
        assert made["organization_id"] == str(caller.organization_id)
        assert made["recordings"] > 0
        assert (file.stat().st_mode | Path(f"{file}.key").stat().st_mode) & 0o777 == 0o600
        await require_frozen(moved)
        receiver.received.clear()
        receiver.statuses["/failing"] = [200]
        before = (await neighbor.get("/v1/agents")).json
        assert await target.ask("orgs", "import", str(file)) == made
        assert (await neighbor.get("/v1/agents")).json == before
        again = bind_caller(other, caller)
        await require_equal_rows(installations, caller.organization_id)
        await require_equal_lists(again, await read_lists(caller))
        assert await read_transcripts(again) == moved.transcripts
        async with run_server(other):
            await receiver.first("/failing", seconds=30)
            assert await repeat_request(again) == moved.secrets.kept_response
            await send_test(again, moved.secrets.endpoint)
            (request,) = await receiver.first("/hook", seconds=60)
            assert request.signed_by(moved.secrets.secret, moved.secrets.previous_secret)
            await require_recordings(again)
            assert (await again.post("/v1/contacts", {"phone_number": "+15550100777"})).status == 201
            await asyncio.sleep(2 * RETRY_SECONDS)
        assert len(receiver.at("/failing")) == 1
        await require_members(target, caller.organization_id, known)
        deleted = await source.ask("orgs", "delete", str(caller.organization_id), "--yes")
        assert deleted["recordings"] == made["recordings"]
    assert (await count_table_rows(source.database_url))["call"] == 0


async def end_chats(live: LivePlatform) -> None:
    """End the chat of the visitor of a website."""
    async with live.runtime.database.write(live.caller.organization_id) as session:
        for chat in await session.exec(session.select(Call).where(col(Call.carrier) == CHAT)):
            await finish_chat(session, chat)


async def require_frozen(moved: Source) -> None:
    """Check that the organization is read, and takes no changes."""
    caller = moved.live.caller
    refused = await caller.post("/v1/contacts", {"phone_number": "+15550100778"})
    assert (refused.status, refused.json["code"]) == (503, "organization_moving")
    assert refused.headers["Retry-After"] == "60"
    assert (await caller.get("/v1/contacts")).status == 200
    with pytest.raises(OrganizationFrozen):
        async with moved.live.runtime.database.write(caller.organization_id):
            pass


async def require_equal_rows(installations: Installations, organization_id: UUID) -> None:
    """Check that the target has each row, and that the organization had rows of each kind."""
    source, target = [await count_rows(each.database_url, organization_id) for each in installations]
    differing = {name for name in source if source[name] != target[name] and name not in NOT_MOVED}
    assert differing == set()
    empty = {name for name, rows in source.items() if not rows and name not in NOT_MOVED}
    assert empty <= {"event_due"}, "add rows of these tables to tests/fixtures/rare_rows.py"


async def count_rows(database_url: str, organization_id: UUID) -> dict[str, int]:
    """Count an organization's rows by table."""
    connection = await asyncpg.connect(database_url)
    counts = {}
    async with connection.transaction():
        await connection.execute("set local app.backup = 'on'")
        for (name,) in await connection.fetch(TENANT_TABLES):
            counts[name] = await connection.fetchval(
                f'select count(*) from "{name}" where organization_id = $1',  # noqa: S608
                organization_id,
            )
    await connection.close()
    return counts


async def require_equal_lists(again: Caller, expected: dict[str, Any]) -> None:
    """Check that the target's lists are those of the source."""
    lists = await read_lists(again)
    assert lists.keys() == expected.keys()
    for path, answer in expected.items():
        assert lists[path] == answer, path


async def require_recordings(caller: Caller) -> None:
    """Check that each call with a recording has it."""
    calls = (await caller.get("/v1/calls")).json["items"]
    assert isinstance(calls, list)
    recorded = [at(call, "id") for call in calls if at(call, "recording_url")]
    assert recorded
    for call_id in recorded:
        assert len((await caller.get(f"/v1/calls/{call_id}/recording")).body) > 1000


async def require_members(installation: Installation, organization_id: UUID, known: User) -> None:
    """Check that a member whose address is known here is the user of here, with the password of here, and that the
    owner, who is new here, has the authenticator app.
    """
    connection = await asyncpg.connect(installation.database_url)
    async with connection.transaction():
        await connection.execute("set local app.backup = 'on'")
        rows = await connection.fetch(
            "select email, user_id, password_hash from membership join user_account on user_account.id = user_id "
            "where membership.organization_id = $1",
            organization_id,
        )
        apps = await connection.fetch("select email from authenticator_app join user_account on user_id = id")
    await connection.close()
    assert [row["email"] for row in apps] == [OWNER]
    members = {row["email"]: (row["user_id"], row["password_hash"]) for row in rows}
    assert members.keys() == {OWNER, SHARED}
    assert members[SHARED] == (known.id, known.password_hash)


@pytest.mark.system
@pytest.mark.timeout(300)
async def test_an_organization_moves_between_two_data_directories(tmp_path: Path) -> None:
    """The target does not run, and both have a key of their own in their directory."""
    source, target, file = tmp_path / "source", tmp_path / "target", tmp_path / "organization.tar"
    async with start_live_platform(source) as (live, _):
        assert (await live.caller.post("/v1/contacts", {"phone_number": "+15550100001"})).status == 201
        await live.simulate_call("goodbye")
        await live.wait_for_end(at((await live.caller.get("/v1/calls")).json, "items", 0, "id"), analyzed=True)
        endpoint = await create_endpoint(live.caller, "https://example.com/hook")
        directory = DataDirectory(target)
        directory.claim()
        async with EmbeddedServers(directory, redis=False):
            await upgrade(directory.database_url)
        directory.release()
        operator = Operator(SWITCHBOARD_DATA_DIR=str(source), SWITCHBOARD_SECRET_KEYS=SECRET_KEY)
        arguments = ("orgs", "export", str(file), "--org", str(live.caller.organization_id))
        made = await asyncio.to_thread(operator.ask, *arguments)
        expected = await read_lists(live.caller)
    operator.environment["SWITCHBOARD_DATA_DIR"] = str(target)
    del operator.environment["SWITCHBOARD_SECRET_KEYS"]
    assert await asyncio.to_thread(operator.ask, "orgs", "import", str(file)) == made
    assert (target / "secret.key").exists()
    directory.claim()
    async with (
        EmbeddedServers(directory),
        open_process_runtime(
            Settings(data_dir=target), database_url=directory.database_url, redis_url=directory.redis_url
        ) as runtime,
    ):
        again = bind_caller(runtime, live.caller)
        await require_equal_lists(again, expected)
        rotated = await again.post(f"/v1/webhook-endpoints/{endpoint['id']}/rotate-secret?grace=true")
        assert rotated.status == 200, "the secret is under the target's key"
    directory.release()
