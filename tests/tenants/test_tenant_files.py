"""Tenant files: each error by file, line, and key; applied once, unchanged the second time."""

import json
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlmodel import col, select
from switchboard.apps.tenant_files.apply import FileRefused, apply_tenant_file, compare_tenant_file
from switchboard.apps.tenant_files.files import read_file, read_folder
from switchboard.engine.providers.models import ProviderConfiguration
from switchboard.plugin_sdk import TelephonyProvider
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.service import get_policy
from switchboard.runtime import Runtime

from tests.fixtures.app import Organizations
from tests.fixtures.servers import REPOSITORY

GOOD = """name = "Acme"
max_concurrent_calls = 5

[prices]
call_minute = 0.02

[[telephony]]
provider = "loopback"

[[llm]]
provider = "openai"
api_key = { env = "ACME_KEY" }

[[llm]]
provider = "scripted"
"""


@pytest.mark.parametrize(
    ("change", "line", "key"),
    [
        (('name = "Acme"', "name = 5"), 1, "name"),
        (('name = "Acme"', 'name = "Acme"\ntimezone = "Mars"'), 2, "timezone"),
        (("max_concurrent_calls = 5", "max_concurrent_calls = 0"), 2, "max_concurrent_calls"),
        (("max_concurrent_calls", "max_calls"), 2, "max_calls"),
        (("call_minute = 0.02", "call_minute = -1"), 5, "prices.call_minute"),
        (('provider = "loopback"', 'provider = "nobody"'), 8, "telephony.0.provider"),
        (('provider = "loopback"', 'provider = "loopback"\ncolor = "red"'), 9, "telephony.0.color"),
        (("ACME_KEY", "NOT_SET"), 12, "llm.0.api_key"),
        (('{ env = "ACME_KEY" }', '"sk-literal"'), 12, "llm.0.api_key"),
        (('{ env = "ACME_KEY" }', '{ file = "missing" }'), 12, "llm.0.api_key"),
        (('provider = "scripted"', 'provider = "openai"'), 15, "llm.1.provider"),
        (('provider = "scripted"', 'provider = "scripted"\nprocess = "mine"'), 16, "llm.1.process"),
        (('provider = "loopback"', 'provider = "loopback"\nprocess = "own"'), 9, "telephony.0.process"),
        (('provider = "scripted"', ""), 14, "llm.1"),
        (("[[llm]]", "[[lmm]]"), 10, "lmm"),
        (("[prices]", "[retention]\ncalls = -1\n\n[prices]"), 5, "retention.calls"),
        (("[prices]", "[retention]\nrecording = 1\n\n[prices]"), 5, "retention.recording"),
        (("[prices]", '[redaction]\nkinds = ["card_nummer"]\n\n[prices]'), 5, "redaction.kinds"),
        (("[prices]", "[retention]\ncalls = 30\nrecordings = 90\n\n[prices]"), 4, "retention"),
        (("[prices]", '[disclosure]\npresets = ["zz"]\n\n[prices]'), 5, "disclosure.presets"),
        (("[prices]", '[disclosure]\nconsent = "maybe"\n\n[prices]'), 5, "disclosure.consent"),
    ],
)
def test_each_error_has_its_line_and_key(
    tmp_path: Path, registry: Registry, change: tuple[str, str], line: int, key: str
) -> None:
    path = tmp_path / "acme.toml"
    path.write_text(GOOD.replace(*change))
    faults = read_file(path, registry, {"ACME_KEY": "sk-x"}).faults
    assert (line, key) in [(fault.line, fault.key) for fault in faults], [str(fault) for fault in faults]
    assert not any("sk-" in str(fault) for fault in faults)


def test_a_syntax_error_is_reported(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "bad.toml").write_text('name = "x\n')
    assert [fault.key for fault in read_folder(tmp_path, registry)[0].faults] == ["syntax"]


async def test_applying_is_idempotent_and_detects_changes(tmp_path: Path, runtime: Runtime) -> None:
    path = tmp_path / f"acme-{tmp_path.name}.toml"
    path.write_text(GOOD)
    file = read_file(path, runtime.registry, {"ACME_KEY": "sk-very-secret"})
    parts = (runtime.database, runtime.registry, runtime.keyring)
    plan = await compare_tenant_file(*parts, file)
    assert plan == [
        "create organization Acme",
        "change policy",
        "add telephony loopback",
        "add llm openai",
        "add llm scripted",
    ]
    organization_id, changed = await apply_tenant_file(*parts, file)
    assert changed == plan
    assert (await apply_tenant_file(*parts, file))[1] == await compare_tenant_file(*parts, file) == []
    async with runtime.database.write(organization_id) as session:
        rows = (await session.exec(select(ProviderConfiguration))).all()
    assert not any("sk-very-secret" in str(row.model_dump()) for row in rows), "secrets are encrypted"
    path.write_text(GOOD.replace("0.02", "0.03").replace('[[llm]]\nprovider = "scripted"\n', ""))
    changed = (await apply_tenant_file(*parts, read_file(path, runtime.registry, {"ACME_KEY": "sk-other"})))[1]
    assert changed == ["change policy", "change llm openai", "remove llm scripted"]
    async with runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        await carrier.check()


async def test_a_file_that_fails_midway_changes_nothing(tmp_path: Path, runtime: Runtime) -> None:
    path = tmp_path / f"half-{tmp_path.name}.toml"
    path.write_text(GOOD)
    file = read_file(path, runtime.registry, {"ACME_KEY": "x"})
    file.providers.append(file.providers[0])
    file.providers[-1] = type(file.providers[0])(Capability.LLM, "gone", {})
    with pytest.raises(Exception, match="gone"):
        await apply_tenant_file(runtime.database, runtime.registry, runtime.keyring, file)
    async with runtime.database.system() as session:
        assert (
            await session.exec(select(Organization).where(col(Organization.slug) == file.slug))
        ).one_or_none() is None


def test_the_repositorys_own_files_are_valid(registry: Registry) -> None:
    for file in read_folder(REPOSITORY / "tenants", registry):
        assert file.faults == []
    names = (
        "ANTHROPIC_API_KEY",
        "OFFICE_PASSWORD",
        "OPENAI_API_KEY",
        "PLIVO_AUTH_TOKEN",
        "TELNYX_API_KEY",
        "TWILIO_AUTH_TOKEN",
        "TWILIO_API_SECRET",
        "VECTORS_KEY_ID",
        "VECTORS_SECRET",
        "GOOGLE_CALENDAR_SECRET",
    )
    example = read_file(REPOSITORY / "tenants" / "every-key.toml.example", registry, dict.fromkeys(names, "x"))
    assert [str(fault) for fault in example.faults] == []


async def test_a_stored_policy_of_a_later_version_is_read(organizations: Organizations, runtime: Runtime) -> None:
    caller = await organizations.create()
    stored = {"max_concurrent_calls": 7, "settings_of_tomorrow": {"x": 1}, "retention": {"calls": 30, "dreams": 1}}
    values = {"stored": json.dumps(stored), "organization_id": caller.organization_id}
    async with runtime.database.system() as session:
        statement = text("update organization set policy = cast(:stored as jsonb) where id = :organization_id")
        await (await session.connection()).execute(statement, values)
        organization = await session.get_one(Organization, caller.organization_id)
    async with runtime.database.write(caller.organization_id) as tenant:
        policies = (organization.policy, await get_policy(tenant, caller.organization_id))
    assert [(policy.max_concurrent_calls, policy.retention.calls) for policy in policies] == [(7, 30), (7, 30)]


async def test_a_provider_that_an_agent_names_is_not_removed(
    tmp_path: Path, runtime: Runtime, organizations: Organizations
) -> None:
    path = tmp_path / f"named-{tmp_path.name}.toml"
    voices = '[[speech_to_text]]\nprovider = "pocketsphinx"\n[[text_to_speech]]\nprovider = "espeak"\n'
    path.write_text(f'name = "Acme"\n[[llm]]\nprovider = "scripted"\n{voices}')
    parts = (runtime.database, runtime.registry, runtime.keyring)
    organization_id, _ = await apply_tenant_file(*parts, read_file(path, runtime.registry))
    caller = await organizations.create_key(organization_id, scopes=["agents:read", "agents:write"])
    created = await caller.post("/v1/agents", {"name": "Front desk", "system_prompt": "x"})
    assert created.status == 201, created.body
    path.write_text(f'name = "Renamed"\n[[llm]]\nprovider = "openai"\napi_key = {{ env = "KEY" }}\n{voices}')
    changed = read_file(path, runtime.registry, {"KEY": "sk-x"})
    reason = "llm scripted is removed although agents name it: Front desk"
    assert (await compare_tenant_file(*parts, changed))[-1].startswith(f"refused: {reason}")
    with pytest.raises(FileRefused, match=reason):
        await apply_tenant_file(*parts, changed)
    assert await compare_tenant_file(*parts, changed) != [], "the refused file has changed nothing"
    path.write_text(path.read_text().replace("[[speech", '[[llm]]\nprovider = "scripted"\n[[speech', 1))
    await apply_tenant_file(*parts, read_file(path, runtime.registry, {"KEY": "sk-x"}))
    body = {"name": "Front desk", "system_prompt": "x", "llm_provider": "openai"}
    moved = await caller.send("PUT", f"/v1/agents/{created.json['id']}", body)
    assert moved.status == 200, moved.body
    assert "remove llm scripted" in (await apply_tenant_file(*parts, changed))[1]
