"""Providers whose class runs in a process of its own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import JsonValue, TypeAdapter

from switchboard.engine.providers.plugin_processes.interface import RemoteMethod, Shape, list_remote_methods
from switchboard.engine.providers.plugin_processes.messages import Start
from switchboard.engine.providers.plugin_processes.plugin_process import PluginProcess, PluginProcesses
from switchboard.plugin_sdk import AudioFormat, NetworkPolicy, Provider, ProviderSettings
from switchboard.plugin_sdk.registry import Capability, Plugin

ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])
AUDIO_FORMAT = TypeAdapter(AudioFormat)


@dataclass(frozen=True, slots=True)
class RemoteProviders:
    """Derives classes whose instances run in processes of their own."""

    processes: PluginProcesses
    data_dir: Path
    policy: NetworkPolicy

    def derive(
        self, capability: Capability, kind: type[ProviderT], plugin: Plugin, values: Mapping[str, JsonValue]
    ) -> type[ProviderT]:
        """Return a class of the capability, with the name and the settings of the plugin's. `values` are the settings
        as they are given to the process.
        """
        start = Start(
            plugin=plugin.name,
            module=plugin.module,
            distribution=plugin.distribution,
            version=plugin.version,
            capability=capability.value,
            # The process loads one plugin, so its providers have their plain names.
            name=kind.name.rpartition("/")[2],
            settings=dict(values),
            data_dir=str(self.data_dir.resolve()),
            allowed_networks=[str(network) for network in self.policy.allowed_networks],
            own_url=self.policy.own_url,
            memory_bytes=self.processes.limits.memory_bytes,
            log_level=self.processes.log_level,
        )
        attributes: dict[str, Any] = {
            "__module__": __name__,
            "__init__": _initialize,
            "name": kind.name,
            "title": kind.title,
            "Settings": kind.Settings,
            "process": PluginProcess(start, kind.title, self.processes),
            "open": _open,
            "close": _close,
        }
        base = capability.base_class
        for name, method in list_remote_methods(base).items():
            attributes[name] = _forward(method)
        if (audio_format := getattr(kind, "audio_format", None)) is not None:
            attributes["audio_format"] = audio_format
        return cast("type[ProviderT]", type(kind.__name__, (base,), attributes))


def _initialize(self: Any, settings: ProviderSettings) -> None:
    self.settings = settings


async def _open(self: Any) -> None:
    attributes = await self.process.open()
    if "audio_format" in attributes:
        self.audio_format = AUDIO_FORMAT.validate_python(attributes["audio_format"])


async def _close(self: Any) -> None:
    await self.process.stop()


def _forward(method: RemoteMethod) -> Any:
    """Return a method that asks the process."""

    async def stream(self: Any, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        connection = await self.process.connect()
        async with aclosing(connection.stream(method, method.bind(arguments, options))) as items:
            async for item in items:
                yield item

    async def transcribe(self: Any, *arguments: Any, **options: Any) -> Any:
        connection = await self.process.connect()
        return await connection.transcribe(method, method.bind(arguments, options))

    async def call(self: Any, *arguments: Any, **options: Any) -> Any:
        connection = await self.process.connect()
        return await connection.call(method, method.bind(arguments, options))

    return {Shape.STREAM: stream, Shape.TRANSCRIPTION: transcribe, Shape.VALUE: call}[method.shape]
