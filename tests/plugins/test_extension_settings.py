"""Settings of actions and tools: each organization has its own, and nobody else's."""

import json
from pathlib import Path
from types import ModuleType

import pytest
from sqlmodel import select
from structlog.testing import capture_logs
from switchboard.apps.tenant_files.apply import apply_tenant_file
from switchboard.apps.tenant_files.files import read_file
from switchboard.apps.worker.jobs import notify_event_watchers
from switchboard.engine.providers.models import ProviderConfiguration
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Registry
from switchboard.runtime import Runtime

from tests.fixtures import crm
from tests.fixtures.app import Caller, Organizations
from tests.fixtures.automations import (
    advance_runs,
    create_automation,
    get_actions,
    get_only_run,
    publish_message,
    run_once,
)
from tests.fixtures.dashboard import People, Person
from tests.fixtures.json_access import Json, at
from tests.fixtures.servers import REPOSITORY
from tests.fixtures.tutorial import read_blocks
from tests.fixtures.work import do_due_work

NOTE_PAGE = "/dashboard/providers/automation_action/crm_note"
NOTE: Json = {"type": "crm_note", "params": {"text": "{{ data.body }}"}}
ACCOUNT = json.dumps({"user": "baker", "token": crm.TOKEN})


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert not registry.add("crm", crm).faults
    return registry


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return settings.model_copy(update={"tenants_dir": tmp_path})


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def set_up(person: Person, key: str, **values: str) -> None:
    fields: dict[str, str | list[str]] = {f"settings.{name}": value for name, value in values.items()}
    response = await person.post(NOTE_PAGE, {"settings.api_key": key, **fields})
    assert response.status == 303, response.html


async def read_configuration(runtime: Runtime, caller: Caller) -> ProviderConfiguration:
    async with runtime.database.write(caller.organization_id) as session:
        rows = session.select(ProviderConfiguration).where(ProviderConfiguration.name == "crm_note")
        return (await session.exec(rows)).one()


async def test_an_action_runs_with_the_settings_of_its_own_organization(
    people: People, owner: Person, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    await set_up(owner, "crm-key-of-the-bakery", region="us")
    await set_up(await people.join(stranger.organization_id), "crm-key-of-the-florist")
    ran = await run_once(runtime, caller, NOTE, body="Two loaves")
    assert at(get_actions(ran)[0], "result") == {"owner": "bakery", "region": "us", "text": "Two loaves"}
    ran = await run_once(runtime, stranger, NOTE, body="Roses")
    assert at(get_actions(ran)[0], "result") == {"owner": "florist", "region": "eu", "text": "Roses"}


async def test_an_action_without_its_required_settings_is_not_offered(
    people: People, owner: Person, caller: Caller, stranger: Caller
) -> None:
    await set_up(await people.join(stranger.organization_id), "crm-key-of-the-florist")
    refused = await caller.post("/v1/automations", {"name": "A", "trigger_type": "sms.received", "actions": [NOTE]})
    assert refused.status == 422
    assert at(refused.json, "errors", 0) == {
        "field": "actions.0.type",
        "message": (
            "the organization's settings of crm_note are missing: set them in [automation_action.crm_note] of the "
            "tenant file, or on the page Providers"
        ),
    }
    offer = '<option value="crm_note">'
    assert offer not in (await owner.get("/dashboard/automations/new")).html
    assert "Not available: its settings are missing." in (await owner.get("/dashboard/providers")).html
    await set_up(owner, crm.KEY)
    assert offer in (await owner.get("/dashboard/automations/new")).html
    await create_automation(caller, NOTE)


async def test_an_action_whose_settings_are_gone_fails_with_the_reason(
    owner: Person, caller: Caller, runtime: Runtime
) -> None:
    await set_up(owner, crm.KEY)
    automation = await create_automation(caller, NOTE)
    await owner.post(f"{NOTE_PAGE}/remove")
    assert "crm_note is still used by Automation" in (await owner.get("/dashboard/providers")).html
    async with runtime.database.write(caller.organization_id) as session:
        row = (await session.exec(select(ProviderConfiguration).where(ProviderConfiguration.name == "crm_note"))).one()
        await session.delete(row)
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller)
    run = await get_only_run(caller, automation)
    assert run["status"] == "failed"
    assert "the organization's settings of crm_note are missing" in str(run["error_message"])
    assert (
        "It will not run: the organization&#39;s settings of crm_note"
        in (await owner.get(f"/dashboard/automations/{automation['id']}")).html
    )


async def test_a_watcher_receives_only_events_of_organizations_with_its_settings(
    people: People, owner: Person, caller: Caller, stranger: Caller, organizations: Organizations, *, runtime: Runtime
) -> None:
    other = await organizations.create()
    page = "/dashboard/providers/event_watcher/crm_events"
    for person, key in ((owner, crm.KEY), (await people.join(stranger.organization_id), "crm-key-of-the-florist")):
        assert (await person.post(page, {"settings.api_key": key, "settings.region": "broken"})).status == 303
    for organization in (caller, stranger, other):
        await publish_message(runtime, organization)
    with capture_logs() as logs:
        await do_due_work(runtime, notify_event_watchers)
    ids = {organization.organization_id for organization in (caller, stranger, other)}
    assert sorted(str(settings["owner"]) for owner, _, settings in crm.COPIED if owner in ids) == ["bakery", "florist"]
    assert {owner: settings["owner"] for owner, _, settings in crm.COPIED if owner in ids} == {
        caller.organization_id: "bakery",
        stranger.organization_id: "florist",
    }
    failed = [
        entry for entry in logs if entry["event"] == "event watcher failed" and entry["extension"] == "crm_events"
    ]
    assert len(failed) == 2, "a watcher that raises is logged, and the others receive their events"
    assert crm.KEY not in str(failed)


@pytest.mark.parametrize(
    "expression",
    [
        "settings",
        "settings.api_key",
        "action.settings",
        "self",
        "params",
        "context",
        "config",
        "namespace",
        "data.settings.account.token",
        "data.crm_note",
        "organization_id.settings",
        "data.body.__class__",
        "data['account']['token']",
        "event.settings.region",
    ],
)
async def test_templates_see_no_settings(
    people: People, owner: Person, caller: Caller, stranger: Caller, runtime: Runtime, *, expression: str
) -> None:
    await set_up(owner, crm.KEY, account=ACCOUNT, region="region-of-the-bakery")
    await set_up(await people.join(stranger.organization_id), "crm-key-of-the-florist")
    for organization in (caller, stranger):
        action: Json = {"type": "crm_note", "params": {"text": f"{{{{ {expression} }}}}"}}
        body = {"name": "Curious", "trigger_type": "sms.received", "actions": [action]}
        saved = await organization.post("/v1/automations", body)
        assert saved.status in (201, 422)
        seen = json.dumps(saved.json)
        if saved.status == 201:
            await publish_message(runtime, organization)
            await advance_runs(runtime, organization)
            run = await get_only_run(organization, saved.json)
            assert run["status"] == "failed"
            seen += json.dumps(run)
        assert not [value for value in (crm.KEY, crm.TOKEN, "region-of-the-bakery", "florist") if value in seen]


async def test_secrets_are_encrypted_and_never_shown_also_if_they_are_nested(
    owner: Person, caller: Caller, runtime: Runtime
) -> None:
    await set_up(owner, crm.KEY, account=ACCOUNT, region="us")
    for page in (NOTE_PAGE, "/dashboard/providers"):
        html = (await owner.get(page)).html
        assert crm.KEY not in html
        assert crm.TOKEN not in html
    row = await read_configuration(runtime, caller)
    assert row.settings == {"region": "us"}
    label = f"provider_configuration|secrets|{row.id}|{row.organization_id}"
    kept = {"api_key": crm.KEY, "account": {"user": "baker", "token": crm.TOKEN}}
    assert json.loads(runtime.keyring.decrypt(row.secrets, label)) == kept
    assert (await owner.post(NOTE_PAGE, {"settings.api_key": "", "settings.region": "ap"})).status == 303
    row = await read_configuration(runtime, caller)
    assert row.settings == {"region": "ap"}
    assert json.loads(runtime.keyring.decrypt(row.secrets, label)) == kept, "an empty field keeps its secret"


async def test_settings_whose_key_is_lost_are_not_used(owner: Person, caller: Caller, runtime: Runtime) -> None:
    await set_up(owner, crm.KEY)
    automation = await create_automation(caller, NOTE)
    async with runtime.database.write(caller.organization_id) as session:
        row = (await session.exec(select(ProviderConfiguration).where(ProviderConfiguration.name == "crm_note"))).one()
        label = f"provider_configuration|secrets|{row.id}|{row.organization_id}"
        row.secrets = KeyRing(["a key that nobody has: 32 characters"]).encrypt("{}", label)
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller)
    run = await get_only_run(caller, automation)
    assert "the organization's settings of crm_note are not usable" in str(run["error_message"])


async def test_the_dashboard_reports_invalid_settings_and_checks_valid_ones(people: People, owner: Person) -> None:
    refused = await owner.post(NOTE_PAGE, {"settings.api_key": "short!!"})
    assert refused.status == 422
    assert 'id="fault-settings.api_key"' in refused.html
    assert "short!!" not in refused.html
    assert "settings.base_url" not in refused.html, "only the operator sets where requests go"
    await set_up(owner, "a wrong key")
    await owner.post(f"{NOTE_PAGE}/check")
    page = (await owner.get("/dashboard/providers")).html
    assert "Write a CRM note does not work: the CRM does not know this key" in page
    await set_up(owner, crm.KEY)
    await owner.post(f"{NOTE_PAGE}/check")
    assert "Write a CRM note works." in (await owner.get("/dashboard/providers")).html
    assert (await owner.post(f"{NOTE_PAGE}/remove")).status == 303
    await owner.post(f"{NOTE_PAGE}/check")
    assert "settings of crm_note are missing" in (await owner.get("/dashboard/providers")).html
    assert (await owner.post(f"{NOTE_PAGE}/up")).status == 404, "extensions have no order"


async def test_changes_of_settings_are_audited_without_values(people: People, owner: Person, caller: Caller) -> None:
    await set_up(owner, crm.KEY, region="us")
    entries = await people.list_audit_entries(caller.organization_id)
    assert "automation_action/crm_note api_key, region" in str(entries)
    assert crm.KEY not in str(entries)


async def test_the_code_of_the_documentation_is_a_plugin_with_these_settings(runtime: Runtime, tmp_path: Path) -> None:
    blocks = read_blocks(REPOSITORY / "docs" / "plugins" / "extensions.md")
    module = ModuleType("documented")
    code = "\n".join(block.text for block in blocks if block.language == "python")
    exec(compile(code, "extensions.md", "exec"), vars(module))  # noqa: S102 - the page's own code
    registry = Registry()
    plugin = registry.add("documented", module)
    assert plugin.faults == []
    parts = [
        "agent_tool crm_customer",
        "automation_action crm_note",
        "event_watcher crm_calls",
        "private_data_detector crm_number",
    ]
    assert sorted(plugin.provides) == parts
    (settings,) = (block.text for block in blocks if block.language == "toml")
    path = tmp_path / f"bakery-{tmp_path.name}.toml"
    path.write_text(f'name = "Bakery"\n\n{settings}')
    file = read_file(path, registry, {"CRM_KEY": "a key of the test"})
    assert file.faults == []
    _, changes = await apply_tenant_file(runtime.database, registry, runtime.keyring, file)
    assert {f"add {part}" for part in parts} <= set(changes)
