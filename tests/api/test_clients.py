"""Clients: names of browsers and apps, and where calls may be passed on to them."""

import pytest
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.plugin_sdk.registry import Capability
from switchboard.runtime import Runtime

from tests.api.test_browser_calls import prefer_twilio
from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.json_access import at


async def test_a_clients_identity_has_the_organization(runtime: Runtime, caller: Caller, stranger: Caller) -> None:
    identities = set()
    for organization in (caller, stranger):
        await prefer_twilio(runtime, organization)
        response = await organization.post("/v1/browser-call/token?identity=reception&platform=ios")
        assert (response.status, response.json["provider"], response.json["platform"]) == (200, "twilio", "ios")
        identities.add(response.json["identity"])
    assert identities == {f"client_{one.organization_id.hex}_reception" for one in (caller, stranger)}


@pytest.mark.parametrize("name", ["", "front%20desk", "reception!", "a" * 51, "r%C3%A9ception"])
async def test_a_clients_name_has_letters_digits_and_underscores(caller: Caller, name: str) -> None:
    response = await caller.post(f"/v1/browser-call/token?identity={name}")
    assert (response.status, at(response.json, "errors", 0, "field")) == (422, "identity")


async def test_a_client_needs_a_carrier_that_rings_clients(runtime: Runtime, caller: Caller) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        model = ProviderSpec(Capability.LLM, "scripted", {})
        await configure_providers(session, runtime.registry, runtime.keyring, [model])
    response = await caller.post("/v1/browser-call/token?identity=reception")
    assert (response.status, response.json["code"]) == (409, "invalid_state")
    assert response.json["detail"] == "None of the organization's carriers can ring clients."


async def test_a_number_forwards_to_clients_of_its_carrier_only(live: LivePlatform) -> None:
    path = f"/v1/phone-numbers/{live.number_id}"
    response = await live.caller.send("PUT", path, {"forward_number": "client:reception"})
    assert (response.status, response.json["forward_number"]) == (200, "client:reception")
    await prefer_twilio(live.runtime, live.caller)
    response = await live.caller.send("PUT", path, {"forward_number": "client:office"})
    assert (response.status, response.json["errors"]) == (
        422,
        [{"field": "forward_number", "message": "Clients are rung over twilio, and the call is at loopback."}],
    )


@pytest.mark.parametrize("destination", ["client:", "client:front desk", f"client:{'a' * 51}", "Client:reception"])
async def test_a_destination_is_a_number_or_a_client(live: LivePlatform, destination: str) -> None:
    path = f"/v1/phone-numbers/{live.number_id}"
    response = await live.caller.send("PUT", path, {"forward_number": destination})
    assert (response.status, at(response.json, "errors", 0, "field")) == (422, "forward_number")
    response = await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"allowed_numbers": [destination]})
    assert (response.status, at(response.json, "errors", 0, "field")) == (422, "allowed_numbers.0")


async def test_calls_and_texts_go_to_numbers(live: LivePlatform) -> None:
    for path, fields in (("/v1/calls", {"agent_id": live.agent_id}), ("/v1/sms", {"body": "Hello"})):
        body = {**fields, "from_number_id": live.number_id, "to_number": "client:reception"}
        response = await live.caller.post(path, body)
        assert (response.status, at(response.json, "errors", 0, "field")) == (422, "to_number"), path
