"""Plugin discovery: a broken plugin is reported by name and left out, and the platform starts."""

import asyncio
import threading
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace
from typing import cast
from uuid import uuid4

import click
import pytest
from pydantic import JsonValue, SecretStr, field_validator
from switchboard.foundation.database import now
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
from switchboard.plugin_sdk.event_watchers import MAX_STUCK_WATCHERS, HookWatcher
from switchboard.plugin_sdk.registry import BUILT_IN, Capability, InvalidSettings, Registry, parse_settings
from switchboard_offline.espeak import EspeakTextToSpeech
from switchboard_offline.loopback import LoopbackTelephony

from tests.fixtures.servers import REPOSITORY

Hook = Callable[..., object]


def create_plugin(**hooks: Hook) -> ModuleType:
    """Return a plugin with these hooks."""
    module = ModuleType("test_plugin")
    for name, hook in hooks.items():
        hook.__name__ = name
        setattr(module, name, hookimpl(hook))
    return module


def create_entry_point(name: str, load: Hook) -> EntryPoint:
    """Return the used part of an entry point."""
    return cast("EntryPoint", SimpleNamespace(name=name, value=name, load=load, dist=None))


def create_event(name: str = "call.completed") -> PublishedEvent:
    return PublishedEvent(uuid4(), uuid4(), name, {}, now())


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


def test_installed_plugins_are_discovered() -> None:
    registry = Registry.discover()
    assert {plugin.name for plugin in registry.plugins} >= {"llm", "offline"}
    assert registry.find_provider_class(TelephonyProvider, "loopback") is LoopbackTelephony
    assert EspeakTextToSpeech in registry.list_provider_classes(TextToSpeechProvider)
    assert registry.find_provider_class(TelephonyProvider, "no-such-carrier") is None
    assert not any(plugin.faults for plugin in registry.plugins)
    assert all(
        plugin.version[0].isdigit() and plugin.distribution.startswith("switchboard-") for plugin in registry.plugins
    )


def test_a_plugins_package_names_its_distribution() -> None:
    distributions = Registry.discover().distributions_by_package
    assert distributions["switchboard_telephony_twilio"] == "switchboard-voice-telephony-twilio"
    assert distributions["switchboard_offline"] == "switchboard-voice-offline"


def test_the_platforms_own_package_names_no_plugin() -> None:
    """It is on every stack, so the watchdog would name it where a plugin has called the platform."""
    registry = Registry.discover()
    assert "switchboard.resources.automations.actions" in {plugin.module for plugin in registry.plugins}
    assert "switchboard" not in registry.distributions_by_package


def test_plugins_load_in_the_order_of_their_names_and_broken_ones_are_left_out() -> None:
    def broken() -> object:
        raise ImportError("its library is not installed")

    def quits() -> object:
        raise SystemExit("bye")

    hum = create_plugin(text_to_speech_providers=lambda: [Hum])
    registry = Registry.discover(
        [
            create_entry_point("good", lambda: hum),
            create_entry_point("broken", broken),
            create_entry_point("c-quits", quits),
        ]
    )
    assert [plugin.name for plugin in registry.plugins] == ["broken", "c-quits", "good"]
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
        (create_plugin(no_such_hook=lambda: [Hum], text_to_speech_providers=lambda: [Hum]), "no_such_hook"),
        (create_plugin(text_to_speech_providers=lambda language: [Hum]), "language"),
        (create_plugin(text_to_speech_providers=_asynchronous), "must be a plain function"),
        (SimpleNamespace(text_to_speech_providers=hookimpl(wrapper=True)(_wrapper)), "must be a plain function"),
    ],
    ids=["a hook of a newer version", "an argument that the hook does not have", "asynchronous", "a wrapper"],
)
def test_a_plugin_with_invalid_hooks_is_left_out_completely(module: object, fault: str) -> None:
    registry = Registry()
    plugin = registry.add("misfit", module)
    assert len(plugin.faults) == 1
    assert fault in plugin.faults[0]
    assert plugin.provides == []
    assert registry.list_provider_classes(TextToSpeechProvider) == []
    assert registry.add("after", create_plugin(text_to_speech_providers=lambda: [Hum])).faults == []


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ([Nameless], "Nameless has no name"),
        ([WithoutTitle], "WithoutTitle has no title"),
        ([LaxSettings], "LaxSettings.Settings is not a ProviderSettings"),
        ([Unfinished], "Unfinished lacks list_voices, synthesize"),
        ([Hum(ProviderSettings())], "an answer of type Hum is not a TextToSpeechProvider"),
        ([LoopbackTelephony], "LoopbackTelephony is not a TextToSpeechProvider"),
        ([Hum, Hum], "text_to_speech hum is provided by plugin wrong already"),
        (None, "TypeError"),
    ],
)
def test_an_unusable_provider_is_left_out_and_its_plugin_stays(answer: object, fault: str) -> None:
    registry = Registry()
    plugin = registry.add(
        "wrong",
        create_plugin(
            text_to_speech_providers=lambda: answer, automation_actions=lambda: [Wave], agent_tools=lambda: [Clock]
        ),
    )
    assert [line for line in plugin.faults if fault in line] == plugin.faults != []
    assert (registry.actions, registry.list_extension_classes(AgentTool)) == ([Wave], [Clock])


def test_a_failing_hook_loses_only_its_own_results() -> None:
    def raises() -> object:
        raise RuntimeError("no such luck")

    plugin = Registry().add("raises", create_plugin(llm_providers=raises, text_to_speech_providers=lambda: [Hum]))
    assert plugin.faults == ["llm_providers failed: RuntimeError: no such luck"]
    assert plugin.provides == ["text_to_speech hum"]


def test_two_providers_with_one_name_are_both_addressable() -> None:
    class Other(Hum):
        pass

    registry = Registry()
    first = registry.add("first", create_plugin(text_to_speech_providers=lambda: [Hum]))
    second = registry.add("second", create_plugin(text_to_speech_providers=lambda: [Other]))
    assert (first.provides, first.shadowed) == (["text_to_speech hum"], {})
    assert (second.provides, second.shadowed) == (["text_to_speech second/hum"], {"text_to_speech second/hum": "first"})
    assert first.faults == second.faults == []
    found = {name: registry.find_provider_class(TextToSpeechProvider, name) for name in ("first/hum", "second/hum")}
    assert all(kind is not None and kind.name == name for name, kind in found.items())
    assert registry.find_provider_class(TextToSpeechProvider, "hum") is Hum
    assert [kind.name for kind in registry.list_provider_classes(TextToSpeechProvider)] == ["hum", "second/hum"]
    assert issubclass(registry.list_provider_classes(TextToSpeechProvider)[1], Other)
    for name, plugin in (("hum", first), ("first/hum", first), ("second/hum", second)):
        assert registry.find_plugin(Capability.TEXT_TO_SPEECH, name) is plugin


def test_a_built_in_provider_wins_over_one_of_a_plugin_with_an_earlier_name() -> None:
    built_in = SimpleNamespace(
        name="zulu",
        value="zulu",
        load=lambda: create_plugin(text_to_speech_providers=lambda: [Hum]),
        dist=SimpleNamespace(name="switchboard-voice-offline", version="1"),
    )

    class Other(Hum):
        pass

    registry = Registry.discover(
        [
            create_entry_point("alpha", lambda: create_plugin(text_to_speech_providers=lambda: [Other])),
            cast("EntryPoint", built_in),
        ]
    )
    assert [plugin.provides for plugin in registry.plugins] == [["text_to_speech hum"], ["text_to_speech alpha/hum"]]
    assert registry.find_provider_class(TextToSpeechProvider, "hum") is Hum


def test_the_list_of_built_in_distributions_is_complete() -> None:
    projects = [REPOSITORY / "platform" / "pyproject.toml", *(REPOSITORY / "plugins").glob("*/pyproject.toml")]
    assert {tomllib.loads(path.read_text())["project"]["name"] for path in projects} == BUILT_IN


def test_the_first_of_two_plugins_with_one_name_is_kept() -> None:
    registry = Registry()
    registry.add("twin", create_plugin(text_to_speech_providers=lambda: [Hum]))
    assert registry.add("twin", create_plugin(automation_actions=lambda: [Wave])).faults == [
        "cannot be loaded: another plugin is called twin"
    ]
    assert (registry.list_provider_classes(TextToSpeechProvider), registry.actions) == ([Hum], [])


def test_commands_are_collected() -> None:
    registry = Registry()
    extra = registry.add(
        "extra", create_plugin(cli_commands=lambda: [click.Command("extra"), click.Command(None), "nonsense"])
    )
    assert [command.name for command in registry.cli_commands] == ["extra"]
    assert len(extra.faults) == 2
    assert len(registry.add("again", create_plugin(cli_commands=lambda: [click.Command("extra")])).faults) == 1


async def test_watchers_are_notified_even_if_another_watcher_fails() -> None:
    watched: list[str] = []

    def watch(event: PublishedEvent) -> None:
        watched.append(event.name)

    def raises(event: PublishedEvent) -> None:
        raise SystemExit(event.name)

    registry = Registry()
    registry.add("raises", create_plugin(event_published=raises))
    registry.add("watcher", create_plugin(event_published=watch))
    registry.add("counter", create_plugin(event_published=lambda: watched.append("one")))
    await registry.publish(create_event())
    assert sorted(watched) == ["call.completed", "one"]


async def test_a_hanging_watcher_is_skipped_until_it_returns() -> None:
    release, notified = threading.Event(), threading.Semaphore(0)

    def hang(event: PublishedEvent) -> None:
        notified.release()
        release.wait(30)

    watcher = HookWatcher("hangs", hang, seconds=0.01)
    for _ in range(MAX_STUCK_WATCHERS + 3):
        await watcher.notify(create_event())
    for _ in range(MAX_STUCK_WATCHERS):
        assert notified.acquire(timeout=5)
    assert not notified.acquire(blocking=False)
    release.set()
    async with asyncio.timeout(60):
        while not notified.acquire(blocking=False):
            await asyncio.sleep(0)
            await watcher.notify(create_event())


def test_hook_calls_are_logged_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    Registry().add("quiet", create_plugin(text_to_speech_providers=lambda: [Hum]))
    assert "text_to_speech_providers" not in capsys.readouterr().out
    Registry(trace=True).add("traced", create_plugin(text_to_speech_providers=lambda: [Hum]))
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
        ({"api_key": 5, "color": "hunter2-hunter2"}, {"api_key", "color"}),
        ({"api_key": "sk-1", "regions": ["eu", 5], "port": "hunter2-hunter2"}, {"regions.1", "port"}),
        ({}, {"api_key"}),
    ],
)
def test_settings_errors_name_the_key_and_never_the_value(values: dict[str, JsonValue], keys: set[str]) -> None:
    with pytest.raises(InvalidSettings) as refused:
        parse_settings(Choosy.Settings, values)
    assert {key for key, _ in refused.value.faults} == keys
    assert all(message for _, message in refused.value.faults)
    assert "hunter2" not in str(refused.value)


def test_valid_settings_have_the_providers_own_class() -> None:
    settings = parse_settings(Choosy.Settings, {"api_key": "sk-1", "port": 5})
    assert settings == Choosy.Settings(api_key=SecretStr("sk-1"), port=5)
