"""The setup list of the overview: from the offline providers to an own telephone."""

from pathlib import Path

import pytest
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity.models import Organization
from switchboard.runtime import Runtime

from tests.fixtures import owl
from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People, Person, Window
from tests.fixtures.json_access import at

OWL = "/dashboard/providers/llm/owl"
LIST = "From the demo to your own telephone"


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert not registry.add("owl", owl).faults
    return registry


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return settings.model_copy(update={"tenants_dir": tmp_path})


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def read_overview(owner: Person) -> str:
    return (await owner.get("/dashboard")).html


async def test_a_provider_is_chosen_first_and_done_once_its_check_succeeds(owner: Person, caller: Caller) -> None:
    assert f"{LIST}: 0 of 7" in await read_overview(owner)
    added = await owner.post(f"{OWL}?after=setup", {"settings.api_key": "wrong-wrong"})
    assert added.location == "/dashboard"
    page = await read_overview(owner)
    assert "Language model: Night owl" in page
    assert "to check" in page
    await owner.post(f"{OWL}/check")
    page = await read_overview(owner)
    assert (f"{LIST}: 0 of 7" in page, "does not work</span>" in page, "to check" in page) == (True, True, False)
    await owner.post(OWL, {"settings.api_key": owl.KEY})
    await owner.post(f"{OWL}/check")
    assert f"{LIST}: 1 of 7" in await read_overview(owner)
    await owner.post(OWL, {"settings.api_key": "another-key"})
    assert f"{LIST}: 0 of 7" in await read_overview(owner), "changed settings have not been checked"
    agent = await caller.post("/v1/agents", {"name": "New"})
    assert at(agent.json, "llm_provider") == "owl"


async def test_an_agent_takes_the_own_providers(owner: Person, caller: Caller) -> None:
    agent = await caller.post("/v1/agents", {"name": "Front desk", "tts_voice_id": "en"})
    use = f"/dashboard/setup/agents/{at(agent.json, 'id')}"
    await owner.post(use)
    assert "Choose a model, a voice, and transcription first." in await read_overview(owner)
    for path in ("llm/owl", "text_to_speech/elevenlabs", "speech_to_text/deepgram"):
        added = await owner.post(f"/dashboard/providers/{path}?after=setup", {"settings.api_key": "some-vendors-key"})
        assert added.status == 303
    assert "Use for Front desk" in await read_overview(owner)
    await owner.post(use)
    changed = await caller.get(f"/v1/agents/{at(agent.json, 'id')}")
    assert [at(changed.json, name) for name in ("llm_provider", "tts_provider", "stt_provider", "tts_voice_id")] == [
        "owl",
        "elevenlabs",
        "deepgram",
        None,
    ]
    page = await read_overview(owner)
    assert f"{LIST}: 1 of 7" in page
    assert "Use for Front desk" not in page


async def test_owners_hide_the_list_for_everybody(people: People, owner: Person, caller: Caller) -> None:
    member = await people.join(caller.organization_id, role="member")
    assert LIST not in await read_overview(member)
    assert (await member.post("/dashboard/setup/dismiss")).status == 403
    assert (await owner.post("/dashboard/setup/dismiss")).status == 303
    assert LIST not in await read_overview(owner)
    assert (await people.list_audit_entries(caller.organization_id))[-1][1] == "setup.dismissed"


async def test_a_tenant_file_is_named_with_its_command(
    owner: Person, runtime: Runtime, caller: Caller, tmp_path: Path
) -> None:
    path = tmp_path / f"door-{caller.organization_id}.toml"
    path.write_text('name = "Door"')
    async with runtime.database.system() as session:
        (await session.get_one(Organization, caller.organization_id)).slug = path.stem
    page = await read_overview(owner)
    assert f"switchboard tenants apply {path}" in page
    assert "Night owl" not in page


async def test_an_own_number_of_the_carrier_is_taken_over(window: Window) -> None:
    await window.open("/dashboard")
    await window.check_accessibility()
    await window.page.set_viewport_size({"width": 390, "height": 844})
    await window.check_accessibility()
    assert await window.page.evaluate("document.documentElement.scrollWidth") <= 390
    await window.page.get_by_role("link", name="Get a number").click()
    await window.check_accessibility()
    await window.page.get_by_label("Phone number").fill("+1 (555) 010-7777")
    await window.page.get_by_role("button", name="Continue").click()
    await window.page.get_by_role("heading", name="Buy +1 555-010-7777").wait_for()
