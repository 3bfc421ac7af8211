"""Settings of actions, tools, and event watchers in tenant files: read, compared, applied, and checked by commands."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import Field, SecretStr
from switchboard.apps.tenant_files.apply import apply_tenant_file
from switchboard.apps.tenant_files.files import read_file
from switchboard.engine.providers.configuration import find_secret_settings
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk import ActionContext, ActionParams, AutomationAction, JsonObject, ProviderSettings, hookimpl
from switchboard.plugin_sdk.registry import Registry
from switchboard.runtime import Runtime

from tests.fixtures import crm, owl
from tests.fixtures.command_line import CommandResult, Operator
from tests.fixtures.dashboard import People
from tests.fixtures.servers import REPOSITORY

FILE = """name = "Bakery"

[automation_action.crm_note]
api_key = { env = "CRM_KEY" }
region = "us"

[automation_action.crm_note.account]
user = "baker"
token = { env = "CRM_TOKEN" }

[agent_tool.crm_customer]
api_key = { env = "CRM_KEY" }

[event_watcher.crm_events]
api_key = { env = "CRM_KEY" }

[private_data_detector.crm_number]
api_key = { env = "CRM_KEY" }
"""
OWL = """
[[llm]]
provider = "owl"
api_key = { env = "OWL_KEY" }
"""
ENVIRONMENT = {"CRM_KEY": crm.KEY, "CRM_TOKEN": crm.TOKEN, "OWL_KEY": owl.KEY}


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert not registry.add("crm", crm).faults
    return registry


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return settings.model_copy(update={"tenants_dir": tmp_path})


@pytest.mark.parametrize(
    ("change", "line", "key"),
    [
        (("[agent_tool.crm_customer]", "[agent_tool.crm_custom]"), 11, "agent_tool.crm_custom"),
        (('region = "us"', 'reggion = "us"'), 5, "automation_action.crm_note.reggion"),
        (('{ env = "CRM_KEY" }\nregion', '"literal-key"\nregion'), 4, "automation_action.crm_note.api_key"),
        (('{ env = "CRM_TOKEN" }', '{ env = "UNSET" }'), 9, "automation_action.crm_note.account.token"),
        (("[agent_tool.crm_customer]", "[agent_tool]\n[[agent_tool.crm_customer]]"), 11, "agent_tool"),
        (
            ('[agent_tool.crm_customer]\napi_key = { env = "CRM_KEY" }', "[agent_tool.crm_customer]"),
            11,
            "agent_tool.crm_customer.api_key",
        ),
        (
            (
                '[private_data_detector.crm_number]\napi_key = { env = "CRM_KEY" }',
                '[redaction]\nkinds = ["crm_number"]',
            ),
            18,
            "redaction.kinds",
        ),
    ],
)
def test_each_error_of_a_tenant_file_has_its_line_and_key(
    tmp_path: Path, registry: Registry, *, change: tuple[str, str], line: int, key: str
) -> None:
    path = tmp_path / "bakery.toml"
    assert change[0] in FILE
    path.write_text(FILE.replace(*change))
    faults = read_file(path, registry, ENVIRONMENT).faults
    assert [(fault.line, fault.key) for fault in faults] == [(line, key)], [str(fault) for fault in faults]
    assert "literal" not in str(faults[0])


async def test_a_tenant_file_makes_the_dashboards_settings_read_only(
    people: People, runtime: Runtime, tmp_path: Path
) -> None:
    path = tmp_path / f"bakery-{tmp_path.name}.toml"
    path.write_text(FILE)
    file = read_file(path, runtime.registry, ENVIRONMENT)
    organization_id, _ = await apply_tenant_file(runtime.database, runtime.registry, runtime.keyring, file)
    owner = await people.join(organization_id)
    html = (await owner.get("/dashboard/providers")).html
    assert "crm_note" in html
    assert "Set up" not in html
    assert (
        await owner.post("/dashboard/providers/automation_action/crm_note", {"settings.region": "ap"})
    ).status == 409


def test_the_commands_show_check_and_apply_settings(operator: Operator, own_database: str, tmp_path: Path) -> None:
    site, tenants = tmp_path / "site", tmp_path / "tenants"
    metadata = site / "crm-1.0.dist-info"
    metadata.mkdir(parents=True)
    tenants.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: crm\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[switchboard.plugins]\ncrm = tests.fixtures.crm\nowl = tests.fixtures.owl\n"
    )
    file = tenants / f"bakery-{tmp_path.name}.toml"
    file.write_text(FILE + OWL)
    environment = {
        **operator.environment,
        **ENVIRONMENT,
        "SWITCHBOARD_DATABASE_URL": own_database,
        "PYTHONPATH": f"{site}:{REPOSITORY}",
    }

    def run(*arguments: str, **changes: str) -> CommandResult:
        return Operator(**{**environment, **changes}).run(*arguments)

    assert run("migrate").returncode == 0
    listed = run("plugins", "list").stdout
    assert "  automation_action crm_note (settings: api_key, region, account, base_url)\n" in listed
    end = f"the vendor ends barn on {owl.LAST_DAY}: choose another model or provider"
    checked = run("tenants", "check", str(tenants))
    assert (checked.returncode, checked.stdout) == (0, "1 files, 0 errors\n")
    assert checked.stderr == f"warning: {file}:20: llm.0: {end}\n"
    missing = run("tenants", "check", str(tenants), CRM_KEY="")
    assert (missing.returncode, f"{file}:4: automation_action.crm_note.api_key: " in missing.stderr) == (1, True)
    added = (
        "add automation_action crm_note, add agent_tool crm_customer, add event_watcher crm_events, "
        "add private_data_detector crm_number"
    )
    assert added in run("tenants", "diff", str(tenants)).stdout
    assert added in run("tenants", "apply", str(tenants)).stdout
    assert "nothing to change" in run("tenants", "diff", str(tenants)).stdout
    changed = run("tenants", "diff", str(tenants), CRM_TOKEN="another token").stdout
    assert changed.endswith(": change automation_action crm_note\n")
    assert "another token" not in changed
    findings = json.loads(run("doctor", "--json").stdout)["findings"]
    found = {finding["what"]: finding["ok"] for finding in findings if "crm" in finding["what"]}
    assert {finding["what"]: finding["advice"] for finding in findings if finding["what"].endswith("owl")} == {
        "plugin owl": "",
        "Bakery: llm owl": end,
    }
    assert found == {
        "plugin crm": True,
        "Bakery: automation_action crm_note": True,
        "Bakery: agent_tool crm_customer": True,
        "Bakery: event_watcher crm_events": True,
        "Bakery: private_data_detector crm_number": True,
    }
    file.write_text(FILE.partition("[agent_tool")[0])
    assert (
        "remove agent_tool crm_customer, remove event_watcher crm_events, remove private_data_detector crm_number"
        in run("tenants", "apply", str(tenants)).stdout
    )


class Target(ProviderSettings):
    """A part of the settings that contains itself."""

    url: str
    password: SecretStr
    fallbacks: list["Target"]


class Deep(ProviderSettings):
    """Settings with secrets at several depths."""

    plain: dict[str, str] | None = None
    headers: dict[str, SecretStr] | None = None
    target: Target | None = None
    targets: list[Target] | None = None
    pair: tuple[str, SecretStr] | None = None
    renamed: SecretStr | None = Field(None, alias="other")
    undescribed: Callable[[], None] | None = None


class DeepNote(AutomationAction[ActionParams]):
    """An action with deep settings."""

    name, title, Settings = "deep_note", "Deep note", Deep

    async def run(self, context: ActionContext, params: ActionParams) -> JsonObject:
        return {}


@hookimpl(specname="automation_actions")
def list_deep_actions() -> list[type[DeepNote]]:
    return [DeepNote]


def test_a_setting_that_contains_a_secret_is_a_secret() -> None:
    assert find_secret_settings(Deep) == {"headers", "target", "targets", "pair", "renamed", "other"}
    assert find_secret_settings(Target) == {"password", "fallbacks"}


def test_references_to_secrets_are_resolved_within_lists(tmp_path: Path) -> None:
    registry = Registry()
    registry.add("deep", SimpleNamespace(automation_actions=list_deep_actions))
    path = tmp_path / "bakery.toml"
    target = '[[automation_action.deep_note.targets]]\nurl = "x"\npassword = { env = "CRM_KEY" }\nfallbacks = []\n'
    path.write_text(f'name = "Bakery"\n{target}')
    file = read_file(path, registry, ENVIRONMENT)
    assert file.faults == []
    assert file.providers[0].settings == {"targets": [{"url": "x", "password": crm.KEY, "fallbacks": []}]}
