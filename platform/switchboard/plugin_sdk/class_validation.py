"""Checks of a plugin and of its classes when they are loaded, so that a mistake is named then and not in a call."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import click
from pydantic import BaseModel

from switchboard.plugin_sdk.actions import ActionParams, AutomationAction
from switchboard.plugin_sdk.event_watchers import EventWatcher
from switchboard.plugin_sdk.method_signatures import list_signature_faults
from switchboard.plugin_sdk.private_data import PrivateDataDetector
from switchboard.plugin_sdk.processes import ProviderProcess
from switchboard.plugin_sdk.provider import Configurable, Provider, ProviderSettings
from switchboard.plugin_sdk.tools import AgentTool, ToolParameters

API_VERSION: Final = 1
"""Version of the plugin API: increased by each change that an existing plugin could notice as a failure
(docs/plugins/deprecation.md has the rules).

A plugin declares the version that it was written for, `PLUGIN_API_VERSION = 1`, in the module that its entry point
names.
"""
OLDEST_API_VERSION: Final = 1
"""Oldest version of the plugin API whose plugins still load."""

AnyProvider: TypeAlias = type[Provider[ProviderSettings]]

# For each base class: the attribute with its description, and the attributes with pydantic models.
SHAPES: Mapping[type, tuple[str, Mapping[str, type[BaseModel]]]] = {
    Provider: ("title", {"Settings": ProviderSettings}),
    AutomationAction: ("title", {"Settings": ProviderSettings, "Params": ActionParams}),
    AgentTool: ("description", {"Settings": ProviderSettings, "Parameters": ToolParameters}),
    EventWatcher: ("title", {"Settings": ProviderSettings}),
    PrivateDataDetector: ("title", {"Settings": ProviderSettings}),
}


PROCESS_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class PluginError(Exception):
    """A plugin, or a part of it, cannot be used. The message explains why to the person who installed it."""


def check_api_version(module: object) -> None:
    """Raise `PluginError` for a plugin that was written for a version of the plugin API that is not supported.

    A plugin without the declaration is one for the first version.
    """
    version = getattr(module, "PLUGIN_API_VERSION", 1)
    if not isinstance(version, int):
        raise PluginError(f"PLUGIN_API_VERSION must be a whole number, and is {version!r}")
    several = f"versions {OLDEST_API_VERSION} to {API_VERSION}"
    supported = f"version {API_VERSION}" if OLDEST_API_VERSION == API_VERSION else several
    if version > API_VERSION:
        raise PluginError(f"needs version {version} of the plugin API; this Switchboard has {supported}: upgrade it")
    if version < OLDEST_API_VERSION:
        raise PluginError(
            f"was written for version {version} of the plugin API; this Switchboard has {supported}: upgrade the plugin"
        )


def _require_class(answer: object, expected: type[Any]) -> type[Any]:
    """Return a hook's result as a class with all methods of its base class. Raises `PluginError`."""
    if not isinstance(answer, type) or not issubclass(answer, expected):
        name = answer.__name__ if isinstance(answer, type) else f"an answer of type {type(answer).__name__}"
        raise PluginError(f"{name} is not a {expected.__name__}")
    if missing := sorted(getattr(answer, "__abstractmethods__", ())):
        raise PluginError(f"{answer.__name__} lacks {', '.join(missing)}")
    if faults := list(list_signature_faults(answer)):
        raise PluginError("; ".join(faults))
    return answer


def validate_class(answer: object, expected: type) -> type[Configurable]:
    """Return a hook's result as a class that can be used. Raises `PluginError`."""
    found: type[Configurable] = _require_class(answer, expected)
    description, models = SHAPES[next(base for base in SHAPES if issubclass(found, base))]
    for attribute in ("name", description):
        value = getattr(found, attribute, None)
        if not isinstance(value, str) or not value.strip():
            raise PluginError(f"{found.__name__} has no {attribute}")
        if attribute == "name" and "/" in value:
            raise PluginError(f"{found.__name__} has the name {value}, and a name has no slash")
    for attribute, model in models.items():
        given = getattr(found, attribute)
        if not isinstance(given, type) or not issubclass(given, model):
            raise PluginError(f"{found.__name__}.{attribute} is not a {model.__name__}")
    return found


def validate_process(answer: object) -> type[ProviderProcess[Any]]:
    """Return a hook's result as a process that can be run. Raises `PluginError`."""
    found: type[ProviderProcess[Any]] = _require_class(answer, ProviderProcess)
    if not PROCESS_NAME.fullmatch(str(getattr(found, "name", ""))):
        raise PluginError(f"{found.__name__} has no name in lower case, with hyphens between words")
    if not str(getattr(found, "title", "")).strip():
        raise PluginError(f"{found.__name__} has no title")
    provider = getattr(found, "provider", None)
    if not isinstance(provider, type) or not issubclass(provider, Provider):
        raise PluginError(f"{found.__name__} has no provider")
    return found


def validate_command(answer: object) -> click.Command:
    """Return a hook's result as a command with a name. Raises `PluginError`."""
    if not isinstance(answer, click.Command) or not answer.name:
        raise PluginError(f"a result of type {type(answer).__name__} is not a click command with a name")
    return answer
