"""The pages of providers."""

import asyncio
import json
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr
from sqlmodel import col, select
from switchboard.apps.running_processes import report_process
from switchboard.engine.providers.models import ProviderConfiguration
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk import LLMProvider
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity.models import Organization
from switchboard.runtime import Runtime

from tests.fixtures import crm, owl
from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People, Person, Window
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import at

OWL = "/dashboard/providers/llm/owl"


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert not registry.add("owl", owl).faults
    assert not registry.add("crm", crm).faults
    return registry


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return settings.model_copy(update={"tenants_dir": tmp_path})


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def get_owl_settings(runtime: Runtime, caller: Caller) -> dict[str, object]:
    """Return the owl's settings as a call reads them, with secrets in plain text."""
    async with runtime.providers.use(caller.organization_id, LLMProvider, "owl") as provider:
        settings = provider.settings.model_dump()
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value
            for name, value in settings.items()
        }


async def list_models(runtime: Runtime, caller: Caller) -> list[str]:
    """Return the language models in the order in which they are tried."""
    async with runtime.database.write(caller.organization_id) as session:
        rows = select(ProviderConfiguration.name).where(col(ProviderConfiguration.capability) == "llm")
        return list((await session.exec(rows.order_by(col(ProviderConfiguration.position)))).all())


async def test_only_the_operator_chooses_the_process(
    people: People, owner: Person, runtime: Runtime, caller: Caller
) -> None:
    async def find_process() -> str:
        async with runtime.database.write(caller.organization_id) as session:
            rows = select(ProviderConfiguration.process).where(col(ProviderConfiguration.name) == "owl")
            return (await session.exec(rows)).one()

    settings: dict[str, str | list[str]] = {"settings.api_key": "hoot-hoot-hoot", "process": "own"}
    assert "Runs in" not in (await owner.get(OWL)).html
    await owner.post(OWL, settings)
    assert await find_process() == "shared"
    operator = await people.join(caller.organization_id, superadmin=True)
    await operator.post(f"/dashboard/organizations/{caller.organization_id}")
    assert "Runs in" in (await operator.get(OWL)).html
    await operator.post(OWL, settings)
    assert await find_process() == "own"
    await owner.post(OWL, settings | {"process": "shared"})
    assert await find_process() == "own"
    refused = await operator.post(OWL, settings | {"process": "elsewhere"})
    assert "must be one of shared, own" in refused.html


async def test_the_operator_reads_which_processes_must_be_restarted(
    people: People, owner: Person, runtime: Runtime, caller: Caller
) -> None:
    operator = await people.join(caller.organization_id, superadmin=True)
    async with report_process(runtime.redis, Registry.discover(), runtime.settings, node=uuid4().hex, role="worker"):

        async def read() -> str:
            return (await operator.get("/dashboard/providers")).html

        page = await eventually(read, lambda html: "has not loaded - -" in html)
        assert "restart needed: worker on" in page
        assert "restart needed" not in (await owner.get("/dashboard/providers")).html


async def test_a_provider_is_added_checked_and_moved_up(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/providers")
    section = page.locator("#llm")
    await section.get_by_text("Add a provider").click()
    await window.check_accessibility()
    await section.get_by_role("link", name="Night owl").click()
    await page.get_by_label("API key").fill("hoot-hoot-hoot")
    await window.check_accessibility()
    await page.get_by_role("button", name="Add Night owl").click()
    await page.get_by_text("Night owl was saved.").wait_for()
    await section.get_by_role("button", name="Check").nth(1).click()
    await page.get_by_text("Night owl works.").wait_for()
    await section.get_by_role("button", name="Move up").click()
    await section.get_by_role("listitem").first.get_by_text("Night owl").wait_for()


async def test_an_organization_is_warned_of_models_that_end(owner: Person, caller: Caller) -> None:
    warning = "The vendor ends the model {} on"
    await owner.post(OWL, {"settings.api_key": owl.KEY})
    assert warning.format("barn") in (await owner.get("/dashboard/providers")).html, "the default of its settings"
    await owner.post(OWL, {"settings.api_key": owl.KEY, "settings.model": "little"})
    assert "The vendor ends" not in (await owner.get("/dashboard/providers")).html, "two years are no warning"
    agent = {"name": "Reception", "llm_provider": "owl", "llm_model": "snowy"}
    assert (await caller.post("/v1/agents", agent)).status == 201
    assert (await owner.get("/dashboard/providers")).html.count(warning.format("snowy")) == 1
    await owner.post(f"{OWL}/check")
    checked = (await owner.get("/dashboard/providers")).html
    assert checked.count(warning.format("snowy")) == 2, "the notice of the check repeats the warning"
    assert warning.format("little") not in checked


async def test_an_actions_settings_are_set_up_and_checked(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/providers")
    section = page.locator("#automation_action")
    await section.get_by_text("Not available").wait_for()
    await window.check_accessibility()
    await section.get_by_role("link", name="Set up").click()
    await page.get_by_label("API key").fill(crm.KEY)
    await page.get_by_label("Account").fill('{"user": "baker", "token": "t"}')
    await window.check_accessibility()
    await page.get_by_role("button", name="Add Write a CRM note").click()
    await page.get_by_text("Write a CRM note was saved.").wait_for()
    await section.get_by_role("button", name="Check").click()
    await page.get_by_text("Write a CRM note works.").wait_for()
    await section.get_by_role("link", name="Settings").click()
    await page.get_by_label("Account").wait_for()
    assert await page.get_by_label("Account").input_value() == ""


async def test_a_secret_is_encrypted_never_shown_and_kept_if_its_field_is_empty(
    owner: Person, caller: Caller, runtime: Runtime
) -> None:
    assert (
        await owner.post(
            OWL, {"settings.api_key": "hoot-hoot-hoot", "settings.model": "tawny", "settings.retries": "3"}
        )
    ).status == 303
    html = (await owner.get(OWL)).html
    assert "hoot-hoot-hoot" not in html
    assert "Leave empty to keep it" in html
    assert 'value="tawny"' in html
    assert (
        await owner.post(OWL, {"settings.api_key": "", "settings.model": "", "settings.retries": "4"})
    ).status == 303
    assert await get_owl_settings(runtime, caller) == {
        "api_key": "hoot-hoot-hoot",
        "model": "barn",
        "retries": 4,
        "base_url": None,
    }
    async with runtime.database.write(caller.organization_id) as session:
        row = (await session.exec(select(ProviderConfiguration).where(col(ProviderConfiguration.name) == "owl"))).one()
    assert row.settings == {"retries": 4}
    assert "hoot" not in json.dumps(row.model_dump(mode="json"))


async def test_an_invalid_setting_is_reported_at_its_field_without_the_secret(
    owner: Person, caller: Caller, runtime: Runtime
) -> None:
    refused = await owner.post(
        OWL, {"settings.api_key": "short!!", "settings.model": "tawny", "settings.retries": "nine"}
    )
    assert refused.status == 422
    for field in ("api_key", "retries"):
        assert f'id="fault-settings.{field}"' in refused.html
    assert "short!!" not in refused.html
    assert 'value="tawny"' in refused.html
    assert 'value="nine"' in refused.html
    assert await list_models(runtime, caller) == ["scripted"]


async def test_errors_of_all_settings_together_are_shown(owner: Person) -> None:
    fields: dict[str, str | list[str]] = {
        "settings.account_sid": "AC" + "0" * 32,
        "settings.auth_token": "token",
        "settings.api_sid": "SK" + "0" * 32,
    }
    refused = await owner.post("/dashboard/providers/telephony/twilio", fields)
    assert refused.status == 422
    assert "settings</a>: browser calling needs api_sid, api_secret and application_sid" in refused.html


async def test_concurrent_additions_of_one_provider_both_succeed(
    owner: Person, people: People, caller: Caller, runtime: Runtime
) -> None:
    other = await people.join(caller.organization_id)
    both = await asyncio.gather(
        *(person.post(OWL, {"settings.api_key": "hoot-hoot-hoot"}) for person in (owner, other))
    )
    assert [response.status for response in both] == [303, 303]
    assert await list_models(runtime, caller) == ["scripted", "owl"]


async def test_a_check_shows_the_providers_message(owner: Person) -> None:
    await owner.post(OWL, {"settings.api_key": "a wrong key"})
    assert (await owner.post(f"{OWL}/check")).status == 303
    page = (await owner.get("/dashboard/providers")).html
    notice = '<p class="notice failure" role="alert">Night owl does not work: the owl does not know this key</p>'
    assert (notice in page, "Its last check failed." in page) == (True, True)
    assert "Its last check failed." in (await owner.get("/dashboard/providers")).html
    await owner.post(OWL, {"settings.api_key": "another key"})
    assert "Its last check failed." not in (await owner.get("/dashboard/providers")).html, "it is yet to be checked"


async def test_only_the_operator_sets_the_providers_address(
    people: People, owner: Person, caller: Caller, runtime: Runtime
) -> None:
    assert "settings.base_url" not in (await owner.get(OWL)).html
    internal_address: dict[str, str | list[str]] = {
        "settings.api_key": "hoot-hoot-hoot",
        "settings.base_url": "http://169.254.169.254",
    }
    refused = await owner.post(OWL, internal_address)
    assert refused.status == 422
    assert "only whoever runs this installation may set it" in refused.html
    for capability, name in (
        ("speech_to_text", "deepgram"),
        ("telephony", "twilio"),
        ("llm", "openai"),
        ("vector_store", "lancedb"),
    ):
        path = f"/dashboard/providers/{capability}/{name}"
        page = (await owner.get(path)).html
        assert "Only the operator of this installation can set" in page
        assert 'name="settings.base_url"' not in page
        assert 'name="settings.uri"' not in page
    operator = await people.join(caller.organization_id, superadmin=True)
    await operator.post(f"/dashboard/organizations/{caller.organization_id}")
    assert (await operator.post(OWL, {**internal_address, "settings.base_url": "http://10.0.0.7"})).status == 303
    assert (await owner.post(OWL, {"settings.model": "tawny"})).status == 303
    assert (await get_owl_settings(runtime, caller))["base_url"] == "http://10.0.0.7", (
        "what an owner may not set stays as it is"
    )


async def test_a_provider_is_removed_with_its_secrets_unless_it_is_in_use(
    owner: Person, caller: Caller, runtime: Runtime
) -> None:
    await owner.post(OWL, {"settings.api_key": "hoot-hoot-hoot"})
    await caller.post("/v1/agents", {"name": "Night shift", "llm_provider": "owl"})
    await owner.post(f"{OWL}/remove")
    assert "still used by Night shift" in (await owner.get("/dashboard/providers")).html
    agent = at((await caller.get("/v1/agents")).json, "items", 0)
    await caller.send("DELETE", f"/v1/agents/{at(agent, 'id')}")
    assert (await owner.post(f"{OWL}/remove")).status == 303
    assert await list_models(runtime, caller) == ["scripted"]


async def test_settings_from_a_tenant_file_are_read_only(
    owner: Person, caller: Caller, runtime: Runtime, tmp_path: Path
) -> None:
    await owner.post(OWL, {"settings.api_key": "hoot-hoot-hoot"})
    async with runtime.database.system() as session:
        organization = await session.get_one(Organization, caller.organization_id)
        organization.slug = f"bakery-{caller.organization_id}"
    (tmp_path / f"bakery-{caller.organization_id}.toml").write_text('name = "Bakery"')
    html = (await owner.get("/dashboard/providers")).html
    assert f"bakery-{caller.organization_id}.toml" in html
    assert "would overwrite" in html
    assert "Remove" not in html
    assert "Check" in html
    refused = await owner.post(OWL, {"settings.model": "tawny"})
    assert refused.status == 409
    assert 'name="settings.model"' not in refused.html
    for way in ("up", "remove"):
        await owner.post(f"{OWL}/{way}")
        assert f"switchboard tenants apply {tmp_path}" in (await owner.get("/dashboard/providers")).html
    assert await list_models(runtime, caller) == ["scripted", "owl"]
    assert (await get_owl_settings(runtime, caller))["model"] == "barn"


async def test_members_and_other_organizations_cannot_see_providers(
    people: People, owner: Person, caller: Caller, stranger: Caller
) -> None:
    await owner.post(OWL, {"settings.api_key": "hoot-hoot-hoot", "settings.model": "tawny"})
    member = await people.join(caller.organization_id, role="builder")
    foreign_owner = await people.join(stranger.organization_id)
    for path in ("/dashboard/providers", OWL):
        assert (await member.get(path)).status == 403
    for way in ("", "/up", "/remove", "/check"):
        assert (await member.post(OWL + way)).status == 403, way
    assert "tawny" not in (await foreign_owner.get(OWL)).html
    assert (await foreign_owner.post(f"{OWL}/remove")).status == 404
    assert (await foreign_owner.post(f"{OWL}/up")).status == 404
    assert (
        (await foreign_owner.get("/dashboard/providers/llm/nothing")).status
        == (await foreign_owner.get("/dashboard/providers/nothing/owl")).status
        == 404
    )
