"""Plugin discovery: a broken plugin is reported by name and left out, and the platform starts."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace
from typing import cast
from uuid import uuid4

import click
import pytest
from pydantic import JsonValue, SecretStr, field_validator
from switchboard.plugin_sdk import (
    ActionContext,
    ActionParams,
    AgentTool,
    AutomationAction,
    JsonObject,
    ProviderSettings,
    PublishedEvent,
    SpeechChunk,
    SpeechRequest,
    TelephonyProvider,
    TextToSpeechProvider,
    ToolContext,
    ToolParameters,
    Voice,
    hookimpl,
)
from switchboard.plugin_sdk.event_watchers import MAX_STUCK_WATCHERS, EventWatcher
from switchboard.plugin_sdk.registry import InvalidSettings, Registry, parse_settings
from switchboard_offline.espeak import EspeakTextToSpeech
from switchboard_offline.loopback import LoopbackTelephony

Hook = Callable[..., object]


def plugin(**hooks: Hook) -> ModuleType:
    """Return a plugin with these hooks."""
    module = ModuleType("test_plugin")
    for name, hook in hooks.items():
        hook.__name__ = name
        setattr(module, name, hookimpl(hook))
    return module


def entry(name: str, load: Hook) -> EntryPoint:
    """Return the used part of an entry point."""
    return cast("EntryPoint", SimpleNamespace(name=name, load=load, dist=None))


def event(name: str = "call.completed") -> PublishedEvent:
    return PublishedEvent(uuid4(), uuid4(), name, {}, datetime.now(UTC))


class Hum(TextToSpeechProvider[ProviderSettings]):
    name, title = "hum", "Hum"

    async def check(self) -> None: ...

    async def synthesize(self, request: SpeechRequest) -> object:  # type: ignore[override] # never called
        yield SpeechChunk(b"")

    async def list_voices(self) -> Sequence[Voice]:
        return []


class Nameless(Hum):
    name = ""


class WithoutTitle(Hum):
    title = cast("str", None)


class LaxSettings(Hum):
    Settings = cast("type[ProviderSettings]", dict)


class Unfinished(TextToSpeechProvider[ProviderSettings]):
    name, title = "unfinished", "Unfinished"

    async def check(self) -> None: ...


class Wave(AutomationAction[ActionParams]):
    name, title = "wave", "Wave"

    async def run(self, context: ActionContext, params: ActionParams) -> JsonObject:
        return {}


class Clock(AgentTool[ToolParameters]):
    name, description = "clock", "Tells the time."

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        return {}


def test_what_is_installed_is_found() -> None:
    registry = Registry.discover()
    assert {plugin.name for plugin in registry.plugins} >= {"llm", "offline"}
    assert registry.find_provider_class(TelephonyProvider, "loopback") is LoopbackTelephony
    assert EspeakTextToSpeech in registry.list_provider_classes(TextToSpeechProvider)
    assert registry.find_provider_class(TelephonyProvider, "no-such-carrier") is None
    assert not any(plugin.faults for plugin in registry.plugins)
    assert all(
        plugin.version[0].isdigit() and plugin.distribution.startswith("switchboard-") for plugin in registry.plugins
    )


def test_plugins_are_loaded_in_the_order_of_their_names_and_one_that_cannot_be_imported_is_left_out() -> None:
    def broken() -> object:
        raise ImportError("its library is not installed")

    def quits() -> object:
        raise SystemExit("bye")

    hum = plugin(text_to_speech_providers=lambda: [Hum])
    registry = Registry.discover([entry("good", lambda: hum), entry("broken", broken), entry("c-quits", quits)])
    assert [found.name for found in registry.plugins] == ["broken", "c-quits", "good"]
    assert registry.plugins[0].faults == ["cannot be loaded: ImportError: its library is not installed"]
    assert registry.plugins[1].faults == ["cannot be loaded: SystemExit: bye"]
    assert registry.plugins[2].provides == ["text_to_speech hum"]
    assert registry.find_provider_class(TextToSpeechProvider, "hum") is Hum


async def _asynchronous() -> list[object]:
    return []


def _wrapper() -> Iterator[None]:
    yield


@pytest.mark.parametrize(
    ("module", "fault"),
    [
        (plugin(no_such_hook=lambda: [Hum], text_to_speech_providers=lambda: [Hum]), "no_such_hook"),
        (plugin(text_to_speech_providers=lambda language: [Hum]), "language"),
        (plugin(text_to_speech_providers=_asynchronous), "must be a plain function"),
        (SimpleNamespace(text_to_speech_providers=hookimpl(wrapper=True)(_wrapper)), "must be a plain function"),
    ],
    ids=["a hook of a newer version", "an argument that the hook does not have", "asynchronous", "a wrapper"],
)
def test_a_plugin_whose_hooks_do_not_fit_is_left_out_whole(module: object, fault: str) -> None:
    registry = Registry()
    found = registry.add("misfit", module)
    assert len(found.faults) == 1
    assert fault in found.faults[0]
    assert found.provides == []
    assert registry.list_provider_classes(TextToSpeechProvider) == []
    assert registry.add("after", plugin(text_to_speech_providers=lambda: [Hum])).faults == []


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ([Nameless], "Nameless has no name"),
        ([WithoutTitle], "WithoutTitle has no title"),
        ([LaxSettings], "LaxSettings.Settings is no ProviderSettings"),
        ([Unfinished], "Unfinished lacks list_voices, synthesize"),
        ([Hum(ProviderSettings())], "an answer of type Hum is no TextToSpeechProvider"),
        ([LoopbackTelephony], "LoopbackTelephony is no TextToSpeechProvider"),
        ([Hum, Hum], "text_to_speech hum is provided by plugin wrong already"),
        (None, "TypeError"),
    ],
)
def test_a_provider_that_cannot_be_used_is_left_out_and_the_rest_of_its_plugin_stays(
    answer: object, fault: str
) -> None:
    registry = Registry()
    found = registry.add(
        "wrong",
        plugin(text_to_speech_providers=lambda: answer, automation_actions=lambda: [Wave], agent_tools=lambda: [Clock]),
    )
    assert [line for line in found.faults if fault in line] == found.faults != []
    assert (registry.actions, registry.tools) == ([Wave], [Clock])


def test_a_hook_that_raises_leaves_out_what_it_would_have_provided() -> None:
    def raises() -> object:
        raise RuntimeError("no such luck")

    found = Registry().add("raises", plugin(llm_providers=raises, text_to_speech_providers=lambda: [Hum]))
    assert found.faults == ["llm_providers failed: RuntimeError: no such luck"]
    assert found.provides == ["text_to_speech hum"]


def test_of_two_providers_of_one_name_the_first_stays() -> None:
    class Other(Hum):
        pass

    registry = Registry()
    registry.add("first", plugin(text_to_speech_providers=lambda: [Hum]))
    second = registry.add("second", plugin(text_to_speech_providers=lambda: [Other]))
    assert second.faults == ["text_to_speech_providers: text_to_speech hum is provided by plugin first already"]
    assert registry.list_provider_classes(TextToSpeechProvider) == [Hum]


def test_of_two_plugins_of_one_name_the_first_stays() -> None:
    registry = Registry()
    registry.add("twin", plugin(text_to_speech_providers=lambda: [Hum]))
    assert registry.add("twin", plugin(automation_actions=lambda: [Wave])).faults == [
        "cannot be loaded: another plugin is called twin"
    ]
    assert (registry.list_provider_classes(TextToSpeechProvider), registry.actions) == ([Hum], [])


def test_commands_are_collected() -> None:
    registry = Registry()
    extra = registry.add(
        "extra", plugin(cli_commands=lambda: [click.Command("extra"), click.Command(None), "nonsense"])
    )
    assert [command.name for command in registry.cli_commands] == ["extra"]
    assert len(extra.faults) == 2
    assert len(registry.add("again", plugin(cli_commands=lambda: [click.Command("extra")])).faults) == 1


async def test_watchers_are_told_whatever_another_one_does() -> None:
    seen: list[str] = []

    def watch(event: PublishedEvent) -> None:
        seen.append(event.name)

    def raises(event: PublishedEvent) -> None:
        raise SystemExit(event.name)

    registry = Registry()
    registry.add("raises", plugin(event_published=raises))
    registry.add("watcher", plugin(event_published=watch))
    registry.add("counter", plugin(event_published=lambda: seen.append("one")))
    await registry.publish(event())
    assert sorted(seen) == ["call.completed", "one"]


async def test_a_watcher_that_hangs_is_left_behind_and_told_again_once_it_returns() -> None:
    release, told = threading.Event(), threading.Semaphore(0)

    def hang(event: PublishedEvent) -> None:
        told.release()
        release.wait(30)

    watcher = EventWatcher("hangs", hang, seconds=0.01)
    for _ in range(MAX_STUCK_WATCHERS + 3):
        await watcher.notify(event())
    for _ in range(MAX_STUCK_WATCHERS):
        assert told.acquire(timeout=5)
    assert not told.acquire(blocking=False)
    release.set()
    async with asyncio.timeout(20):
        while not told.acquire(blocking=False):
            await asyncio.sleep(0)
            await watcher.notify(event())


def test_hook_calls_are_logged_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    Registry().add("quiet", plugin(text_to_speech_providers=lambda: [Hum]))
    assert "text_to_speech_providers" not in capsys.readouterr().out
    Registry(trace=True).add("traced", plugin(text_to_speech_providers=lambda: [Hum]))
    assert "text_to_speech_providers" in capsys.readouterr().out


class Choosy(Hum):
    class Settings(ProviderSettings):
        api_key: SecretStr
        regions: tuple[str, ...] = ()
        port: int = 1

        @field_validator("api_key")
        @classmethod
        def _starts_well(cls, value: SecretStr) -> SecretStr:
            if not value.get_secret_value().startswith("sk-"):
                raise ValueError(f"{value.get_secret_value()} does not start with sk-")
            return value


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({"api_key": "hunter2-hunter2"}, {"api_key"}),
        ({"api_key": 5, "colour": "hunter2-hunter2"}, {"api_key", "colour"}),
        ({"api_key": "sk-1", "regions": ["eu", 5], "port": "hunter2-hunter2"}, {"regions.1", "port"}),
        ({}, {"api_key"}),
    ],
)
def test_settings_faults_name_the_key_and_never_the_value(values: dict[str, JsonValue], keys: set[str]) -> None:
    with pytest.raises(InvalidSettings) as refused:
        parse_settings(Choosy, values)
    assert {key for key, _ in refused.value.faults} == keys
    assert all(message for _, message in refused.value.faults)
    assert "hunter2" not in str(refused.value)


def test_settings_that_validate_are_the_providers_own() -> None:
    settings = parse_settings(Choosy, {"api_key": "sk-1", "port": 5})
    assert settings == Choosy.Settings(api_key=SecretStr("sk-1"), port=5)
