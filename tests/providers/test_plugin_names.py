"""A third party's providers with the names of built-in ones: agents, the dashboard, and carriers reach both."""

from types import SimpleNamespace

import pytest
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.plugin_sdk import TelephonyProvider, TextToSpeechProvider, hookimpl
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.runtime import Runtime
from switchboard_offline.espeak import EspeakTextToSpeech
from switchboard_offline.loopback import LoopbackTelephony

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People


class AcmeVoice(EspeakTextToSpeech):
    title = "Acme voice"


class AcmeCarrier(LoopbackTelephony):
    title = "Acme carrier"


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    plugin = registry.add(
        "acme",
        SimpleNamespace(
            text_to_speech_providers=hookimpl(lambda: [AcmeVoice], specname="text_to_speech_providers"),
            telephony_providers=hookimpl(lambda: [AcmeCarrier], specname="telephony_providers"),
        ),
    )
    assert plugin.provides == ["telephony acme/loopback", "text_to_speech acme/espeak"]
    return registry


async def test_an_agent_names_either_provider(runtime: Runtime, caller: Caller) -> None:
    body = {"name": "Agent", "system_prompt": "x", "tts_provider": "acme/espeak"}
    refused = await caller.post("/v1/agents", body)
    assert refused.status == 422
    assert "acme/espeak is not configured" in str(refused.json["errors"])
    wanted = [
        ProviderSpec(Capability.LLM, "scripted", {}),
        ProviderSpec(Capability.SPEECH_TO_TEXT, "pocketsphinx", {}),
        ProviderSpec(Capability.TEXT_TO_SPEECH, "espeak", {}),
        ProviderSpec(Capability.TEXT_TO_SPEECH, "acme/espeak", {}),
    ]
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, wanted)
    created = await caller.post("/v1/agents", body)
    assert (created.status, created.json["tts_provider"]) == (201, "acme/espeak")
    for name, title in (("espeak", EspeakTextToSpeech.title), ("acme/espeak", AcmeVoice.title)):
        async with runtime.providers.use(caller.organization_id, TextToSpeechProvider, name) as voice:
            assert (voice.name, voice.title) == (name, title)


async def test_the_dashboard_adds_moves_checks_and_removes_it(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    address = "/dashboard/providers/text_to_speech/acme/espeak"
    assert address in (await owner.get("/dashboard/providers")).html
    assert AcmeVoice.title in (await owner.get(address)).html
    for path in (address, f"{address}/up", f"{address}/check", f"{address}/remove"):
        assert (await owner.post(path, {})).status == 303, path
    assert "acme/espeak was removed." in (await owner.get("/dashboard/providers")).html


async def test_a_carrier_with_a_qualified_name_receives_callbacks(runtime: Runtime, caller: Caller) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        wanted = [ProviderSpec(Capability.TELEPHONY, "acme/loopback", {})]
        await configure_providers(session, runtime.registry, runtime.keyring, wanted)
    async with runtime.providers.use(caller.organization_id, TelephonyProvider) as carrier:
        assert carrier.name == "acme/loopback"
    response = await caller.client.post(f"/carriers/acme/loopback/{caller.organization_id}/events", data=b"{}")
    assert response.status_code == 403, "the callback reaches the carrier, which refuses its signature"
