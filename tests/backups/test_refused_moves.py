"""Moves that are refused, given up, repeated, or broken, and tables that nobody has decided about."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg
import pytest_asyncio
from sqlalchemy import make_url
from switchboard.apps.backups.archive import read_header
from switchboard.apps.backups.organization_tables import CONDITIONS, NOT_MOVED
from switchboard.resources.identity import service as identity

from tests.fixtures.app import Caller
from tests.fixtures.eventually import eventually
from tests.fixtures.installations import Installation, bind_caller, create_caller
from tests.fixtures.secret_values import SecretValues, create_secret_values, repeat_request
from tests.fixtures.table_rows import count_table_rows

Installations = tuple[Installation, Installation]
EMAIL, PASSWORD = "owner@example.com", "a long enough password"
MOVED = {
    "account", "agent", "agent_draft", "agent_version", "api_key", "appointment", "appointment_type", "audit_entry",
    "authenticator_app", "automation", "automation_run", "calendar", "calendar_entry", "call", "call_queue_entry",
    "campaign", "campaign_contact", "contact", "contact_search", "deleted_usage", "delivery", "delivery_attempt",
    "delivery_due", "do_not_call_entry", "erased_number", "event", "event_due", "event_target", "event_trigger",
    "idempotency_record", "integration", "invitation", "knowledge_base", "knowledge_document", "knowledge_text",
    "ledger_entry", "ledger_hold", "membership", "oauth_client", "oauth_grant", "oauth_token", "organization",
    "organization_key", "organization_logo", "outbound_pause", "phone_number", "privacy_request",
    "provider_configuration", "recovery_code", "saved_view", "simulation", "sms_conversation",
    "sms_conversation_reader", "sms_media", "sms_message", "transcript_line", "transcript_search", "user_account",
    "widget", "widget_session",
}  # fmt: skip
"""Tables whose rows move. Before you add one: its secrets, its references to users, and what the target does with its
due rows."""
LEASED_DELIVERY = """
insert into delivery_due (id, organization_id, created_at, target_id, due_at, is_ready, lease_token)
values (gen_random_uuid(), '{id}', now(), gen_random_uuid(), now() + interval '1 day', false, gen_random_uuid())
"""
PROTECTED = """
select relname from pg_class
where relforcerowsecurity and not relispartition and relnamespace = 'public'::regnamespace
"""


async def administrate_database(installation: Installation, statement: str) -> None:
    """Run a statement as a superuser."""
    url = make_url(installation.database_url).set(username="switchboard").render_as_string()
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


@pytest_asyncio.fixture
async def organization(installations: Installations) -> tuple[Caller, SecretValues]:
    """An organization of the source with an owner, secrets, and a number."""
    source, _ = installations
    async with source.open_runtime() as runtime:
        caller = await create_caller(runtime)
        secrets = await create_secret_values(caller, "http://127.0.0.1:9/hook")
        async with runtime.database.system() as session:
            await identity.create_user(session, email=EMAIL, password=PASSWORD, organization_id=caller.organization_id)
    return caller, secrets


@pytest_asyncio.fixture
async def file(installations: Installations, organization: tuple[Caller, SecretValues], tmp_path: Path) -> Path:
    """The organization's archive."""
    path = tmp_path / "organization.tar"
    await installations[0].ask("orgs", "export", str(path), "--org", str(organization[0].organization_id))
    return path


async def test_somebody_has_decided_about_each_table(installations: Installations) -> None:
    connection = await asyncpg.connect(installations[0].database_url)
    tables = {row["relname"] for row in await connection.fetch(PROTECTED)}
    await connection.close()
    assert MOVED & NOT_MOVED.keys() == set()
    assert tables - MOVED - NOT_MOVED.keys() == set(), "do its rows move with their organization?"
    assert MOVED | NOT_MOVED.keys() <= tables
    assert CONDITIONS.keys() <= MOVED


async def test_a_target_says_what_it_cannot_take(
    installations: Installations, organization: tuple[Caller, SecretValues], file: Path, tmp_path: Path
) -> None:
    source, target = installations
    _, secrets = organization
    key = Path(f"{file}.key")
    counted = await count_table_rows(target.database_url)
    whole, right = file.read_bytes(), key.read_text()
    revision = read_header(file).schema_revision

    key.unlink()
    assert "there is no key in" in await target.refuse("orgs", "import", str(file))
    key.write_text("the key of another archive")
    assert "is the key of another export" in await target.refuse("orgs", "import", str(file))
    key.write_text(right)
    for message, content in damage(whole).items():
        file.write_bytes(content)
        assert message in await target.refuse("orgs", "import", str(file))
    file.write_bytes(whole)
    assert "use `switchboard orgs import`" in await target.refuse("restore", str(file))
    backup = tmp_path / "backup.tar"
    await source.ask("backup", str(backup))
    assert "use `switchboard restore`" in await target.refuse("orgs", "import", str(backup))
    await administrate_database(target, "update alembic_version set version_num = '0000'")
    assert "the same version" in await target.refuse("orgs", "import", str(file))
    await administrate_database(target, f"update alembic_version set version_num = '{revision}'")  # noqa: S608
    assert await count_table_rows(target.database_url) == counted

    async with target.open_runtime() as runtime:
        other = await create_caller(runtime)
        taken = await other.post("/v1/phone-numbers", {"phone_number": secrets.number})
        assert taken.status == 201, taken.body
    assert f"in use here: {secrets.number}" in await target.refuse("orgs", "import", str(file))
    await administrate_database(target, "update phone_number set status = 'released'")
    async with target.open_runtime() as runtime, runtime.database.system() as session:
        user = await identity.create_user(session, email=EMAIL, password=PASSWORD)
        user.email_verified_at = None
    assert f"nobody has proven these addresses of users here: {EMAIL}" in await target.refuse(
        "orgs", "import", str(file)
    )
    await administrate_database(target, "update user_account set email_verified_at = now()")
    await target.ask("orgs", "import", str(file))
    assert "exists here already" in await target.refuse("orgs", "import", str(file))


def damage(whole: bytes) -> Mapping[str, bytes]:
    """Return damaged archives by the message that refuses each."""
    middle = whole.index(b"tables/organization/") + 700
    return {
        "was cut short": whole[: len(whole) // 2],
        "is damaged": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
    }


async def test_a_missing_plugin_is_named(
    installations: Installations, organization: tuple[Caller, SecretValues], tmp_path: Path
) -> None:
    source, target = installations
    await administrate_database(source, "update provider_configuration set name = 'nowhere' where capability = 'llm'")
    file = tmp_path / "organization.tar"
    await source.ask("orgs", "export", str(file), "--org", str(organization[0].organization_id))
    assert "no plugin here provides llm nowhere" in await target.refuse("orgs", "import", str(file))


async def test_a_broken_import_leaves_nothing_and_is_repeated(
    installations: Installations, organization: tuple[Caller, SecretValues], file: Path
) -> None:
    _, target = installations
    counted = await count_table_rows(target.database_url)
    await administrate_database(target, "alter policy import on agent with check (false)")
    assert "the database refused" in await target.refuse("orgs", "import", str(file))
    assert await count_table_rows(target.database_url) == counted
    assert not list((target.folder / "recordings").glob("*/*"))
    await administrate_database(target, "alter policy import on agent with check (true)")
    await target.ask("orgs", "import", str(file))
    async with target.open_runtime() as runtime:
        assert await repeat_request(bind_caller(runtime, organization[0])) == organization[1].kept_response


async def test_a_move_is_repeated_and_given_up(
    installations: Installations, organization: tuple[Caller, SecretValues], file: Path, tmp_path: Path
) -> None:
    source, _ = installations
    caller, _ = organization
    again = tmp_path / "again.tar"
    first = {name: value for name, value in read_header(file) if name not in ("created_at", "organization")}
    async with source.open_runtime() as runtime:
        bound = bind_caller(runtime, caller)
        assert (await bound.get("/v1/agents")).status == 200
        made = await source.ask("orgs", "export", str(again), "--org", str(caller.organization_id))
        second = {name: value for name, value in read_header(again) if name in first}
        assert second == first
        assert abs(made["bytes"] - file.stat().st_size) < 1024, "compressed secrets differ a little"
        refusal = await source.refuse(
            "keys", "create", "--org", str(caller.organization_id), "--name", "x", "--scope", "agents:read"
        )
        assert "is being moved to another installation" in refusal
        resumed = await source.ask("orgs", "resume", str(caller.organization_id))
        assert resumed == {"id": str(caller.organization_id), "suspended": False}

        async def write() -> int:
            return (await bound.post("/v1/agents", {"name": "After"})).status

        await eventually(write, lambda status: status == 201, longest_poll=1.0)
    unknown = await source.refuse("orgs", "export", str(again), "--org", "00000000-0000-0000-0000-000000000000")
    assert "there is no organization" in unknown


async def test_running_work_ends_before_the_snapshot(
    installations: Installations, organization: tuple[Caller, SecretValues], tmp_path: Path
) -> None:
    source, _ = installations
    caller, _ = organization
    await administrate_database(source, LEASED_DELIVERY.format(id=caller.organization_id))
    file = tmp_path / "organization.tar"
    exporting = asyncio.create_task(source.ask("orgs", "export", str(file), "--org", str(caller.organization_id)))
    await asyncio.sleep(5)
    assert not exporting.done()
    assert not file.exists()
    await administrate_database(source, "update delivery_due set lease_token = null")
    made: dict[str, Any] = await exporting
    assert made["rows"] > 0
    shutil.rmtree(source.folder, ignore_errors=True)
