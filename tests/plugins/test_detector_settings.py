"""Detectors of private data with settings: each organization redacts with its own, and never with none."""

from types import SimpleNamespace

import pytest
from sqlmodel import col, delete
from structlog.testing import capture_logs
from switchboard.engine.providers.models import ProviderConfiguration
from switchboard.plugin_sdk import PrivateDataDetector, SpokenText, hookimpl
from switchboard.plugin_sdk.registry import Registry
from switchboard.runtime import Runtime

from tests.fixtures import crm
from tests.fixtures.app import Caller, fresh_number
from tests.fixtures.dashboard import People, Person
from tests.fixtures.json_access import at

PAGE = "/dashboard/providers/private_data_detector/crm_number"
AGENT = {"name": "Agent", "redaction": {"kinds": ["crm_number"], "visible_to_model": []}}
TEXT = "eu 4711, us 4712"


class Unusable(PrivateDataDetector):
    """Cannot be created."""

    name, title = "unusable", "Unusable"

    def __init__(self) -> None:
        raise KeyError(TEXT)

    def find(self, spoken: SpokenText) -> list[tuple[int, int]]:
        return []


@hookimpl(specname="private_data_detectors")
def list_unusable() -> list[type[Unusable]]:
    return [Unusable]


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert not registry.add("crm", crm).faults
    assert not registry.add("unusable", SimpleNamespace(private_data_detectors=list_unusable)).faults
    return registry


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def set_up(person: Person, region: str) -> None:
    saved = await person.post(PAGE, {"settings.api_key": crm.KEY, "settings.region": region})
    assert saved.status == 303, saved.html


async def redact(caller: Caller, **agent: object) -> object:
    """Return what is kept of a text in the metadata of a call."""
    created = await caller.post("/v1/agents", {**AGENT, **agent})
    assert created.status == 201, created.body
    return await redact_for(caller, str(created.json["id"]))


async def redact_for(caller: Caller, agent_id: str) -> object:
    number = await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})
    call = {"agent_id": agent_id, "from_number_id": number.json["id"], "to_number": "+15550100001"}
    placed = await caller.post("/v1/calls", {**call, "metadata": {"said": TEXT}})
    assert placed.status == 201, placed.body
    return at(placed.json, "metadata", "said")


async def test_each_organization_redacts_with_its_own_settings(
    people: People, owner: Person, caller: Caller, stranger: Caller
) -> None:
    await set_up(owner, "eu")
    await set_up(await people.join(stranger.organization_id), "us")
    assert await redact(caller) == "[crm number], us 4712"
    assert await redact(stranger) == "eu 4711, [crm number]"


async def test_a_kind_without_its_required_settings_is_not_offered(owner: Person, caller: Caller) -> None:
    refused = await caller.post("/v1/agents", AGENT)
    assert refused.status == 422
    assert at(refused.json, "errors", 0) == {
        "field": "redaction.kinds.0",
        "message": (
            "the organization's settings of crm_number are missing: set them in [private_data_detector.crm_number] of "
            "the tenant file, or on the page Providers"
        ),
    }
    offer = 'value="crm_number"'
    assert offer not in (await owner.get("/dashboard/agents/new")).html
    await set_up(owner, "eu")
    assert offer in (await owner.get("/dashboard/agents/new")).html


async def test_a_text_is_redacted_as_a_whole_while_settings_are_gone(
    owner: Person, caller: Caller, runtime: Runtime
) -> None:
    await set_up(owner, "eu")
    agent = await caller.post("/v1/agents", AGENT)
    await owner.post(f"{PAGE}/remove")
    assert "crm_number is still used by Agent" in (await owner.get("/dashboard/providers")).html
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(delete(ProviderConfiguration).where(col(ProviderConfiguration.name) == "crm_number"))
    with capture_logs() as logs:
        assert await redact_for(caller, str(agent.json["id"])) == "[crm number]"
    assert "settings of crm_number are missing" in str(logs)
    assert 'value="crm_number"' in (await owner.get(f"/dashboard/agents/{agent.json['id']}")).html


async def test_a_text_is_redacted_as_a_whole_if_the_detector_cannot_be_created(caller: Caller) -> None:
    with capture_logs() as logs:
        assert await redact(caller, redaction={"kinds": ["unusable"], "visible_to_model": []}) == "[unusable]"
    assert TEXT not in str(logs)


async def test_the_dashboard_checks_the_settings(people: People, owner: Person, caller: Caller) -> None:
    await owner.post(PAGE, {"settings.api_key": "a wrong key"})
    await owner.post(f"{PAGE}/check")
    page = (await owner.get("/dashboard/providers")).html
    assert "Customer numbers of the CRM does not work: the CRM does not know this key" in page
    await set_up(owner, "eu")
    await owner.post(f"{PAGE}/check")
    assert "Customer numbers of the CRM works." in (await owner.get("/dashboard/providers")).html
