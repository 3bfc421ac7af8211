"""Finds plugins and what they provide. A plugin that is broken is reported by name and left out; the platform starts without it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias, cast

import click
import pluggy
import structlog
from pydantic import JsonValue, ValidationError

from switchboard.plugins.actions import ActionParams, AutomationAction
from switchboard.plugins.embeddings import EmbeddingProvider
from switchboard.plugins.hooks import ENTRY_POINT_GROUP, PROJECT, Hooks, PublishedEvent
from switchboard.plugins.llm import LLMProvider
from switchboard.plugins.provider import Provider, ProviderSettings
from switchboard.plugins.speech_to_text import SpeechToTextProvider
from switchboard.plugins.telephony import TelephonyProvider
from switchboard.plugins.text_to_speech import TextToSpeechProvider
from switchboard.plugins.tools import AgentTool, ToolParameters
from switchboard.plugins.vector_stores import VectorStore

logger = structlog.get_logger()

AnyProvider: TypeAlias = type[Provider[ProviderSettings]]
Named: TypeAlias = AnyProvider | type[AutomationAction[ActionParams]] | type[AgentTool[ToolParameters]]
WATCH_SECONDS = 10.0


class Capability(StrEnum):
    """What a provider can be asked for, as tenant files name it."""

    TELEPHONY = "telephony"
    SPEECH_TO_TEXT = "speech_to_text"
    TEXT_TO_SPEECH = "text_to_speech"
    LLM = "llm"
    EMBEDDING = "embedding"
    VECTOR_STORE = "vector_store"


# What each hook must return, and the kind under which it is listed.
HOOKS: Mapping[str, tuple[str, type]] = {
    "telephony_providers": (Capability.TELEPHONY, TelephonyProvider),
    "speech_to_text_providers": (Capability.SPEECH_TO_TEXT, SpeechToTextProvider),
    "text_to_speech_providers": (Capability.TEXT_TO_SPEECH, TextToSpeechProvider),
    "llm_providers": (Capability.LLM, LLMProvider),
    "embedding_providers": (Capability.EMBEDDING, EmbeddingProvider),
    "vector_stores": (Capability.VECTOR_STORE, VectorStore),
    "automation_actions": ("automation_action", AutomationAction),
    "agent_tools": ("agent_tool", AgentTool),
}


class InvalidSettings(Exception):
    """A provider's settings do not validate; `faults` are key and message, without the values."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{key}: {message}" for key, message in faults))
        self.faults = tuple(faults)


@dataclass(slots=True)
class Plugin:
    """A plugin as it was found: what it provides (`telephony loopback`), and what of it is broken, in words."""

    name: str
    distribution: str
    version: str
    provides: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class Registry:
    """What all plugins provide together."""

    def __init__(self, *, trace: bool = False) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(Hooks)
        self._found: dict[tuple[str, str], Named] = {}
        self._trace = trace
        self.plugins: list[Plugin] = []
        self.cli_commands: list[click.Command] = []

    @classmethod
    def discover(cls, found: Iterable[EntryPoint] | None = None, *, trace: bool = False) -> "Registry":
        """Load every installed plugin, in the order of their names."""
        registry = cls(trace=trace)
        for entry in sorted(entry_points(group=ENTRY_POINT_GROUP) if found is None else found, key=lambda entry: entry.name):
            distribution = entry.dist
            plugin = Plugin(entry.name, distribution.name if distribution else "?", distribution.version if distribution else "?")
            registry._load(plugin, entry.load)
        return registry

    def add(self, name: str, module: object) -> Plugin:
        """Register a plugin that is not installed (a test's)."""
        plugin = Plugin(name, "-", "-")
        self._load(plugin, lambda: module)
        return plugin

    def provider(self, capability: Capability, name: str) -> AnyProvider | None:
        """The class of this name."""
        return cast("AnyProvider | None", self._found.get((capability, name)))

    def providers(self, capability: Capability) -> list[AnyProvider]:
        """Every class of a capability."""
        return cast("list[AnyProvider]", self._of(capability))

    @property
    def tools(self) -> list[type[AgentTool[ToolParameters]]]:
        """The functions that plugins add to every agent."""
        return cast("list[type[AgentTool[ToolParameters]]]", self._of("agent_tool"))

    @property
    def actions(self) -> list[type[AutomationAction[ActionParams]]]:
        """The kinds of automation actions."""
        return cast("list[type[AutomationAction[ActionParams]]]", self._of("automation_action"))

    async def publish(self, event: PublishedEvent) -> None:
        """Tell every plugin that watches. What one raises is logged; one that takes too long is left behind."""
        for implementation in self._manager.hook.event_published.get_hookimpls():
            try:
                await asyncio.wait_for(asyncio.to_thread(implementation.function, event), WATCH_SECONDS)
            except Exception:
                logger.exception("plugin failed while watching an event", plugin=implementation.plugin_name, event_name=event.name)

    def _of(self, kind: str) -> list[Named]:
        return [found for (of, _), found in self._found.items() if of == kind]

    def _load(self, plugin: Plugin, load: Callable[[], object]) -> None:
        self.plugins.append(plugin)
        try:
            module = load()
            self._manager.register(module, plugin.name)
            self._manager.check_pending()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a stranger's module may raise anything while it is imported
            self._reject(plugin, f"cannot be loaded: {type(error).__name__}: {error}")
            return
        for hook in HOOKS:
            self._collect(plugin, hook)
        self._collect_commands(plugin)

    def _reject(self, plugin: Plugin, fault: str) -> None:
        plugin.faults.append(fault)
        logger.error("plugin left out", plugin=plugin.name, fault=fault)
        if self._manager.has_plugin(plugin.name):
            self._manager.unregister(name=plugin.name)

    def _call(self, plugin: Plugin, hook: str) -> list[object]:
        answers: list[object] = []
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            if implementation.plugin_name != plugin.name:
                continue
            if self._trace:
                logger.info("hook", plugin=plugin.name, hook=hook)
            try:
                answers += list(implementation.function())
            except Exception as error:  # noqa: BLE001 - a stranger's hook may raise anything
                self._fault(plugin, f"{hook} failed: {type(error).__name__}: {error}")
        return answers

    def _collect(self, plugin: Plugin, hook: str) -> None:
        kind, expected = HOOKS[hook]
        for found in self._call(plugin, hook):
            name = getattr(found, "name", None)
            if not isinstance(found, type) or not issubclass(found, expected):
                self._fault(plugin, f"{hook} returned {found!r}, which is no {expected.__name__}")
            elif not isinstance(name, str) or not name:
                self._fault(plugin, f"{hook}: {found.__name__} has no name")
            elif (kind, name) in self._found:
                self._fault(plugin, f"{kind} {name} is provided by another plugin already")
            else:
                self._found[kind, name] = cast("Named", found)
                plugin.provides.append(f"{kind} {name}")

    def _collect_commands(self, plugin: Plugin) -> None:
        for command in self._call(plugin, "cli_commands"):
            if isinstance(command, click.Command) and command.name:
                self.cli_commands.append(command)
                plugin.provides.append(f"command {command.name}")
            else:
                self._fault(plugin, f"cli_commands returned {command!r}, which is no click command with a name")

    def _fault(self, plugin: Plugin, fault: str) -> None:
        plugin.faults.append(fault)
        logger.error("part of a plugin left out", plugin=plugin.name, fault=fault)


def parse_settings(kind: AnyProvider, values: Mapping[str, JsonValue]) -> ProviderSettings:
    """A provider's settings from plain values. Raises `InvalidSettings`."""
    try:
        return kind.Settings.model_validate(dict(values))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise InvalidSettings([(".".join(str(part) for part in fault["loc"]) or "settings", fault["msg"]) for fault in faults]) from None
