"""Plugins that raise what their contract does not name: in calls, other providers take over; nothing else fails."""

from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.engine.providers.containment import contain
from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    LLMProvider,
    Message,
    ProviderError,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    SpeechToTextProvider,
    SpeechToTextStream,
    TextToSpeechProvider,
    TranscriptionRequest,
    Voice,
    hookimpl,
)
from switchboard.plugin_sdk.registry import Capability, Plugin, Registry
from switchboard.runtime import Runtime

from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number, run_server
from tests.fixtures.json_access import Json, objects_at

FAULTS = ("__init__", "open", "work")
PLUGIN = Plugin("faulty", "switchboard-faulty", "1.2")


class Faulty:
    """Raises `KeyError` where `fault` says."""

    name = "faulty"
    title = "Faulty"
    fault = ""

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self._stumble("__init__")

    def _stumble(self, place: str) -> None:
        if self.fault == place:
            raise KeyError("+15550100001")

    async def open(self) -> None:
        self._stumble("open")

    async def close(self) -> None:
        raise KeyError("close")

    async def check(self) -> None:
        self._stumble("work")


class FaultyModel(Faulty, LLMProvider[ProviderSettings]):
    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        raise KeyError("choices")
        yield


class FaultyVoice(Faulty, TextToSpeechProvider[ProviderSettings]):
    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        raise KeyError("audio")
        yield

    async def list_voices(self) -> list[Voice]:
        raise KeyError("voices")


class FaultyTranscriber(Faulty, SpeechToTextProvider[ProviderSettings]):
    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        raise KeyError("words")


KINDS = {
    Capability.LLM: (FaultyModel, "llm_providers", "llm_provider"),
    Capability.TEXT_TO_SPEECH: (FaultyVoice, "text_to_speech_providers", "tts_provider"),
    Capability.SPEECH_TO_TEXT: (FaultyTranscriber, "speech_to_text_providers", "stt_provider"),
}


def install(registry: Registry, capability: Capability, fault: str) -> str:
    """Install a plugin with this fault; return its provider's name."""
    base, hook, _ = KINDS[capability]
    name = f"faulty_{capability}_{fault.strip('_')}"
    kind = type(base.__name__, (base,), {"name": name, "fault": fault})
    registry.add(name, SimpleNamespace(**{hook: hookimpl(lambda: [kind], specname=hook)}))
    return name


@pytest.fixture(scope="session")
def registry() -> Registry:
    """The installed plugins, and one for each capability and fault."""
    found = Registry.discover()
    for capability in KINDS:
        for fault in FAULTS:
            install(found, capability, fault)
    return found


@pytest.fixture
async def live(runtime: Runtime, organizations: Organizations) -> AsyncIterator[LivePlatform]:
    async with run_server(runtime):
        yield await create_bakery(runtime, await organizations.create(), fresh_number())


async def configure(live: LivePlatform, capability: Capability, name: str, *, alone: bool) -> None:
    """Let the agent use a faulty provider, alone or before the organization's working one."""
    runtime = live.runtime
    embedded = [
        spec for spec in list_embedded_providers(runtime.registry) if not alone or spec.capability is not capability
    ]
    async with runtime.database.tenant(live.caller.organization_id) as session:
        await configure_providers(
            session, runtime.registry, runtime.keyring, [ProviderSpec(capability, name, {}), *embedded]
        )
    _, _, field = KINDS[capability]
    changed = await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {field: name})
    assert changed.status == 200, changed.body


async def find_last_call(live: LivePlatform) -> Json:
    (call, *_) = objects_at((await live.caller.get("/v1/calls")).json, "items")
    return await live.wait_for_end(call["id"])


@pytest.mark.parametrize("capability", KINDS)
async def test_the_organizations_other_provider_takes_over(live: LivePlatform, capability: Capability) -> None:
    for fault in FAULTS:
        await configure(live, capability, f"faulty_{capability}_{fault.strip('_')}", alone=False)
        simulated = await live.simulate_call("What are your opening hours?", "Goodbye")
        assert simulated.first_reply_ms is not None
        call = await find_last_call(live)
        assert call["status"] == "completed", (fault, call)


@pytest.mark.parametrize("capability", KINDS)
async def test_a_call_without_another_provider_ends_with_a_reason(live: LivePlatform, capability: Capability) -> None:
    for fault in ("__init__", "open"):
        await configure(live, capability, f"faulty_{capability}_{fault.strip('_')}", alone=True)
        await live.simulate_call("What are your opening hours?")
        call = await find_last_call(live)
        assert (call["status"], call["ended_reason"]) == ("failed", "provider_failed")
        assert f"KeyError in {fault}" in str(call["error_message"])
        assert "+15550100001" not in str(call["error_message"])


async def test_an_exception_is_a_failure_that_names_the_plugin() -> None:
    model = contain(FaultyModel, PLUGIN)(ProviderSettings())
    with pytest.raises(ProviderError, match=r"^Faulty failed: KeyError in chat of switchboard-faulty 1\.2$"):
        _ = [event async for event in model.chat(ChatRequest((Message("user", "x"),)))]
    assert model.list_expected_phrases("") == ()
    assert isinstance(model, FaultyModel)
