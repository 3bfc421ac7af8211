"""Deletion of an organization: nothing of it is left in any table or store, and nothing of another one is touched."""

from pathlib import Path
from uuid import uuid4

import pytest
from sqlmodel import col, update
from switchboard.foundation.database import now
from switchboard.resources.calls.models import Call
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.privacy.organization_deletion import OrganizationDeleter, OrganizationInUse
from switchboard.resources.privacy.queries import delete_records
from switchboard.runtime import Runtime

from tests.fixtures.administrator import Administrator
from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number
from tests.fixtures.calls import add_call, write_recording
from tests.fixtures.command_line import Operator
from tests.fixtures.webhooks import create_endpoint

pytestmark = pytest.mark.local_receivers


async def fill(runtime: Runtime, organizations: Organizations) -> LivePlatform:
    """Create an organization with an agent, a number, an ended call with its recording, and an endpoint."""
    live = await create_bakery(runtime, await organizations.create(), fresh_number())
    call = await add_call(runtime, live.caller, now(), has_recording=True, recording_format="wav")
    write_recording(runtime, call, caller=1.0, agent=1.0)
    await create_endpoint(live.caller, "http://127.0.0.1:9/")
    return live


async def delete(runtime: Runtime, live: LivePlatform) -> None:
    await runtime.call(OrganizationDeleter).delete(live.caller.organization_id)


async def test_nothing_is_left_and_another_organization_keeps_everything(
    runtime: Runtime, organizations: Organizations, administrator: Administrator
) -> None:
    live, other = await fill(runtime, organizations), await fill(runtime, organizations)
    before = await administrator.count_rows(other.caller.organization_id)
    assert {"agent", "call", "phone_number", "audit_entry"} <= set(
        await administrator.count_rows(live.caller.organization_id)
    )
    assert (await live.caller.get("/v1/calls")).status == 200
    await delete(runtime, live)
    assert await administrator.count_rows(live.caller.organization_id) == {}
    assert await runtime.recordings.list_keys(str(live.caller.organization_id)) == []
    assert (await live.caller.get("/v1/calls")).status == 401
    assert await administrator.count_rows(other.caller.organization_id) == before
    assert len(await runtime.recordings.list_keys(str(other.caller.organization_id))) == 1


async def test_records_of_an_organization_that_exists_are_not_deleted(
    runtime: Runtime, organizations: Organizations, administrator: Administrator
) -> None:
    live = await fill(runtime, organizations)
    before = await administrator.count_rows(live.caller.organization_id)
    async with runtime.database.system() as session:
        await delete_records(session, live.caller.organization_id)
        await session.flush()
    after = await administrator.count_rows(live.caller.organization_id)
    counts = {"row_count", "row_count_change", "limit_counter", "limit_counter_change"}
    assert {**before, **dict.fromkeys(counts, 0)} == {**after, **dict.fromkeys(counts, 0)}


async def test_live_calls_and_rented_numbers_are_refused(
    runtime: Runtime, organizations: Organizations, administrator: Administrator
) -> None:
    live = await fill(runtime, organizations)
    organization_id = live.caller.organization_id
    await add_call(runtime, live.caller, now(), status="in-progress")
    with pytest.raises(OrganizationInUse, match="1 calls are queued or live"):
        await delete(runtime, live)
    assert (await administrator.count_rows(organization_id))["call"] == 2
    async with runtime.database.write(organization_id) as session:
        await session.exec(update(Call).where(session.owns(Call)).values(status="completed"))
        await session.exec(update(PhoneNumber).where(col(PhoneNumber.id) == live.number_id).values(carrier="twilio"))
    with pytest.raises(OrganizationInUse, match=r"phone numbers are rented: \+1.*; release them first"):
        await delete(runtime, live)


def test_the_command_asks_for_confirmation(operator: Operator) -> None:
    organization = operator.ask("orgs", "create", "--name", "Acme to delete")
    refused = operator.run("orgs", "delete", organization["id"])
    assert refused.returncode == 1
    assert "Type Acme to delete to confirm" in refused.stdout + refused.stderr
    deleted = operator.ask("orgs", "delete", organization["id"], "--yes")
    assert deleted["id"] == organization["id"]
    assert organization["id"] not in operator.ask("orgs", "list")
    gone = operator.run("orgs", "delete", str(uuid4()), "--yes")
    assert "there is no organization" in gone.stderr


def test_a_tenant_file_keeps_its_organization(operator: Operator, tmp_path: Path) -> None:
    file = tmp_path / "tenants" / f"acme-{uuid4().hex[:8]}.toml"
    file.parent.mkdir()
    file.write_text('name = "Acme"\n')
    operator.environment["SWITCHBOARD_TENANTS_DIR"] = str(file.parent)
    operator.ask("tenants", "apply")
    listed = operator.ask("orgs", "list")
    (organization_id, *_) = [key for key, name in reversed(listed.items()) if name == "Acme"]
    refused = operator.run("orgs", "delete", organization_id, "--yes")
    assert "would create the organization again" in refused.stderr
