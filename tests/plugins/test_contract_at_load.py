"""Plugins whose methods or version of the plugin API do not fit are left out when they are loaded."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from switchboard.plugin_sdk import (
    API_VERSION,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    TextToSpeechProvider,
    Voice,
    hookimpl,
)
from switchboard.plugin_sdk.registry import Registry


def create_plugin(kinds: Sequence[type]) -> SimpleNamespace:
    """Return a plugin with these voices."""
    return SimpleNamespace(voices=hookimpl(lambda: kinds, specname="text_to_speech_providers"))


class Hum(TextToSpeechProvider[ProviderSettings]):
    name, title = "hum", "Hum"

    async def check(self) -> None: ...

    async def synthesize(self, request: SpeechRequest) -> object:  # type: ignore[override] # never called
        yield SpeechChunk(b"")

    async def list_voices(self) -> Sequence[Voice]:
        return []


async def _speak_text(self: Hum, text: str) -> object:
    yield SpeechChunk(text.encode())


async def _ignore_text(self: Hum, _request: SpeechRequest) -> object:
    yield SpeechChunk(b"")


async def _promise_speech(self: Hum, request: SpeechRequest) -> object:
    return SpeechChunk(b"")


async def _speak_slowly(self: Hum, request: SpeechRequest, speed: int = 1) -> object:
    yield SpeechChunk(b"")


async def _speak_anything(self: Hum, *args: object, **options: object) -> object:
    yield SpeechChunk(b"")


def _list_at_once(self: Hum) -> Sequence[Voice]:
    return []


@pytest.mark.parametrize(
    ("method", "implementation", "fault"),
    [
        (
            "synthesize",
            _speak_text,
            "expected `def synthesize(self, request)`, found `def synthesize(self, text)`",
        ),
        (
            "synthesize",
            _promise_speech,
            "expected `def synthesize(self, request)`, found `async def synthesize(self, request)`",
        ),
        (
            "list_voices",
            _list_at_once,
            "expected `async def list_voices(self)`, found `def list_voices(self)`",
        ),
        ("check", None, "Hum.check is not a method"),
        ("synthesize", _ignore_text, None),
        ("synthesize", _speak_slowly, None),
        ("synthesize", _speak_anything, None),
    ],
    ids=[
        "another name",
        "a coroutine for a stream",
        "not asynchronous",
        "not a method",
        "unused",
        "a default",
        "anything",
    ],
)
def test_methods_are_compared_with_the_contract_when_a_class_is_loaded(
    method: str, implementation: object, fault: str | None
) -> None:
    kind = type("Hum", (Hum,), {method: implementation})
    plugin = Registry().add("hum", create_plugin([kind]))
    assert (plugin.provides == []) is bool(plugin.faults) is (fault is not None)
    assert fault is None or fault in plugin.faults[0]


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        (API_VERSION, None),
        (API_VERSION + 1, f"needs version {API_VERSION + 1} of the plugin API"),
        (0, "was written for version 0 of the plugin API"),
        ("1.2", "must be a whole number, and is '1.2'"),
    ],
)
def test_a_plugin_for_another_version_of_the_api_is_left_out(version: object, fault: str | None) -> None:
    module = create_plugin([Hum])
    module.PLUGIN_API_VERSION = version
    plugin = Registry().add("versioned", module)
    assert (plugin.provides == []) is bool(plugin.faults) is (fault is not None)
    assert fault is None or fault in plugin.faults[0]
