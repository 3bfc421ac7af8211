"""Plugins that raise what their contract does not name: in calls, other providers take over; nothing else fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial, wraps
from types import SimpleNamespace
from typing import TypeVar, cast
from uuid import uuid4

import pytest
from pydantic import SecretStr
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers import health
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.engine.providers.containment import LISTED, contain
from switchboard.engine.providers.health import ProviderHealth
from switchboard.foundation.database import now
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    Frame,
    LLMProvider,
    MediaCodec,
    MediaEvent,
    Message,
    Provider,
    ProviderError,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    SpeechToTextProvider,
    SpeechToTextStream,
    TextDelta,
    TextToSpeechProvider,
    TranscriptionRequest,
    Voice,
    hookimpl,
)
from switchboard.plugin_sdk.registry import Capability, Plugin, Registry
from switchboard.runtime import Runtime
from switchboard_offline.loopback import LoopbackSettings, LoopbackTelephony

from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number, run_server
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at, objects_at

FAULTS = ("__init__", "open", "work")
PLUGIN = Plugin("faulty", "switchboard-faulty", "1.2")
MethodT = TypeVar("MethodT", bound=Callable[..., Awaitable[object]])


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


KINDS: Mapping[Capability, tuple[type[Provider[ProviderSettings]], str, str]] = {
    Capability.LLM: (FaultyModel, "llm_providers", "llm_provider"),
    Capability.TEXT_TO_SPEECH: (FaultyVoice, "text_to_speech_providers", "tts_provider"),
    Capability.SPEECH_TO_TEXT: (FaultyTranscriber, "speech_to_text_providers", "stt_provider"),
}

METHODS = {
    Capability.LLM: "chat",
    Capability.TEXT_TO_SPEECH: "synthesize",
    Capability.SPEECH_TO_TEXT: "transcribe",
}


def install(registry: Registry, capability: Capability, fault: str) -> str:
    """Install a plugin with this fault; return its provider's name."""
    base, hook, _ = KINDS[capability]
    name = f"faulty_{capability}_{fault.strip('_')}"
    kind = type(base.__name__, (base,), {"name": name, "fault": fault})
    registry.add(name, SimpleNamespace(**{hook: hookimpl(lambda: [kind], specname=hook)}))
    return name


class MendableModel(LLMProvider[ProviderSettings]):
    """Cannot be opened while it is broken."""

    name = "mendable"
    title = "Mendable"
    broken = True
    opened = 0
    checked = asyncio.Event()

    async def open(self) -> None:
        MendableModel.opened += 1
        if self.broken:
            raise ProviderError("down")

    async def check(self) -> None:
        self.checked.set()

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        yield TextDelta("I am mended.")


@pytest.fixture(scope="session")
def registry() -> Registry:
    """The installed plugins, and one for each capability and fault."""
    found = Registry.discover()
    for capability in KINDS:
        for fault in FAULTS:
            install(found, capability, fault)
    found.add("mendable", SimpleNamespace(llm_providers=hookimpl(lambda: [MendableModel], specname="llm_providers")))
    return found


@pytest.fixture
async def live(runtime: Runtime, organizations: Organizations) -> AsyncIterator[LivePlatform]:
    async with run_server(runtime):
        yield await create_bakery(runtime, await organizations.create(), fresh_number())


async def configure(live: LivePlatform, capability: Capability, name: str, *, alone: bool = False) -> None:
    """Let the agent use a faulty provider, alone or before the organization's working one."""
    runtime = live.runtime
    embedded = [
        spec for spec in list_embedded_providers(runtime.registry) if not alone or spec.capability is not capability
    ]
    async with runtime.database.write(live.caller.organization_id) as session:
        await configure_providers(
            session, runtime.registry, runtime.keyring, [ProviderSpec(capability, name, {}), *embedded]
        )
    _, _, field = KINDS[capability]
    changed = await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {field: name})
    assert changed.status == 200, changed.body


async def find_last_call(live: LivePlatform) -> Json:
    """Return the last call, once its process has saved what it knows, which may be after the carrier has ended it."""

    async def look() -> Json:
        (call, *_) = objects_at((await live.caller.get("/v1/calls")).json, "items")
        return await live.wait_for_end(call["id"])

    return await eventually(look, lambda call: call["served_by"])


@pytest.mark.parametrize("capability", KINDS)
async def test_the_organizations_other_provider_takes_over(live: LivePlatform, capability: Capability) -> None:
    for fault in FAULTS:
        await configure(live, capability, f"faulty_{capability}_{fault.strip('_')}")
        simulated = await live.simulate_call("What are your opening hours?", "Goodbye")
        assert simulated.first_reply_ms is not None
        call = await find_last_call(live)
        assert call["status"] == "completed", (fault, call)
        (failure,) = objects_at(call, "provider_failures")
        method = METHODS[capability] if fault == "work" else fault
        assert failure["capability"] == capability
        assert f"KeyError in {method} of {failure['plugin']}" in str(failure["error"])


@pytest.mark.parametrize("capability", KINDS)
async def test_a_call_without_another_provider_ends_with_a_reason(live: LivePlatform, capability: Capability) -> None:
    for fault in ("__init__", "open"):
        await configure(live, capability, f"faulty_{capability}_{fault.strip('_')}", alone=True)
        await live.simulate_call("What are your opening hours?")
        call = await find_last_call(live)
        assert (call["status"], call["ended_reason"]) == ("failed", "provider_failed")
        assert f"KeyError in {fault}" in str(call["error_message"])
        assert [failure["error"] for failure in objects_at(call, "provider_failures")] == [call["error_message"]]
        assert "+15550100001" not in str(call["error_message"])


async def test_an_exception_is_a_failure_that_names_the_plugin() -> None:
    model = contain(FaultyModel, PLUGIN)(ProviderSettings())
    with pytest.raises(ProviderError, match=r"^Faulty failed: KeyError in chat of switchboard-faulty 1\.2$"):
        _ = [event async for event in model.chat(ChatRequest((Message("user", "x"),)))]
    assert model.list_expected_phrases("") == ()
    assert isinstance(model, FaultyModel)


def decorate(method: MethodT) -> MethodT:
    """Return the method in a plain function, as a decorator of a plugin's may do."""

    @wraps(method)
    def call(*args: object, **options: object) -> Awaitable[object]:
        return method(*args, **options)

    return cast("MethodT", call)


async def test_what_a_decorated_method_returns_has_bounds() -> None:
    class DecoratedVoice(FaultyVoice):
        @decorate
        async def list_voices(self) -> list[Voice]:
            return [Voice("one", "One", "en")] * 20_000

    class WrongVoice(FaultyVoice):
        @decorate
        async def list_voices(self) -> list[Voice]:
            return ["one"]  # type: ignore[list-item] # what a plugin without a type checker does

    assert len(await contain(DecoratedVoice, PLUGIN)(ProviderSettings()).list_voices()) == LISTED
    with pytest.raises(ProviderError, match=r"list_voices of switchboard-faulty 1\.2 returned an object of type str"):
        await contain(WrongVoice, PLUGIN)(ProviderSettings()).list_voices()


async def test_a_failing_provider_is_left_alone_until_a_probe_succeeds(
    live: LivePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "FIRST_PAUSE_SECONDS", health.LONGEST_PAUSE_SECONDS)
    await configure(live, Capability.LLM, "mendable")
    assert len(objects_at(await call_once(live), "provider_failures")) == 1
    await call_once(live)
    await eventually(count_degraded_models, lambda count: count == 1)
    assert (await call_once(live))["provider_failures"] == []
    assert MendableModel.opened == health.FAILURES_UNTIL_DEGRADED, "its pause is not over"

    monkeypatch.setattr(MendableModel, "broken", False)
    monkeypatch.setattr(ProviderHealth, "claim_probe", lambda provider: provider.degraded)
    await call_once(live)
    async with asyncio.timeout(60):
        await MendableModel.checked.wait()
    await eventually(count_degraded_models, lambda count: count == 0)
    call = await call_once(live)
    assert (at(call, "served_by", "llm"), call["provider_failures"]) == ("mendable", [])


async def test_other_settings_are_a_new_beginning(runtime: Runtime) -> None:
    name, organization_id, saved_at = f"faulty_{Capability.LLM}_open", uuid4(), now()
    before = count_degraded(name)
    found = runtime.providers.find_health(organization_id, LLMProvider, name, saved_at)
    for _ in range(3):
        found.record_failure()
    assert runtime.providers.find_health(organization_id, LLMProvider, name, saved_at) is found
    assert count_degraded(name) == before + 1
    later = saved_at + timedelta(seconds=1)
    assert not runtime.providers.find_health(organization_id, LLMProvider, name, later).degraded
    assert count_degraded(name) == before


def test_each_failure_after_a_pause_doubles_it() -> None:
    clock = [0.0]
    pausing = ProviderHealth(uuid4(), Capability.LLM, "pausing", PLUGIN, clock=lambda: clock[0])
    pauses = []
    for _ in range(3):
        pausing.record_failure()
    for _ in range(7):
        start = clock[0]
        while not pausing.claim_probe():
            clock[0] += 5
        assert not pausing.claim_probe(), "one conversation makes the probe"
        pauses.append(clock[0] - start)
        pausing.record_failure()
    assert pauses == [10, 20, 40, 80, 160, 300, 300]
    pausing.record_success()
    assert not pausing.degraded


def test_a_provider_that_asks_to_wait_is_degraded_for_so_long() -> None:
    clock = [0.0]
    limited = ProviderHealth(uuid4(), Capability.LLM, "limited", PLUGIN, clock=lambda: clock[0])
    limited.record_failure(30.0)
    assert (limited.degraded, limited.claim_probe()) == (True, False)
    clock[0] = 29.0
    assert not limited.claim_probe()
    clock[0] = 30.0
    assert limited.claim_probe()
    limited.record_failure(86_400.0)
    clock[0] = 330.0
    assert limited.claim_probe(), "a day is too long"
    limited.record_success()
    limited.record_failure()
    assert not limited.degraded


async def call_once(live: LivePlatform) -> Json:
    """Call the agent, which answers, and return the call."""
    simulated = await live.simulate_call("What are your opening hours?")
    assert simulated.first_reply_ms is not None
    return await find_last_call(live)


async def count_degraded_models() -> float:
    return count_degraded("mendable")


def count_degraded(provider: str) -> float:
    value = metrics.registry.get_sample_value(
        "switchboard_providers_degraded", {"capability": "llm", "provider": provider}
    )
    return value or 0.0


class BrokenCodec(MediaCodec):
    """Raises what a codec's contract does not name."""

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        if message == "nonsense":
            raise ValueError("unknown message")
        raise KeyError("media")

    def encode(self, audio: bytes) -> Frame:
        raise KeyError("media")

    def clear(self) -> Frame:
        raise KeyError("media")

    def mark(self, name: str) -> Frame:
        raise KeyError("media")


def test_a_codecs_exception_is_a_failure_of_the_carrier() -> None:
    class Carrier(LoopbackTelephony):
        def create_media_codec(self, media_url: str) -> MediaCodec:
            return BrokenCodec()

    codec = contain(Carrier, PLUGIN)(LoopbackSettings(signing_secret=SecretStr("x" * 16))).create_media_codec("wss://x")
    for use in (partial(codec.encode, b""), partial(codec.decode, ""), codec.clear, partial(codec.mark, "x")):
        with pytest.raises(ProviderError, match=r"KeyError in create_media_codec of switchboard-faulty 1\.2"):
            use()
    with pytest.raises(ValueError, match="unknown message"):
        codec.decode("nonsense")
