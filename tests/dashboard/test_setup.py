"""The setup list of the overview: from the offline providers to an own telephone."""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk import PossibleTurn, ProviderSettings, TurnDetector, TurnPrediction, hookimpl
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity.models import Organization
from switchboard.runtime import Runtime

from tests.fixtures import owl
from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People, Person, Window
from tests.fixtures.json_access import at

OWL = "/dashboard/providers/llm/owl"
DETECTORS = "/dashboard/providers/turn_detector"
LIST = "From the demo to your own telephone"


class Prompt(TurnDetector[ProviderSettings]):
    """Predicts at once."""

    name = "prompt"
    title = "Prompt"

    async def check(self) -> None:
        """Succeed always."""

    async def predict(self, turn: PossibleTurn) -> TurnPrediction:
        return TurnPrediction(0.9)


class Slow(Prompt):
    """Predicts too late for calls."""

    name = "slow"
    title = "Slow"

    async def predict(self, turn: PossibleTurn) -> TurnPrediction:
        await asyncio.sleep(0.2)
        return TurnPrediction(0.9)


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert not registry.add("owl", owl).faults
    detectors = hookimpl(lambda: [Prompt, Slow], specname="turn_detectors")
    assert not registry.add("detectors", SimpleNamespace(turn_detectors=detectors)).faults
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
    assert f"{LIST}: 0 of 8" in await read_overview(owner)
    added = await owner.post(f"{OWL}?after=setup", {"settings.api_key": "wrong-wrong"})
    assert added.location == "/dashboard"
    page = await read_overview(owner)
    assert "Language model: Night owl" in page
    assert "to check" in page
    await owner.post(f"{OWL}/check")
    page = await read_overview(owner)
    assert (f"{LIST}: 0 of 8" in page, "does not work</span>" in page, "to check" in page) == (True, True, False)
    await owner.post(OWL, {"settings.api_key": owl.KEY})
    await owner.post(f"{OWL}/check")
    assert f"{LIST}: 1 of 8" in await read_overview(owner)
    await owner.post(OWL, {"settings.api_key": "another-key"})
    assert f"{LIST}: 0 of 8" in await read_overview(owner), "changed settings have not been checked"
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
    assert f"{LIST}: 1 of 8" in page
    assert "Use for Front desk" not in page


async def test_calls_with_people_have_a_turn_detector_that_nobody_chose(owner: Person) -> None:
    chosen = "Turn detection: Smart Turn"
    await owner.post("/dashboard/providers/speech_to_text/deepgram", {"settings.api_key": "some-vendors-key"})
    page = await read_overview(owner)
    assert (f"{LIST}: 0 of 8" in page, "as soon as you have a carrier" in page, chosen in page) == (True, True, False)
    account: dict[str, str | list[str]] = {"settings.account_sid": f"AC{'0' * 32}", "settings.auth_token": "0" * 32}
    await owner.post("/dashboard/providers/telephony/twilio", account)
    page = await read_overview(owner)
    assert (f"{LIST}: 1 of 8" in page, chosen in page, "without choosing it" in page) == (True, True, True)
    assert "the default, because none is chosen" in (await owner.get("/dashboard/providers")).html
    await owner.post(f"{DETECTORS}/slow")
    page = await read_overview(owner)
    assert (f"{LIST}: 1 of 8" in page, chosen in page, "Turn detection: Slow" in page) == (True, False, True)
    assert "the default, because none is chosen" not in (await owner.get("/dashboard/providers")).html


@pytest.mark.real_time
async def test_a_detector_that_is_too_slow_for_calls_says_so(owner: Person, caller: Caller) -> None:
    await owner.post(f"{DETECTORS}/slow")
    checked = (await owner.post(f"{DETECTORS}/slow/check")).html
    assert re.search(
        r"A prediction takes [0-9]{3} ms, of the 150 ms that calls wait for it. Later predictions", checked
    )
    assert "Does not work" in checked
    assert "does not work</span>" in await read_overview(owner)
    await owner.post(f"{DETECTORS}/prompt")
    checked = (await owner.post(f"{DETECTORS}/prompt/check")).html
    assert re.search(r"A prediction takes [0-9]{1,2} ms, of the 150 ms that calls wait for it.</p>", checked)


async def test_owners_hide_the_list_for_everybody(people: People, owner: Person, caller: Caller) -> None:
    member = await people.join(caller.organization_id, role="builder")
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
