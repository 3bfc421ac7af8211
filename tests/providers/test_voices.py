"""Voices of agents: they exist at their provider, and an unreachable provider does not prevent saving."""

from collections.abc import AsyncIterator

import pytest_asyncio
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.plugin_sdk.registry import Capability
from switchboard.runtime import Runtime

from tests.fixtures.app import ApiResponse, Caller
from tests.speech.elevenlabs import ElevenLabs
from tests.speech.vendor import KEY

GEORGE = "JBFqnCBsd6RMkjVDRZzb"


@pytest_asyncio.fixture
async def vendor(runtime: Runtime, caller: Caller) -> AsyncIterator[ElevenLabs]:
    """A vendor whose voices the caller's organization may use."""
    async with ElevenLabs.listening() as vendor:
        settings = {"api_key": KEY, "base_url": vendor.address}
        providers = [
            *list_embedded_providers(runtime.registry),
            ProviderSpec(Capability.TEXT_TO_SPEECH, "elevenlabs", settings),
        ]
        async with runtime.database.write(caller.organization_id) as session:
            await configure_providers(session, runtime.registry, runtime.keyring, providers)
        yield vendor


async def save_agent(caller: Caller, **fields: object) -> ApiResponse:
    return await caller.post("/v1/agents", {"name": "Agent", **fields})


def read_error(response: ApiResponse) -> str:
    faults = response.json["errors"]
    assert isinstance(faults, list)
    (fault,) = faults
    assert isinstance(fault, dict)
    assert fault["field"] == "tts_voice_id"
    return str(fault["message"])


async def test_an_existing_voice_is_accepted_and_an_unknown_one_is_named(caller: Caller, vendor: ElevenLabs) -> None:
    assert (await save_agent(caller, tts_provider="elevenlabs", tts_voice_id=GEORGE)).status == 201
    refused = await save_agent(caller, tts_provider="elevenlabs", tts_voice_id="nobody")
    assert refused.status == 422
    assert "elevenlabs has no voice nobody" in read_error(refused)


async def test_only_a_changed_provider_or_voice_is_checked(caller: Caller, vendor: ElevenLabs) -> None:
    response = await save_agent(caller, tts_provider="elevenlabs", tts_voice_id=GEORGE)
    path = f"/v1/agents/{response.json['id']}"
    assert "espeak has no voice" in read_error(await caller.send("PUT", path, {"tts_provider": "espeak"}))
    assert "no voice nobody" in read_error(await caller.send("PUT", path, {"tts_voice_id": "nobody"}))
    request_count = len(vendor.requests)
    assert (await caller.send("PUT", path, {"name": "Renamed"})).status == 200
    assert len(vendor.requests) == request_count
    assert (await caller.send("PUT", path, {"tts_provider": "espeak", "tts_voice_id": "en-us+f3"})).status == 200


async def test_a_known_voice_is_checked_once(caller: Caller, vendor: ElevenLabs) -> None:
    for _ in range(3):
        assert (await save_agent(caller, tts_provider="elevenlabs", tts_voice_id=GEORGE)).status == 201
    assert len(vendor.requests) == 1


async def test_a_failing_provider_does_not_prevent_saving_and_is_not_asked_for_a_while(
    caller: Caller, vendor: ElevenLabs
) -> None:
    vendor.refusals = [500]
    for _ in range(2):
        assert (await save_agent(caller, tts_provider="elevenlabs", tts_voice_id="perhaps")).status == 201
    assert len(vendor.requests) == 1


async def test_a_slow_provider_does_not_prevent_saving(caller: Caller, vendor: ElevenLabs) -> None:
    vendor.hangs = True
    assert (await save_agent(caller, tts_provider="elevenlabs", tts_voice_id="perhaps")).status == 201
