"""The page of an organization's settings: what a tenant file can set, an operator sets in the browser and exports."""

from pathlib import Path

import pytest
from playwright.async_api import Browser
from switchboard.apps.tenant_files.apply import apply_tenant_file
from switchboard.apps.tenant_files.files import read_file
from switchboard.foundation.settings import Settings
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Policy
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.dashboard import People, Person, open_owner_window

FIELDS: dict[str, str | list[str]] = {
    "name": "Blue Door",
    "timezone": "Europe/Berlin",
    "policy.max_concurrent_calls": "7",
    "policy.rate_limits.read.per_second": "50",
    "policy.rate_limits.read.burst": "90",
    "policy.prices.call_minute": "0.02",
    "policy.calling_hours.start": "10:00",
    "policy.retention.recordings": "90",
    "policy.destinations.countries": "DE\nAT",
    "policy.redaction.kinds": "card_number",
    "policy.disclosure.presets": "eu",
    "policy.disclosure.countries": '{"DE": {"ai_notice": true, "consent": "ask"}}',
    "policy.encryption.texts": "true",
}


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return settings.model_copy(update={"tenants_dir": tmp_path})


def build_path(caller: Caller) -> str:
    return f"/dashboard/console/organizations/{caller.organization_id}/settings"


@pytest.fixture
async def operator(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id, superadmin=True)


async def read_organization(runtime: Runtime, caller: Caller) -> tuple[Organization, Policy]:
    async with runtime.database.write(caller.organization_id) as session:
        organization = await session.get_one(Organization, caller.organization_id)
        return organization, organization.policy


async def test_an_operator_sets_what_a_tenant_file_can_set(
    operator: Person, people: People, runtime: Runtime, caller: Caller
) -> None:
    assert (await operator.post(build_path(caller), FIELDS)).status == 303
    organization, policy = await read_organization(runtime, caller)
    assert (organization.name, organization.timezone) == ("Blue Door", "Europe/Berlin")
    assert (policy.max_concurrent_calls, policy.rate_limits.read.burst, policy.prices.call_minute) == (7, 90, 0.02)
    assert policy.calling_hours is not None
    assert (policy.calling_hours.start, policy.retention.recordings) == ("10:00", 90)
    assert (policy.retention.events, policy.destinations.countries) == (30, ("DE", "AT"))
    assert policy.redaction.kinds == ("card_number",)
    assert (policy.disclosure.presets, policy.disclosure.countries["DE"].consent) == (["eu"], "ask")
    assert policy.encryption.texts
    entries = await people.list_audit_entries(caller.organization_id)
    assert (entries[-1][1], entries[-1][2]) == ("organization.updated", "change name; change timezone; change policy")
    shown = (await operator.get(build_path(caller))).html
    assert 'value="Blue Door"' in shown
    assert "DE\nAT</textarea>" in shown


async def test_the_exported_file_sets_the_same_and_names_the_secrets(
    operator: Person, people: People, runtime: Runtime, caller: Caller, tmp_path: Path
) -> None:
    slug = f"door-{caller.organization_id}"
    async with runtime.database.system() as session:
        (await session.get_one(Organization, caller.organization_id)).slug = slug
    await operator.post(build_path(caller), FIELDS)
    await operator.post("/dashboard/providers/llm/openai", {"settings.api_key": "sk-first"})
    await operator.post("/dashboard/providers/text_to_speech/openai", {"settings.api_key": "sk-second"})
    answer = await operator.post(build_path(caller).replace("/settings", "/tenant-file"))
    assert f"{slug}.toml" in answer.headers["Content-Disposition"]
    assert not any(secret in answer.html for secret in ("sk-first", "sk-second"))
    assert "# OPENAI_API_KEY\n" in answer.html
    path = tmp_path / f"{slug}.toml"
    path.write_text(answer.html)
    environment = {"OPENAI_API_KEY": "sk-second", "LLM_OPENAI_API_KEY": "sk-first"}
    file = read_file(path, runtime.registry, environment)
    assert file.faults == []
    await apply_tenant_file(runtime.database, runtime.registry, runtime.keyring, file)
    path.unlink()
    assert (await operator.post(build_path(caller).replace("/settings", "/tenant-file"))).html == answer.html
    assert "policy" not in (await people.list_audit_entries(caller.organization_id))[-2][2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": " "}, "must have 1 to 255 characters"),
        ({"timezone": "Mars"}, "is not an IANA time zone"),
        ({"policy.prices.call_minute": "-1"}, "greater than or equal to 0"),
        ({"policy.prices.call_minute": "much"}, "valid number"),
        ({"policy.destinations.countries": "Germany"}, "not an ISO 3166"),
        ({"policy.redaction.kinds": "card_nummer"}, "unknown: card_nummer"),
        ({"policy.disclosure.presets": "zz"}, "unknown: zz"),
        ({"policy.retention.calls": "30"}, "must not be more than calls"),
        ({"policy.disclosure.countries": "DE: ask"}, "write an object as JSON"),
    ],
)
async def test_a_setting_that_is_not_valid_is_named(
    operator: Person, runtime: Runtime, caller: Caller, change: dict[str, str | list[str]], message: str
) -> None:
    before = await read_organization(runtime, caller)
    refused = await operator.post(build_path(caller), FIELDS | change)
    assert refused.status == 422
    assert message in refused.html
    assert await read_organization(runtime, caller) == before


async def test_a_tenant_file_keeps_the_page_read_only(
    operator: Person, runtime: Runtime, caller: Caller, tmp_path: Path
) -> None:
    slug = f"door-{caller.organization_id}"
    async with runtime.database.system() as session:
        (await session.get_one(Organization, caller.organization_id)).slug = slug
    path = tmp_path / f"{slug}.toml"
    path.write_text('name = "Door"')
    page = (await operator.get(build_path(caller))).html
    assert f"switchboard tenants apply {path}" in page
    assert 'name="policy.max_concurrent_calls"' not in page
    assert (await operator.post(build_path(caller), FIELDS)).status == 409


async def test_only_the_operator_sees_the_page(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    assert (await owner.get(build_path(caller))).status == 403
    assert (await owner.post(build_path(caller), FIELDS)).status == 403
    assert (await owner.post(build_path(caller).replace("/settings", "/tenant-file"))).status == 403


async def test_the_page_is_accessible(browser: Browser, live: LivePlatform) -> None:
    async with open_owner_window(browser, live, superadmin=True) as window:
        await window.open(build_path(live.caller))
        await window.check_accessibility()
        await window.page.set_viewport_size({"width": 390, "height": 844})
        assert await window.page.evaluate("document.documentElement.scrollWidth") <= 390
