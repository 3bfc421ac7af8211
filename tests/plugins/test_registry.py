"""Finding plugins: a broken one is reported by name and left out."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import click
import pytest
from switchboard.plugins import ProviderSettings, PublishedEvent, TextToSpeechProvider, hookimpl
from switchboard.plugins.registry import Capability, InvalidSettings, Registry, parse_settings
from switchboard_offline.espeak import EspeakTextToSpeech
from switchboard_offline.loopback import LoopbackTelephony


class Broken:
    @hookimpl
    def llm_providers(self) -> list[object]:
        raise RuntimeError("no such luck")


class Espeak:
    @hookimpl
    def text_to_speech_providers(self) -> list[type[TextToSpeechProvider[ProviderSettings]]]:
        return [EspeakTextToSpeech]


class Nonsense:
    @hookimpl
    def llm_providers(self) -> list[object]:
        return [EspeakTextToSpeech, "scripted"]


class Watcher:
    def __init__(self) -> None:
        self.seen: list[str] = []

    @hookimpl
    def event_published(self, event: PublishedEvent) -> None:
        self.seen.append(event.name)

    @hookimpl
    def cli_commands(self) -> list[click.Command]:
        return [click.Command("extra")]


def test_what_is_installed_is_found() -> None:
    registry = Registry.discover()
    assert {plugin.name for plugin in registry.plugins} >= {"llm", "offline"}
    assert registry.provider(Capability.TELEPHONY, "loopback") is LoopbackTelephony
    assert not any(plugin.faults for plugin in registry.plugins)


def test_a_plugin_that_cannot_be_imported_is_reported_and_left_out() -> None:
    def load() -> object:
        raise ImportError("its library is not installed")

    registry = Registry.discover([SimpleNamespace(name="broken", load=load, dist=None), SimpleNamespace(name="good", load=Espeak, dist=None)])  # type: ignore[list-item] # as much of an entry point as is used
    assert [plugin.name for plugin in registry.plugins] == ["broken", "good"]
    assert "its library is not installed" in registry.plugins[0].faults[0]
    assert registry.provider(Capability.TEXT_TO_SPEECH, "espeak") is EspeakTextToSpeech


def test_a_name_that_is_taken_a_hook_that_raises_and_nonsense_are_reported() -> None:
    registry = Registry()
    registry.add("first", Espeak())
    assert "espeak is provided by another plugin" in registry.add("second", Espeak()).faults[0]
    assert "no such luck" in registry.add("third", Broken()).faults[0]
    assert len(registry.add("fourth", Nonsense()).faults) == 2
    assert len(registry.providers(Capability.TEXT_TO_SPEECH)) == 1


async def test_watchers_are_told_whatever_another_one_does() -> None:
    class Raiser:
        @hookimpl
        def event_published(self, event: PublishedEvent) -> None:
            raise ValueError(event.name)

    registry, watcher = Registry(), Watcher()
    registry.add("raiser", Raiser())
    registry.add("watcher", watcher)
    await asyncio.wait_for(registry.publish(PublishedEvent(uuid4(), uuid4(), "call.completed", {}, datetime.now(UTC))), 5)
    assert watcher.seen == ["call.completed"]
    assert [command.name for command in registry.cli_commands] == ["extra"]


def test_settings_faults_name_the_key_and_never_the_value() -> None:
    with pytest.raises(InvalidSettings) as refused:
        parse_settings(LoopbackTelephony, {"signing_secret": 5, "colour": "sk-secret"})
    assert {"signing_secret", "colour"} == {key for key, _ in refused.value.faults}
    assert "sk-secret" not in str(refused.value)
