"""Plugin discovery. A broken plugin is reported by name and left out; the platform starts without it."""

import asyncio
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias, TypeVar, cast

import click
import pluggy
import structlog
from pydantic import JsonValue, ValidationError

from switchboard.plugin_sdk.actions import ActionParams, AutomationAction
from switchboard.plugin_sdk.calendars import CalendarProvider
from switchboard.plugin_sdk.class_validation import (
    AnyProvider,
    PluginError,
    check_api_version,
    validate_class,
    validate_command,
    validate_process,
)
from switchboard.plugin_sdk.embeddings import EmbeddingProvider
from switchboard.plugin_sdk.event_watchers import EventWatcher, HookWatcher, PublishedEvent
from switchboard.plugin_sdk.hooks import ENTRY_POINT_GROUP, PROJECT, Hooks
from switchboard.plugin_sdk.llm import LLMProvider
from switchboard.plugin_sdk.private_data import PrivateDataDetector
from switchboard.plugin_sdk.processes import ProviderProcess
from switchboard.plugin_sdk.provider import Configurable, Extension, Provider, ProviderSettings
from switchboard.plugin_sdk.speech_to_text import SpeechToTextProvider
from switchboard.plugin_sdk.telephony import TelephonyProvider
from switchboard.plugin_sdk.text_to_speech import TextToSpeechProvider
from switchboard.plugin_sdk.tools import AgentTool
from switchboard.plugin_sdk.turn_detectors import TurnDetector
from switchboard.plugin_sdk.vector_stores import VectorStore

logger = structlog.get_logger()

ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])
ExtensionT = TypeVar("ExtensionT", bound=Extension)


class Capability(StrEnum):
    """A capability that providers implement, with its name in tenant files."""

    TELEPHONY = "telephony"
    SPEECH_TO_TEXT = "speech_to_text"
    TEXT_TO_SPEECH = "text_to_speech"
    LLM = "llm"
    EMBEDDING = "embedding"
    VECTOR_STORE = "vector_store"
    TURN_DETECTOR = "turn_detector"
    CALENDAR = "calendar"

    @property
    def base_class(self) -> AnyProvider:
        """The SDK class that every provider of the capability subclasses."""
        return BASE_CLASSES[self]


def find_capability(base: AnyProvider) -> Capability:
    """Return the capability of an SDK base class (`TelephonyProvider`, say)."""
    return next(capability for capability, known in BASE_CLASSES.items() if known is base)


class ExtensionKind(StrEnum):
    """A kind of extension, with its name in tenant files."""

    AUTOMATION_ACTION = "automation_action"
    AGENT_TOOL = "agent_tool"
    EVENT_WATCHER = "event_watcher"
    PRIVATE_DATA_DETECTOR = "private_data_detector"

    @property
    def base_class(self) -> type[Extension]:
        """The SDK class that every extension of the kind subclasses."""
        return EXTENSION_CLASSES[self]


# The base class that each hook's classes must subclass, and the kind under which they are listed.
HOOKS: Mapping[str, tuple[str, type]] = {
    "telephony_providers": (Capability.TELEPHONY, TelephonyProvider),
    "speech_to_text_providers": (Capability.SPEECH_TO_TEXT, SpeechToTextProvider),
    "text_to_speech_providers": (Capability.TEXT_TO_SPEECH, TextToSpeechProvider),
    "llm_providers": (Capability.LLM, LLMProvider),
    "embedding_providers": (Capability.EMBEDDING, EmbeddingProvider),
    "vector_stores": (Capability.VECTOR_STORE, VectorStore),
    "turn_detectors": (Capability.TURN_DETECTOR, TurnDetector),
    "calendar_providers": (Capability.CALENDAR, CalendarProvider),
    "automation_actions": (ExtensionKind.AUTOMATION_ACTION, AutomationAction),
    "agent_tools": (ExtensionKind.AGENT_TOOL, AgentTool),
    "event_watchers": (ExtensionKind.EVENT_WATCHER, EventWatcher),
    "private_data_detectors": (ExtensionKind.PRIVATE_DATA_DETECTOR, PrivateDataDetector),
}
BASE_CLASSES: Mapping[Capability, AnyProvider] = {
    kind: base for kind, base in HOOKS.values() if isinstance(kind, Capability)
}
EXTENSION_CLASSES: Mapping[ExtensionKind, type[Extension]] = {
    kind: base for kind, base in HOOKS.values() if isinstance(kind, ExtensionKind)
}

AnyCapability: TypeAlias = Capability | ExtensionKind
CAPABILITIES: Mapping[str, AnyCapability] = {kind.value: kind for kind in (*Capability, *ExtensionKind)}
"""Everything that organizations configure, by its name in tenant files and in the database."""


def find_extension_kind(extension: type[Extension]) -> ExtensionKind:
    """Return the kind of an extension's class, or of an SDK base class (`AgentTool`, say)."""
    return next(kind for kind, base in EXTENSION_CLASSES.items() if issubclass(extension, base))


OWN_PLUGINS = (
    "calendar", "llm", "offline", "presidio", "speech", "telephony-plivo", "telephony-sip", "telephony-telnyx",
    "telephony-twilio", "turn-smart", "vectorstore",
)  # fmt: skip
PLATFORM_PACKAGE = __name__.partition(".")[0]
BUILT_IN = frozenset({"switchboard-voice", *(f"switchboard-voice-{name}" for name in OWN_PLUGINS)})
"""Distributions of the platform's repository. They load first, so that their names win over those of others."""


class InvalidSettings(Exception):
    """Settings are not valid. `faults` are pairs of key and message, without the values."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{key}: {message}" for key, message in faults))
        self.faults = tuple(faults)


@dataclass(slots=True)
class Plugin:
    """A discovered plugin: what it provides (`telephony loopback`), and messages about its broken parts.

    `shadowed` has the parts whose name another plugin has, by the name under which they are provided, `plugin/name`,
    with the name of the plugin that has the plain one. `module` is the value of its entry point.
    """

    name: str
    distribution: str
    version: str
    provides: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    shadowed: dict[str, str] = field(default_factory=dict)
    module: str = ""

    @property
    def package(self) -> str:
        """The package that contains the plugin's module; empty for a module outside of packages, or not loaded."""
        return getattr(sys.modules.get(self.module.partition(":")[0]), "__package__", None) or ""


class Registry:
    """Everything that the installed plugins provide."""

    def __init__(self, *, trace: bool = False) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(Hooks)
        self._found: dict[tuple[str, str], type[Configurable]] = {}
        self._qualified: dict[tuple[str, str], tuple[type[Configurable], Plugin]] = {}
        self._watchers: list[tuple[Plugin, HookWatcher]] = []
        self._trace = trace
        self.plugins: list[Plugin] = []
        self.cli_commands: list[click.Command] = []
        self.processes: list[type[ProviderProcess[Any]]] = []

    @classmethod
    def discover(cls, found: Iterable[EntryPoint] | None = None, *, trace: bool = False) -> "Registry":
        """Load every installed plugin: the built-in ones first, each group in the order of the names.

        `trace` logs each call of a hook.
        """
        registry = cls(trace=trace)

        def rank(entry: EntryPoint) -> tuple[bool, str]:
            return entry.dist is None or entry.dist.name not in BUILT_IN, entry.name

        for entry in sorted(entry_points(group=ENTRY_POINT_GROUP) if found is None else found, key=rank):
            name, version = (entry.dist.name, entry.dist.version) if entry.dist else ("?", "?")
            registry._load(Plugin(entry.name, name, version, module=entry.value), entry.load)
        return registry

    def add(self, name: str, module: object) -> Plugin:
        """Register a plugin by its module, whatever is installed: in tests, and in a plugin's own process."""
        plugin = Plugin(name, "-", "-", module=getattr(module, "__name__", ""))
        self._load(plugin, lambda: module)
        return plugin

    def find_provider_class(self, base: type[ProviderT], name: str) -> type[ProviderT] | None:
        """Return the provider class of this name under a capability's base class; None where no plugin provides it."""
        found = self.find_class(find_capability(base), name)
        return found if found is not None and issubclass(found, base) else None

    @property
    def distributions_by_package(self) -> dict[str, str]:
        """Distributions of plugins by the top-level package of their entry points, without the platform's own."""
        found = {plugin.module.partition(":")[0].partition(".")[0]: plugin.distribution for plugin in self.plugins}
        return {package: distribution for package, distribution in found.items() if package != PLATFORM_PACKAGE}

    def find_plugin(self, capability: AnyCapability, name: str) -> Plugin | None:
        """Return the plugin that provides a capability, plain or as `plugin/name`, or an extension."""
        if (capability, name) in self._qualified:
            return self._qualified[capability, name][1]
        return self._find_owner(f"{capability} {name}")

    def list_provider_classes(self, base: type[ProviderT]) -> list[type[ProviderT]]:
        """List every provider class of a capability's base class once, in the order in which the plugins load."""
        return [found for found in self.list_classes(find_capability(base)) if issubclass(found, base)]

    def find_class(self, capability: AnyCapability, name: str) -> type[Configurable] | None:
        """Return the class of a provider or an extension; None where no plugin provides it.

        `plugin/name` names the provider of one plugin, even if other plugins have a provider of that name; the class
        then has the name `plugin/name`.
        """
        qualified, _ = self._qualified.get((capability, name), (None, None))
        return self._found.get((capability, name), qualified)

    def list_classes(self, capability: AnyCapability) -> list[type[Configurable]]:
        """List the classes of a capability, or of a kind of extension, in the order of the plugins' names."""
        return [found for (kind, _), found in self._found.items() if kind == capability]

    def list_extension_classes(self, base: type[ExtensionT]) -> list[type[ExtensionT]]:
        """List every extension of an SDK base class (`AgentTool`, say), in the order of the plugins' names."""
        return [found for found in self.list_classes(find_extension_kind(base)) if issubclass(found, base)]

    @property
    def actions(self) -> list[type[AutomationAction[ActionParams]]]:
        """Kinds of automation actions."""
        return self.list_extension_classes(AutomationAction)

    def action(self, name: str) -> type[AutomationAction[ActionParams]] | None:
        """Return the kind of action of this name; None if no plugin provides it."""
        return next((action for action in self.actions if action.name == name), None)

    async def publish(self, event: PublishedEvent) -> list[tuple[Plugin, BaseException]]:
        """Notify every plugin that has the hook `event_published`, concurrently.

        Raises nothing. Returns when each watcher has returned or timed out, with the exceptions that they raised.
        """
        raised = await asyncio.gather(*(watcher.notify(event) for _, watcher in self._watchers))
        plugins = [plugin for plugin, _ in self._watchers]
        return [(plugin, error) for plugin, error in zip(plugins, raised, strict=True) if error is not None]

    def _load(self, plugin: Plugin, load: Callable[[], object]) -> None:
        taken = self._manager.has_plugin(plugin.name)
        self.plugins.append(plugin)
        try:
            if taken:
                raise PluginError(f"another plugin is called {plugin.name}")
            module = load()
            check_api_version(module)
            self._manager.register(module, plugin.name)
            self._manager.check_pending()
            implementations = self._list_implementations(plugin)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a third-party module may raise anything on import
            _fault(plugin, f"cannot be loaded: {_describe_error(error)}")
            if not taken and self._manager.has_plugin(plugin.name):
                self._manager.unregister(name=plugin.name)
            return
        for hook, implementation in implementations.items():
            if hook == "event_published":
                self._watch(plugin, implementation)
            else:
                self._collect(plugin, hook, implementation)

    def _list_implementations(self, plugin: Plugin) -> dict[str, pluggy.HookImpl]:
        """Return the plugin's hook implementations by hook name. Raises `PluginError` for one that cannot be called."""
        module = self._manager.get_plugin(plugin.name)
        found = {}
        for caller in self._manager.get_hookcallers(module) or ():
            (each,) = (each for each in caller.get_hookimpls() if each.plugin is module)
            if inspect.iscoroutinefunction(each.function) or each.wrapper or each.hookwrapper:
                raise PluginError(f"{caller.name} must be a plain function, neither asynchronous nor a wrapper")
            found[caller.name] = each
        return found

    def _watch(self, plugin: Plugin, implementation: pluggy.HookImpl) -> None:
        def watch(event: PublishedEvent) -> object:
            if self._trace:
                logger.info("hook", plugin=plugin.name, hook="event_published", event_name=event.name)
            return implementation.function(*[event for _ in implementation.argnames])

        self._watchers.append((plugin, HookWatcher(plugin.name, watch)))
        plugin.provides.append("event watcher")

    def _collect(self, plugin: Plugin, hook: str, implementation: pluggy.HookImpl) -> None:
        if self._trace:
            logger.info("hook", plugin=plugin.name, hook=hook)
        try:
            answers = list(cast("Iterable[object]", implementation.function()))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a third-party hook may raise anything
            _fault(plugin, f"{hook} failed: {_describe_error(error)}")
            return
        for answer in answers:
            try:
                self._take(plugin, hook, answer)
            except PluginError as fault:
                _fault(plugin, f"{hook}: {fault}")

    def _take(self, plugin: Plugin, hook: str, answer: object) -> None:
        if hook == "cli_commands":
            command = validate_command(answer)
            self._claim(plugin, f"command {command.name}")
            self.cli_commands.append(command)
            return
        if hook == "provider_processes":
            process = validate_process(answer)
            self._claim(plugin, f"command {process.name}")
            self.processes.append(process)
            return
        kind, expected = HOOKS[hook]
        found = validate_class(answer, expected)
        if kind in set(Capability):
            found = self._qualify(plugin, kind, found)
        elif issubclass(found, Extension):
            found.origin = plugin.distribution, plugin.version
        self._claim(plugin, f"{kind} {found.name}")
        self._found[kind, found.name] = found

    def _qualify(self, plugin: Plugin, kind: str, found: type[Configurable]) -> type[Configurable]:
        """Make a provider known as `plugin/name`; return the class for the name in lists.

        That is the plain name, unless another plugin has it.
        """
        full = f"{plugin.name}/{found.name}"
        qualified = cast(
            "type[Configurable]", type(found.__name__, (found,), {"__module__": found.__module__, "name": full})
        )
        self._qualified.setdefault((kind, full), (qualified, plugin))
        owner = self._find_owner(f"{kind} {found.name}")
        if owner is None or owner is plugin:
            return found
        plugin.shadowed[f"{kind} {full}"] = owner.name
        return qualified

    def _find_owner(self, provided: str) -> Plugin | None:
        return next((plugin for plugin in self.plugins if provided in plugin.provides), None)

    def _claim(self, plugin: Plugin, provided: str) -> None:
        if (owner := self._find_owner(provided)) is not None:
            raise PluginError(f"{provided} is provided by plugin {owner.name} already")
        plugin.provides.append(provided)


def _fault(plugin: Plugin, fault: str) -> None:
    plugin.faults.append(fault)
    logger.error("plugin or part of a plugin left out", plugin=plugin.name, fault=fault)


def _describe_error(error: BaseException) -> str:
    return str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"


def parse_settings(model: type[ProviderSettings], values: Mapping[str, JsonValue]) -> ProviderSettings:
    """Validate plain values as settings. Raises `InvalidSettings`, whose messages never contain a given value."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        # A message into which a validator put one of the values is a generic one.
        given = [text for text in _iterate_texts([*values.values()]) if len(text) > 3]
        faults = [
            (
                ".".join(map(str, fault["loc"])) or "settings",
                "is not valid" if any(text in fault["msg"] for text in given) else fault["msg"],
            )
            for fault in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        raise InvalidSettings(faults) from None


def _iterate_texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _iterate_texts(part)
