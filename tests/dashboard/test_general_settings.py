"""The settings that owners change themselves: name and time zone of their organization."""

from pathlib import Path

import pytest
from switchboard.foundation.settings import Settings
from switchboard.resources.identity.models import Organization
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People

PAGE = "/dashboard/general"
FIELDS: dict[str, str | list[str]] = {"name": " Blue Door ", "timezone": "Europe/Berlin"}


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return settings.model_copy(update={"tenants_dir": tmp_path})


async def read_organization(runtime: Runtime, caller: Caller) -> Organization:
    async with runtime.database.write(caller.organization_id) as session:
        return await session.get_one(Organization, caller.organization_id)


async def test_an_owner_changes_name_and_time_zone(people: People, runtime: Runtime, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    policy = (await read_organization(runtime, caller)).policy
    assert (await owner.post(PAGE, FIELDS)).location == PAGE
    changed = await read_organization(runtime, caller)
    assert (changed.name, changed.timezone, changed.policy) == ("Blue Door", "Europe/Berlin", policy)
    entries = await people.list_audit_entries(caller.organization_id)
    assert entries[-1] == (f"user:{owner.user_id}", "organization.updated", "change name; change timezone")
    shown = (await owner.get(PAGE)).html
    assert "<span>Blue Door</span>" in shown
    assert "Time zone: Europe/Berlin" in shown


@pytest.mark.parametrize("change", [{"name": " "}, {"name": "x" * 256}, {"timezone": "Mars"}, {"timezone": ""}])
async def test_what_is_not_valid_is_refused(
    people: People, runtime: Runtime, caller: Caller, change: dict[str, str | list[str]]
) -> None:
    owner, before = await people.join(caller.organization_id), await read_organization(runtime, caller)
    assert (await owner.post(PAGE, FIELDS | change)).status == 422
    assert await read_organization(runtime, caller) == before


async def test_a_builder_may_not(people: People, caller: Caller) -> None:
    builder = await people.join(caller.organization_id, role="builder")
    assert (await builder.get(PAGE)).status == 403
    assert (await builder.post(PAGE, FIELDS)).status == 403


async def test_a_tenant_file_wins(people: People, runtime: Runtime, caller: Caller, tmp_path: Path) -> None:
    slug = f"door-{caller.organization_id}"
    async with runtime.database.system() as session:
        (await session.get_one(Organization, caller.organization_id)).slug = slug
    path = tmp_path / f"{slug}.toml"
    path.write_text('name = "Door"')
    owner = await people.join(caller.organization_id)
    page = (await owner.get(PAGE)).html
    assert f"switchboard tenants apply {path}" in page
    assert 'name="timezone"' not in page
    assert (await owner.post(PAGE, FIELDS)).status == 409
